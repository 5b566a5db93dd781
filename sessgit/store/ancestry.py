"""Queries to the index about families of sessions: fork points, side branches, merged turns."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sessgit.model.conversation import message as messages
from sessgit.model.conversation.turn import plausible_count
from sessgit.store import layout
from sessgit.store.index import HAS_ORIGIN, Branch, Index

_ORIGIN = re.compile(r"([^@]+)@(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


class ForkPlace(NamedTuple):
    """Where a session leaves another one now: the branch, the last shared turn, and the cell as `7.3` or ``""``.

    After a rewind of either this is earlier than the fork point. If the original was rewound, `branch` is the branch
    that has the shared turns since.
    """

    branch: str
    turn: int
    cell: str

    @property
    def at(self) -> str:
        """The part of the address after ``@``."""
        return self.cell or str(self.turn)


def fork_places(index: Index, sessions: Collection[str]) -> dict[str, ForkPlace]:
    """Return the fork places of those of these branches whose sessions are forks."""
    return {name: _current_fork_place(index, name, left) for name, left in origins(index, sessions).items()}


def origins(index: Index, branches: Collection[str] | None = None) -> dict[str, ForkPlace]:
    """Return where each of these branches, or of all, left another session, as their states say."""
    origin = "json_extract(CAST(state AS TEXT), '$.origin.session', '$.origin.turn', '$.origin.cell')"
    query = f"SELECT name, {origin} FROM branches WHERE parent > ''"
    if branches is not None:
        query += " AND name IN (SELECT value FROM json_each(?))"
    places: dict[str, ForkPlace] = {}
    for name, text in index.query(query, () if branches is None else (json.dumps(list(branches)),)):
        branch, turn, cell = json.loads(text)
        places[name] = ForkPlace(branch, plausible_count(turn), cell if isinstance(cell, str) else "")
    return places


def fork_place(index: Index, branch: Branch) -> ForkPlace | None:
    """Return the fork place of one branch, or None if its session is no fork."""
    origin = branch.state.origin
    return (
        _current_fork_place(index, branch.name, ForkPlace(origin.session, origin.turn, origin.cell)) if origin else None
    )


def _current_fork_place(index: Index, name: str, left: ForkPlace) -> ForkPlace:
    """Return where a branch leaves its original now."""
    own = "instr(message, char(10) || 'Session: ' || ?2 || char(10))"
    held = "EXISTS (SELECT 1 FROM turns WHERE branch = ?3 AND turn = its.turn AND prompt = its.prompt)"
    query = (
        f"SELECT turn, prompt, {held} FROM turns AS its WHERE branch = ?1 AND turn <= ?4 AND NOT {own}"
        " ORDER BY turn DESC LIMIT 1"
    )
    rows = index.query(query, (name, layout.session_of(name), left.branch, left.turn))
    turn, prompt, is_shared = rows[0] if rows else (0, "", True)
    cut = index.turn(name, turn + 1) if left.cell and turn == left.turn else None
    if cut is not None and cut.trailer("Event") == "fork":
        branch = _branch_with_turn(index, left.branch, turn + 1, cut.prompt)
        if branch:
            return ForkPlace(branch, turn, left.cell)
    branch = left.branch if is_shared else _branch_with_turn(index, left.branch, turn, prompt)
    if branch:
        return ForkPlace(branch, turn, "")
    session = layout.session_of(left.branch)  # the branch with these turns is lost
    return ForkPlace(session, index.left_behind(name, session)[0], "")


def _branch_with_turn(index: Index, branch: str, number: int, prompt: str) -> str:
    """Return the branch of a session that has this turn, preferably this one, or ``""``; if the session is not in the
    store, this one."""

    def holds(name: str) -> bool:
        row = index.turn(name, number)
        return row is not None and row.prompt == prompt

    session = layout.session_of(branch)
    if holds(branch) or index.branch(session) is None:
        return branch
    return next(filter(holds, (session, *side_branches(index, session))), "")


def has_forks(index: Index, session: str) -> bool:
    """Return whether the session has forks."""
    return bool(index.query("SELECT 1 FROM branches WHERE parent = ? LIMIT 1", (session,)))


def side_branches(index: Index, session: str) -> list[str]:
    """Return the side branches of a session, by name."""
    query = "SELECT name FROM branches WHERE name BETWEEN ? AND ? AND session = ? ORDER BY name"
    names = index.query(query, (session, f"{session}~", session))
    return [name for (name,) in names if layout.is_side_branch(name)]


def sessions_of_other_machines(index: Index) -> set[str]:
    """Return the sessions that another machine continued too."""
    query = "SELECT DISTINCT session FROM branches WHERE instr(name, '.m-')"
    return {name for (name,) in index.query(query)}


def merged_turns(index: Index, branch: str) -> dict[str, list[range]]:
    """Return the numbers of the turns that were merged into this branch, whole or in a summary, by the branch that they
    come from."""
    query = f"SELECT branch, message FROM turns WHERE branch = ? AND {HAS_ORIGIN}"
    return {source: turns for source, _, turns in _merge_origins(index, query, (branch,))}


def merged_elsewhere(index: Index) -> dict[str, dict[str, list[range]]]:
    """Return the numbers of all turns that were merged into other branches, by their own branch and the other one."""
    merged: dict[str, dict[str, list[range]]] = {}
    for source, into, turns in _merge_origins(index, f"SELECT branch, message FROM turns WHERE {HAS_ORIGIN}", ()):
        merged.setdefault(source, {})[into] = turns
    return merged


def _merge_origins(index: Index, query: str, arguments: Sequence[str]) -> Iterator[tuple[str, str, list[range]]]:
    """Yield the source branch, the target branch, and the numbers of the turns in the source."""
    ranges: dict[tuple[str, str], list[range]] = {}
    for into, text in index.query(query, arguments):
        origin = _ORIGIN.fullmatch(messages.trailer(text, "Origin"))
        if origin is not None:
            first = int(origin[2])
            ranges.setdefault((origin[1], into), []).append(range(first, int(origin[3] or first) + 1))
    return ((source, into, turns) for (source, into), turns in ranges.items())


def sessions_with_merges(index: Index, sessions: Collection[str]) -> list[str]:
    """Return those of these sessions into which others, or single turns of others, may have been merged."""
    wanted = "branch IN (SELECT value FROM json_each(?1))"
    query = f"SELECT branch FROM turns WHERE {wanted} AND {HAS_ORIGIN} UNION SELECT branch FROM merges WHERE {wanted}"
    return [name for (name,) in index.query(f"{query} ORDER BY branch", (json.dumps(list(sessions)),))]


def has_silent_merges(index: Index, branch: str) -> bool:
    """Return whether a merge into the branch may have added no turn."""
    return bool(index.query("SELECT 1 FROM merges WHERE branch = ?", (branch,)))


def managing_sessions(index: Index) -> set[str]:
    """Return the sessions that manage others: those with the role manager, and those with children."""
    role = "json_extract(CAST(state AS TEXT), '$.metadata.role')"
    query = f"SELECT name FROM branches WHERE name = session AND {role} = 'manager'"
    return {name for (name,) in index.query(f"{query} UNION SELECT child_of FROM branches WHERE child_of > ''")}


def session_transcripts(index: Index, sessions: Collection[str]) -> dict[str, str]:
    """Return the path of the transcript of each of these sessions, as its state has it, or ``""``."""
    # With two paths SQLite answers in JSON, which can hold half a character, as text cannot.
    path = "json_extract(CAST(state AS TEXT), '$.metadata.transcript_path', '$.metadata.agent_id')"
    query = f"SELECT name, {path} FROM branches WHERE name IN (SELECT value FROM json_each(?))"
    paths = ((name, json.loads(pair)[0]) for name, pair in index.query(query, (json.dumps(list(sessions)),)))
    return {name: path if isinstance(path, str) else "" for name, path in paths}


_MOST_DIFFERENT = 16
"""If a prompt uuid is that of more different turns of relatives, a program numbers its messages alike in all sessions,
and the uuid does not say that a turn was copied."""
_IS_TURN = "instr(message, char(10) || 'Event: turn' || char(10))"
_LINE = "substr(message, 1, instr(message, char(10)) - 1)"
_BEFORE_SECRET = "substr({0}, 1, instr({0} || '[', '[') - 1)"
_SHORTER = "min(length(theirs), length(ours))"
_RELATIVES = f"""WITH first AS (
        SELECT branch, {_IS_TURN} AS is_turn, {_LINE} AS line, {_BEFORE_SECRET.format(_LINE)} AS theirs,
            {_BEFORE_SECRET.format("?2")} AS ours
        FROM turns WHERE prompt = ?1 AND turn = 1
    ),
    relatives AS (
        SELECT branch FROM first WHERE NOT is_turn OR ?2 IN ('', line) OR (
            instr(line || ?2, '[') AND substr(theirs, 1, {_SHORTER}) = substr(ours, 1, {_SHORTER})
        )
    )
"""


@dataclass(frozen=True)
class Relatives:
    """The sessions whose first turn has a prompt with this uuid, and this subject of its commit unless it is empty.

    Some programs use the same message ids in every conversation: to read all these turns would be quadratic. A subject
    is compared up to the mark of a secret, which is replaced in only one of them.
    """

    index: Index
    root: str
    subject: str

    def are_copies(self, prompt: str, number: int) -> bool:
        """Return whether any has a turn of this number with this prompt, and the turns are copies of a few."""
        turns = "SELECT DISTINCT commit_id FROM turns NATURAL JOIN relatives WHERE prompt = ?3 AND turn = ?4"
        found = self._query(f"{turns} LIMIT {_MOST_DIFFERENT + 1}", prompt, number)
        return 0 < len(found) <= _MOST_DIFFERENT

    def has(self, session: str) -> bool:
        """Return whether this session is one of them."""
        return bool(self._query("SELECT 1 FROM relatives WHERE branch = ?3", session))

    def names(self, prompt: str, number: int, created: str) -> list[str]:
        """Return those with this prompt in the turn of this number that were created by then, forks last."""
        turns = "turns NATURAL JOIN relatives JOIN branches ON name = branch"
        which = "prompt = ?3 AND turn = ?4 AND created <= ?5 AND NOT instr(name, '.')"
        found = self._query(
            f"SELECT name FROM {turns} WHERE {which} ORDER BY parent > '', name", prompt, number, created
        )
        return [name for (name,) in found]

    def unlinked(self, created: str) -> list[str]:
        """Return those that were created later and are no forks, by name."""
        which = "created > ?3 AND parent = '' AND NOT instr(name, '.')"
        found = self._query(
            f"SELECT name FROM relatives JOIN branches ON name = branch WHERE {which} ORDER BY name", created
        )
        return [name for (name,) in found]

    def _query(self, query: str, *arguments: object) -> list[Any]:
        return self.index.query(_RELATIVES + query, (self.root, self.subject, *arguments))
