"""A session as another system kept it: what an import reads and an export writes, whatever the layout."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from sessgit.model import canonical, ids
from sessgit.model.frozen import frozen
from sessgit.model.program_input import GivenTurn

LONGEST_DESCRIPTION = 2_000
LONGEST_LABEL = 50
Outcome = Literal["imported", "empty", "left", "damaged"]


@frozen
class SourceFile:
    """A file that an import met, by its path below the folder, and what became of it; `why` says more than one word
    does, and `session` is the system's id of the one that it belongs to, or ``""``."""

    path: str
    outcome: Outcome
    why: str = ""
    session: str = ""


@frozen
class ForeignSession:
    """A session as another system kept it.

    `id` is that system's own. Times are RFC 3339 or empty. `branch` is the number of the last turn that it shares with
    `parent`, which is the id of another session of that system. `pad` are lists of a scratchpad by their names, in the
    form of `sessgit.model.pad`. `unified` are the parts of a state that only programs set, by their keys in
    session.json (`activation`, `context`, `budget`, `trajectory`). `kept` are files of the session as a whole, which
    come back byte for byte, by their paths. `transcript` are lines in the client's own form where the system keeps
    such: they are the conversation then, and `turns` are empty. `agent` is the id that the session had here
    when it was exported, where that does not follow from `id`. `facts` are what a person looks for that a session here
    has no place for, as totals and exit codes: `tokens` and `cost_usd` as numbers; `process` is `gone` if the system
    says that the session is active, but its process does not run; the others by the system's keys.

    Only a recorded session has `children`, the ids of its forks and children in that system, and `costs`, what its
    turns cost in US dollars, by their keys, if the prices of their models are known. `inherits` tells that `kept` has
    the files of the session that it was forked from.
    """

    id: str
    title: str = ""
    name: str = ""
    description: str = ""
    project: str = ""
    created: str = ""
    updated: str = ""
    ended: str = ""
    state: str = "ended"
    labels: tuple[str, ...] = ()
    stage: str = ""
    confidence: float | None = None
    archived: bool = False
    parent: str = ""
    branch: int | None = None
    turns: tuple[GivenTurn, ...] = ()
    pad: Mapping[str, bytes] = field(default_factory=dict)
    unified: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, bytes] = field(default_factory=dict)
    transcript: bytes = b""
    agent: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    children: tuple[str, ...] = field(default=(), compare=False)
    costs: Mapping[str, float] = field(default_factory=dict, compare=False)
    inherits: bool = field(default=False, compare=False)


@frozen
class ForeignFolder:
    """What a folder holds: sessions in their order, parents first, and every file in it with what became of it."""

    sessions: tuple[ForeignSession, ...]
    files: tuple[SourceFile, ...]


def agent_id(system: str, own: str) -> str:
    """Return the id of the session here: its own where that is a uuid, else a uuid5 of the system's name and the id."""
    try:
        return str(uuid.UUID(own))
    except ValueError:
        return ids.stable_uuid(f"{system}:{own}".encode("utf-8", "surrogatepass").hex())


def clean_description(text: str) -> str:
    """Return the text as a session here can have it as its description."""
    lines = [canonical.printable(line).rstrip().expandtabs(4) for line in text.split("\n")]
    whole = "\n".join(lines).strip()
    return whole if len(whole) <= LONGEST_DESCRIPTION else whole[: LONGEST_DESCRIPTION - 1].rstrip() + "…"


def clean_label(text: str) -> str:
    """Return the text as a label."""
    return canonical.one_line(text.replace(",", " "), LONGEST_LABEL).lstrip("+-").strip()
