"""The words that conversations are known by: names, titles, labels, descriptions and first prompts."""

from __future__ import annotations

import json
from typing import NamedTuple

from sessgit.store.index import Index


class Titles(NamedTuple):
    """What a session is called: `name`, `labels` and `description` by its user, `title` by the client; `updated` is
    RFC 3339 or empty."""

    session: str
    project: str
    updated: str
    name: str
    title: str
    labels: tuple[str, ...]
    description: str
    is_fork: bool


def titles(index: Index) -> list[Titles]:
    """The titles of all sessions, the one written last first; their states are not read."""
    query = (
        "SELECT name, project, updated, authored_name, title, labels, description, parent > '' FROM branches"
        " WHERE name = session ORDER BY updated DESC, name"
    )
    return [
        Titles(session, index.here(project), updated, name, title, tuple(json.loads(labels)), description, bool(fork))
        for session, project, updated, name, title, labels, description, fork in index._ask(query)
    ]


def first_prompts(index: Index) -> dict[str, str]:
    """The first prompt of each session, on one line; their whole states are not read."""
    # Two paths, so that the answer is JSON: it can tell of half a character, and text cannot.
    prompt = "json_extract(CAST(state AS TEXT), '$.metadata.first_prompt', '$.metadata.agent_id')"
    rows = index._ask(f"SELECT name, {prompt} FROM branches WHERE name = session")
    every = json.loads(f"[{','.join(told for _, told in rows)}]")  # half the time of one by one
    return {name: said if isinstance(said, str) else "" for (name, _), (said, _) in zip(rows, every, strict=True)}
