"""Questions to the index about families: where sessions left others, what rewinds left behind, what was brought."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple

from sessgit.model.turn import count
from sessgit.store import layout
from sessgit.store.index import Index


class Departure(NamedTuple):
    """Where a session left another: the branch and the turn, and the cell as `7.3` or ``""``."""

    branch: str
    turn: int
    cell: str


def departures(index: Index, sessions: Collection[str]) -> dict[str, Departure]:
    """Of each of these sessions that left another one, where; their whole states are not read."""
    origin = "json_extract(CAST(state AS TEXT), '$.origin.session', '$.origin.turn', '$.origin.cell')"
    query = f"SELECT name, {origin} FROM branches WHERE parent > '' AND name IN (SELECT value FROM json_each(?))"
    found: dict[str, Departure] = {}
    for name, told in index._ask(query, (json.dumps(list(sessions)),)):
        branch, turn, cell = json.loads(told)
        found[name] = Departure(branch, count(turn), cell if isinstance(cell, str) else "")
    return found


def rewound(index: Index, session: str) -> list[str]:
    """The branches that rewinds of a session left behind, by name."""
    query = "SELECT name FROM branches WHERE name BETWEEN ? AND ? AND session = ?"
    found = index._ask(query, (session, f"{session}~", session))
    return [name for (name,) in found if layout.is_rewound(name)]


def bringing(index: Index, sessions: Collection[str]) -> list[str]:
    """Those of these sessions that have turns which were brought from others, by a merge or one by one."""
    query = (
        "SELECT DISTINCT branch FROM turns WHERE branch IN (SELECT value FROM json_each(?))"
        " AND instr(message, char(10) || 'Origin: ') ORDER BY branch"
    )
    return [name for (name,) in index._ask(query, (json.dumps(list(sessions)),))]


def managers(index: Index) -> set[str]:
    """The sessions whose state says that they manage others."""
    role = "json_extract(CAST(state AS TEXT), '$.metadata.role')"
    return {name for (name,) in index._ask(f"SELECT name FROM branches WHERE name = session AND {role} = 'manager'")}


def transcripts(index: Index, sessions: Collection[str]) -> dict[str, str]:
    """Where the transcript of each of these sessions was, as its state says it, or ``""``."""
    place = "json_extract(CAST(state AS TEXT), '$.metadata.transcript_path')"
    query = f"SELECT name, {place} FROM branches WHERE name IN (SELECT value FROM json_each(?))"
    return {name: place or "" for name, place in index._ask(query, (json.dumps(list(sessions)),))}
