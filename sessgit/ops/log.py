"""What happened in a conversation, turn by turn, and what left it on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessgit.store import layout
from sessgit.store.index import Branch, Index, Row


@dataclass(frozen=True, slots=True)
class Left:
    """So many turns that a rewind left behind after turn `turn`, on a branch of their own."""

    branch: Branch
    turn: int
    count: int


@dataclass(frozen=True, slots=True)
class Log:
    """The turns of a branch, oldest first, with what left it: forks by the turn they left after, and rewinds."""

    branch: Branch
    rows: list[Row]
    forks: dict[int, list[Branch]] = field(default_factory=dict)
    left: dict[int, list[Left]] = field(default_factory=dict)


def log(index: Index, branch: Branch, turn: int | None = None, limit: int | None = None) -> Log:
    """The log of a branch up to a turn, or all of it; the last `limit` turns of that."""
    session = layout.session_of(branch.name)
    end = branch.state.turns if turn is None else turn
    rows = index.turns(branch.name, 1 if limit is None else end - limit + 1, end)
    forks: dict[int, list[Branch]] = {}
    for fork in sorted(index.forks_of(session), key=lambda fork: (fork.state.created, fork.name)):
        assert fork.state.origin is not None
        if fork.name != session and fork.state.origin.turn <= end:
            forks.setdefault(fork.state.origin.turn, []).append(fork)
    left: dict[int, list[Left]] = {}
    for other in index.branches(session):
        last, count = index.left_behind(other.name, branch.name)
        if other.name != branch.name and count and last <= end and layout.is_rewound(other.name):
            left.setdefault(last, []).append(Left(other, last, count))
    return Log(branch, rows, forks, left)


def family(index: Index, branch: Branch) -> list[Branch]:
    """All sessions that come from the same first one, parents before their forks."""
    root, seen = branch, {branch.name}
    while root.state.origin is not None:
        parent = index.branch(layout.session_of(root.state.origin.session))
        if parent is None or parent.name in seen:
            break
        root = parent
        seen.add(parent.name)
    found = [root]
    for member in found:
        known = {other.name for other in found}
        forks = sorted(index.forks_of(layout.session_of(member.name)), key=lambda fork: (fork.state.created, fork.name))
        found += [fork for fork in forks if fork.name not in known]
    return found
