"""Questions to the index about families: where sessions left others, their side branches, what was brought."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sessgit.model.conversation import message as messages
from sessgit.model.conversation.turn import plausible_count
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.sqlite.tables import HAS_ORIGIN

_ORIGIN = re.compile(r"([^@]+)@(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


class ForkPlace(NamedTuple):
    """Where a session leaves another as both stand now: the branch, the last turn that it still has from there, and the
    cell as `7.3` or ``""``.

    A rewind of either may have taken them further apart than they were at the fork point. Where the one that was left
    went back, `branch` is the one that has these turns since.
    """

    branch: str
    turn: int
    cell: str

    @property
    def at(self) -> str:
        """What stands behind the ``@`` of its address."""
        return self.cell or str(self.turn)


def fork_places(index: Index, sessions: Collection[str]) -> dict[str, ForkPlace]:
    """Of each of these branches whose session left another one, where; their whole states are not read."""
    origin = "json_extract(CAST(state AS TEXT), '$.origin.session', '$.origin.turn', '$.origin.cell')"
    query = f"SELECT name, {origin} FROM branches WHERE parent > '' AND name IN (SELECT value FROM json_each(?))"
    found: dict[str, ForkPlace] = {}
    for name, told in index._ask(query, (json.dumps(list(sessions)),)):
        branch, turn, cell = json.loads(told)
        found[name] = _current_fork_place(
            index, name, ForkPlace(branch, plausible_count(turn), cell if isinstance(cell, str) else "")
        )
    return found


def fork_place(index: Index, branch: Branch) -> ForkPlace | None:
    """The same of one branch, or None where its session left no other."""
    origin = branch.state.origin
    return (
        _current_fork_place(index, branch.name, ForkPlace(origin.session, origin.turn, origin.cell)) if origin else None
    )


def _current_fork_place(index: Index, name: str, left: ForkPlace) -> ForkPlace:
    """Where a branch leaves today what its session once left there."""
    own = "instr(message, char(10) || 'Session: ' || ?2 || char(10))"
    held = "EXISTS (SELECT 1 FROM turns WHERE branch = ?3 AND turn = its.turn AND prompt = its.prompt)"
    query = (
        f"SELECT turn, prompt, {held} FROM turns AS its WHERE branch = ?1 AND turn <= ?4 AND NOT {own}"
        " ORDER BY turn DESC LIMIT 1"
    )
    rows = index._ask(query, (name, layout.session_of(name), left.branch, left.turn))
    turn, prompt, is_held = rows[0] if rows else (0, "", True)
    cut = index.turn(name, turn + 1) if left.cell and turn == left.turn else None
    if cut is not None and cut.message.get("Event") == "fork":
        found = _branch_with_turn(index, left.branch, turn + 1, cut.prompt)
        if found:
            return ForkPlace(found, turn, left.cell)
    found = left.branch if is_held else _branch_with_turn(index, left.branch, turn, prompt)
    if found:
        return ForkPlace(found, turn, "")
    session = layout.session_of(left.branch)  # it has lost the branch that had them
    return ForkPlace(session, index.left_behind(name, session)[0], "")


def _branch_with_turn(index: Index, branch: str, number: int, prompt: str) -> str:
    """The branch, else another one of its session that has this turn, or ``""``; of a session that is not in the store
    nothing is known, and it stays the branch."""

    def holds(one: str) -> bool:
        row = index.turn(one, number)
        return row is not None and row.prompt == prompt

    session = layout.session_of(branch)
    if holds(branch) or index.branch(session) is None:
        return branch
    return next(filter(holds, (session, *side_branches(index, session))), "")


def has_forks(index: Index, session: str) -> bool:
    """Return whether other sessions left this one."""
    return bool(index._ask("SELECT 1 FROM branches WHERE parent = ? LIMIT 1", (session,)))


def side_branches(index: Index, session: str) -> list[str]:
    """The side branches of a session, by name."""
    query = "SELECT name FROM branches WHERE name BETWEEN ? AND ? AND session = ? ORDER BY name"
    found = index._ask(query, (session, f"{session}~", session))
    return [name for (name,) in found if layout.is_side_branch(name)]


def sessions_of_other_machines(index: Index) -> set[str]:
    """The sessions with which another machine went on too."""
    query = "SELECT DISTINCT session FROM branches WHERE instr(name, '.m-')"
    return {name for (name,) in index._ask(query)}


def merged_turns(index: Index, branch: str) -> dict[str, list[range]]:
    """By the branch that they come from the numbers of the turns that were brought into this one, as they are or in a
    summary."""
    query = f"SELECT branch, message FROM turns WHERE branch = ? AND {HAS_ORIGIN}"
    return {source: turns for source, _, turns in _merge_origins(index, query, (branch,))}


def merged_elsewhere(index: Index) -> dict[str, dict[str, list[range]]]:
    """Of all branches from which turns were brought into others the numbers of those, by the branch that has them."""
    found: dict[str, dict[str, list[range]]] = {}
    for source, into, turns in _merge_origins(index, f"SELECT branch, message FROM turns WHERE {HAS_ORIGIN}", ()):
        found.setdefault(source, {})[into] = turns
    return found


def _merge_origins(index: Index, query: str, arguments: Sequence[str]) -> Iterator[tuple[str, str, list[range]]]:
    """From where, into what, and the numbers of the turns where they come from."""
    found: dict[tuple[str, str], list[range]] = {}
    for into, text in index._ask(query, arguments):
        origin = _ORIGIN.fullmatch(messages.parse_message(text).get("Origin"))
        if origin is not None:
            first = int(origin[2])
            found.setdefault((origin[1], into), []).append(range(first, int(origin[3] or first) + 1))
    return ((source, into, turns) for (source, into), turns in found.items())


def sessions_with_merges(index: Index, sessions: Collection[str]) -> list[str]:
    """Those of these sessions into which others may have been merged, or single turns of others been brought."""
    wanted = "branch IN (SELECT value FROM json_each(?1))"
    query = f"SELECT branch FROM turns WHERE {wanted} AND {HAS_ORIGIN} UNION SELECT branch FROM merges WHERE {wanted}"
    return [name for (name,) in index._ask(f"{query} ORDER BY branch", (json.dumps(list(sessions)),))]


def has_silent_merges(index: Index, branch: str) -> bool:
    """Whether others may have been merged into a branch that brought no turn."""
    return bool(index._ask("SELECT 1 FROM merges WHERE branch = ?", (branch,)))


def managing_sessions(index: Index) -> set[str]:
    """The sessions whose state says that they manage others."""
    role = "json_extract(CAST(state AS TEXT), '$.metadata.role')"
    return {name for (name,) in index._ask(f"SELECT name FROM branches WHERE name = session AND {role} = 'manager'")}


def session_transcripts(index: Index, sessions: Collection[str]) -> dict[str, str]:
    """Where the transcript of each of these sessions was, as its state says it, or ``""``."""
    # Two paths, so that the answer is JSON: it can tell of half a character, and text cannot.
    place = "json_extract(CAST(state AS TEXT), '$.metadata.transcript_path', '$.metadata.agent_id')"
    query = f"SELECT name, {place} FROM branches WHERE name IN (SELECT value FROM json_each(?))"
    found = index._ask(query, (json.dumps(list(sessions)),))
    every = json.loads(f"[{','.join(told for _, told in found)}]")  # half the time of one by one
    return {name: text if isinstance(text, str) else "" for (name, _), (text, _) in zip(found, every, strict=True)}


def session_births(index: Index, sessions: Collection[str]) -> dict[str, tuple[str, bool]]:
    """Of each of these sessions when it began, RFC 3339 or empty, and whether it left another one."""
    query = "SELECT name, created, parent > '' FROM branches WHERE name IN (SELECT value FROM json_each(?))"
    return {name: (born, bool(left)) for name, born, left in index._ask(query, (json.dumps(list(sessions)),))}
