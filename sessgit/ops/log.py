"""What happened in a conversation, turn by turn, and what left it on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessgit.ops import views
from sessgit.store import layout
from sessgit.store.index import Branch, Index, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store


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
    narrowed: bool = False
    """Whether turns between those that are there were left out."""


@dataclass(frozen=True, slots=True)
class Only:
    """Which turns are wanted: those since a moment (seconds since 1970), those that used a tool, those that end with
    one of some commits. What is None or empty chooses nothing."""

    since: float | None = None
    tool: str = ""
    commits: Collection[str] | None = None

    @property
    def narrows(self) -> bool:
        return self.since is not None or bool(self.tool) or self.commits is not None


def _no_store() -> Store:
    raise ValueError("a tool can be asked for only where the store can be opened")


def log(
    index: Index,
    branch: Branch,
    turn: int | None = None,
    limit: int | None = None,
    only: Only | None = None,
    open_store: Callable[[], Store] = _no_store,
) -> Log:
    """The log of a branch up to a turn, or all of it; the last `limit` of the turns that are wanted.

    `open_store` is called only where a tool is asked for of which the index does not know enough.
    """
    session = layout.session_of(branch.name)
    end = branch.state.turns if turn is None else turn
    if only is not None and only.narrows:
        rows = _chosen(index, branch, index.turns(branch.name, 1, end), only, open_store)
        rows = rows if limit is None else rows[max(0, len(rows) - limit) :]
    else:
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
    return Log(branch, rows, forks, left, only is not None and only.narrows)


def _chosen(index: Index, branch: Branch, rows: list[Row], only: Only, open_store: Callable[[], Store]) -> list[Row]:
    if only.since is not None:
        rows = [row for row in rows if row.time >= only.since]
    if only.commits is not None:
        rows = [row for row in rows if row.commit in only.commits]
    if not only.tool:
        return rows
    known = index.gists([row.commit for row in rows])
    unknown = [row for row in rows if row.commit not in known]
    if unknown:
        read = views.gists(open_store(), index, branch, unknown)
        known |= {row.commit: gist for row, gist in zip(unknown, read, strict=True)}
    wanted = only.tool.lower()
    return [row for row in rows if any(tool.lower() == wanted for tool in known[row.commit].tools)]


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
