"""What happened in a conversation, turn by turn, and what left it on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessgit.errors import SessgitError
from sessgit.history import views
from sessgit.history.merge_history import list_merges
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import ancestry
from sessgit.store.sqlite.ancestry import ForkPlace
from sessgit.store.sqlite.rows import Branch, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class SideBranch:
    """So many turns after turn `turn` that stand on a side branch: a rewind left them behind, or they are from another
    machine. `brought` of them were brought back since."""

    branch: Branch
    turn: int
    count: int
    brought: int = 0

    @property
    def open(self) -> int:
        """How many of them stand nowhere else."""
        return max(0, self.count - self.brought)

    @property
    def rewound(self) -> bool:
        """Whether a rewind left them behind."""
        return layout.is_rewound_branch(self.branch.name)


@dataclass(frozen=True, slots=True)
class ForkEntry:
    """A session that left this one, the last turn that it shares with the branch, the cell of the next at which it
    left that, as `7.3` or ``""``, and where it left this session, which may be another branch of it."""

    branch: Branch
    turn: int
    cell: str
    left: ForkPlace

    @property
    def is_elsewhere(self) -> bool:
        """Whether it left another branch of the session, after the two had parted."""
        return (self.turn, self.cell) != (self.left.turn, self.left.cell)


@dataclass(frozen=True, slots=True)
class BranchLog:
    """The turns of a branch, oldest first, with forks and side branches by the last turn that they share with it."""

    branch: Branch
    rows: list[Row]
    forks: dict[int, list[ForkEntry]] = field(default_factory=dict)
    left: dict[int, list[SideBranch]] = field(default_factory=dict)
    merged: dict[int, list[str]] = field(default_factory=dict)
    """The branches that were merged after a turn and brought none, and maybe others."""
    narrowed: bool = False
    """Whether turns between those that are there were left out."""


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Which turns are wanted: those since a moment (seconds since 1970), those that used a tool, those that end with
    one of some commits. What is None or empty chooses nothing."""

    since: float | None = None
    tool: str = ""
    commits: Collection[str] | None = None

    @property
    def narrows(self) -> bool:
        """Whether it leaves out any turn."""
        return self.since is not None or bool(self.tool) or self.commits is not None


def _no_store() -> Store:
    raise ValueError("a tool can be asked for only where the store can be opened")


def branch_log(
    index: Index,
    branch: Branch,
    turn: int | None = None,
    limit: int | None = None,
    only: TurnFilter | None = None,
    open_store: Callable[[], Store] = _no_store,
) -> BranchLog:
    """The log of a branch up to a turn, or all of it; the last `limit` of the turns that are wanted.

    `open_store` is called only where a tool is asked for of which the index does not know enough.
    """
    session = layout.session_of(branch.name)
    end = branch.state.turns if turn is None else turn
    if only is not None and only.narrows:
        rows = _matching_rows(index, branch, index.turns(branch.name, 1, end), only, open_store)
        rows = rows if limit is None else rows[max(0, len(rows) - limit) :]
    else:
        rows = index.turns(branch.name, 1 if limit is None else end - limit + 1, end)
    forks: dict[int, list[ForkEntry]] = {}
    for fork in sorted(index.forks_of(session), key=lambda fork: (fork.state.created, fork.name)):
        at = ancestry.fork_place(index, fork)
        if fork.name != session and at is not None and (shared := last_shared_turn(index, branch.name, at)) <= end:
            cell = at.cell if at.branch == branch.name else ""
            forks.setdefault(shared, []).append(ForkEntry(fork, shared, cell, at))
    left: dict[int, list[SideBranch]] = {}
    for one in side_branches(index, branch):
        if one.turn <= end:
            left.setdefault(one.turn, []).append(one)
    return BranchLog(branch, rows, forks, left, _merges_by_turn(index, branch), only is not None and only.narrows)


def _merges_by_turn(index: Index, branch: Branch) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    if ancestry.has_silent_merges(index, branch.name):
        with suppress(SessgitError):  # what is damaged is no merge that could be told
            for theirs, turn in list_merges(index.open_store(), branch):
                found.setdefault(turn, []).insert(0, theirs)
    return found


def last_shared_turn(index: Index, branch: str, left: ForkPlace) -> int:
    """The last turn that a fork of the branch's session has in common with the branch: what it left may be another
    one of the session's branches."""
    if left.branch == branch:
        return left.turn
    last, count = index.left_behind(left.branch, branch)
    return min(left.turn, last) if count else left.turn


def side_branches(index: Index, branch: Branch) -> Iterator[SideBranch]:
    """The side branches of the branch's session that have turns which the branch lacks, by name."""
    others = [other for other in ancestry.side_branches(index, layout.session_of(branch.name)) if other != branch.name]
    brought = ancestry.merged_turns(index, branch.name) if others else {}
    for other in index.branches_named(others):
        last, count = index.left_behind(other.name, branch.name)
        if count:
            back = brought.get(other.name, ())
            known = sum(any(n in turns for turns in back) for n in range(last + 1, last + count + 1))
            yield SideBranch(other, last, count, known)


def _matching_rows(
    index: Index, branch: Branch, rows: list[Row], only: TurnFilter, open_store: Callable[[], Store]
) -> list[Row]:
    if only.since is not None:
        rows = [row for row in rows if row.time >= only.since]
    if only.commits is not None:
        rows = [row for row in rows if row.commit in only.commits]
    if not only.tool:
        return rows
    known = index.gists([row.commit for row in rows])
    unknown = [row for row in rows if row.commit not in known]
    if unknown:
        read = views.turn_gists(open_store(), index, branch, unknown)
        known |= {row.commit: gist for row, gist in zip(unknown, read, strict=True)}
    wanted = only.tool.lower()
    return [row for row in rows if any(tool.lower() == wanted for tool in known[row.commit].tools)]


def session_family(index: Index, branch: Branch) -> list[Branch]:
    """All sessions that come from the same first one, parents before their forks."""
    root, seen = branch, {branch.name}
    while root.state.origin is not None:
        parent = index.branch(layout.session_of(root.state.origin.session))
        if parent is None or parent.name in seen:
            break
        root = parent
        seen.add(parent.name)
    found, known = [root], {root.name}
    for member in found:
        forks = sorted(index.forks_of(layout.session_of(member.name)), key=lambda fork: (fork.state.created, fork.name))
        found += [fork for fork in forks if fork.name not in known]
        known |= {fork.name for fork in forks}
    return found
