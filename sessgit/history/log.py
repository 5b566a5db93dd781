"""What happened in a conversation, turn by turn, and what left it on the way; families of conversations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from sessgit.errors import SessgitError
from sessgit.history import views
from sessgit.model.frozen import frozen
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, ForkPlace, Index, Outline, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store


@frozen
class SideBranch:
    """A side branch that has `count` turns after turn `turn` which the branch lacks: a rewind left them behind, or they
    are from another machine. `merged` of them were merged back since."""

    branch: Branch
    turn: int
    count: int
    merged: int = 0

    @property
    def open(self) -> int:
        """The number of turns that were not merged back."""
        return max(0, self.count - self.merged)

    @property
    def rewound(self) -> bool:
        """Whether a rewind left them behind."""
        return layout.is_rewound_branch(self.branch.name)


@frozen
class ForkEntry:
    """A session that left this one: the last turn that it shares with the branch, the cell of the next turn if it left
    inside that, as `7.3`, and where it `left` this session, which may be another branch of it."""

    branch: Branch
    turn: int
    cell: str
    left: ForkPlace

    @property
    def is_elsewhere(self) -> bool:
        """Whether it left another branch of the session, after that one's fork from this one."""
        return (self.turn, self.cell) != (self.left.turn, self.left.cell)


@frozen
class BranchLog:
    """The turns of a branch, oldest first, with forks and side branches by the last turn that they share with it."""

    branch: Branch
    rows: list[Row]
    forks: dict[int, list[ForkEntry]] = field(default_factory=dict)
    left: dict[int, list[SideBranch]] = field(default_factory=dict)
    merged: dict[int, list[str]] = field(default_factory=dict)
    """By turn the branches that were merged after it, including those without a turn to copy."""
    narrowed: bool = False
    """Whether a filter left out turns."""


@frozen
class TurnFilter:
    """Which turns to select: those since a time (seconds since 1970), those that used a tool, those that end with one
    of some commits. None or empty selects all."""

    since: float | None = None
    tool: str = ""
    commits: Collection[str] | None = None

    @property
    def narrows(self) -> bool:
        """Whether it can leave out a turn."""
        return self.since is not None or bool(self.tool) or self.commits is not None

    def select(self, index: Index, branch: Branch, rows: list[Row]) -> list[Row]:
        """Return the turns that fit. Those of which the index does not know the tools are read from the store."""
        if self.since is not None:
            rows = [row for row in rows if row.time >= self.since]
        if self.commits is not None:
            rows = [row for row in rows if row.commit in self.commits]
        if not self.tool:
            return rows
        gists = views.turn_gists(Context(index), branch, rows)
        tool = self.tool.lower()
        return [row for row, gist in zip(rows, gists, strict=True) if any(name.lower() == tool for name in gist.tools)]


def branch_log(
    index: Index,
    branch: Branch,
    turn: int | None = None,
    limit: int | None = None,
    only: TurnFilter | None = None,
) -> BranchLog:
    """Return the log of a branch up to a turn, or of all of it, with the last `limit` turns that fit the filter."""
    session = branch.session
    end = branch.state.turns if turn is None else turn
    narrowed = only is not None and only.narrows
    if only is not None and narrowed:
        rows = only.select(index, branch, index.turns(branch.name, 1, end))
        rows = rows if limit is None else rows[max(0, len(rows) - limit) :]
    else:
        rows = index.turns(branch.name, 1 if limit is None else end - limit + 1, end)
    forks: dict[int, list[ForkEntry]] = {}
    for fork in sorted(index.forks_of(session), key=lambda fork: (fork.state.created, fork.name)):
        at = index.fork_place(fork)
        if fork.name != session and at is not None and (shared := last_shared_turn(index, branch.name, at)) <= end:
            cell = at.cell if at.branch == branch.name else ""
            forks.setdefault(shared, []).append(ForkEntry(fork, shared, cell, at))
    left: dict[int, list[SideBranch]] = {}
    for side in side_branches(index, branch):
        if side.turn <= end:
            left.setdefault(side.turn, []).append(side)
    merged: dict[int, list[str]] = {}
    if index.has_silent_merges(branch.name):
        with suppress(SessgitError):  # merges of a damaged history are not listed
            for theirs, number in list_merges(index.open_store(), branch):
                merged.setdefault(number, []).insert(0, theirs)
    return BranchLog(branch, rows, forks, left, merged, narrowed)


def last_shared_turn(index: Index, branch: str, left: ForkPlace) -> int:
    """Return the last turn that a fork shares with a branch of the session that it left, maybe from another branch."""
    if left.branch == branch:
        return left.turn
    last, count = index.left_behind(left.branch, branch)
    return min(left.turn, last) if count else left.turn


def side_branches(index: Index, branch: Branch) -> Iterator[SideBranch]:
    """Yield by name the side branches of the branch's session that have turns which the branch lacks."""
    others = [other for other in index.side_branches(branch.session) if other != branch.name]
    merged = index.merged_turns(branch.name) if others else {}
    for other in index.branches_named(others):
        last, count = index.left_behind(other.name, branch.name)
        if count:
            parts = merged.get(other.name, ())
            back = sum(any(number in part for part in parts) for number in range(last + 1, last + count + 1))
            yield SideBranch(other, last, count, back)


def list_merges(store: Store, branch: Branch) -> Iterator[tuple[str, int]]:
    """Yield the branches that were merged into a branch, each with the last turn that it had then; a fork has none of
    those of the session that it left."""
    waiting: list[str] = []
    for commit in store.repo.first_parents(branch.tip):
        message = store.message(commit.id)
        is_own = message.get("Session") == branch.name
        if is_own and message.get("Event") == "merge":
            named = message.get("Origin").partition("@")[0]
            merged = [store.message(parent).get("Session") for parent in commit.parents[1:]]
            waiting += [named if layout.session_of(named) == session else session for session in merged]
        if number := message.number("Turn"):
            yield from ((theirs, number) for theirs in waiting if theirs != branch.name)
            waiting = []
        if not is_own and not waiting:
            return


# Families


def grouped(outlines: Iterable[Outline], link: Literal["parent", "child_of", "above"]) -> dict[str, list[Outline]]:
    """Return the forks of each session, its children, or both, in their order."""
    above, groups = attrgetter(link), dict[str, list[Outline]]()
    for outline in outlines:
        if above(outline) and above(outline) != outline.name:
            groups.setdefault(above(outline), []).append(outline)
    return groups


def families(outlines: Iterable[Outline]) -> list[list[tuple[Outline, int]]]:
    """Return the families of the sessions, each as its sessions and their depth, every session before its forks and
    children and older ones first. A session whose parent is not among them is the first of a family.

    If sessions name each other as parents, as only in a damaged store, the first by name is the first of the family.
    """
    known = {outline.name: outline for outline in outlines}
    forks = grouped(known.values(), "above")
    for members in forks.values():
        members.sort(key=lambda fork: (fork.created, fork.name), reverse=True)
    found = []
    for root in dict.fromkeys(_family_roots(known).values()):
        family, waiting = [], [(known[root], 0)]
        while waiting:
            outline, depth = waiting.pop()
            family.append((outline, depth))
            waiting += [(fork, depth + 1) for fork in forks.get(outline.name, ()) if fork.name != root]
        found.append(family)
    return found


def session_family(index: Index, branch: Branch) -> list[tuple[Branch, int]]:
    """Return the sessions of the branch's family and their depth, every session before its forks."""
    session = branch.session
    own = next((one for one in families(index.outlines()) if any(member.name == session for member, _ in one)), [])
    branches = {found.name: found for found in index.branches_named([member.name for member, _ in own])}
    return [(branches[member.name], depth) for member, depth in own if member.name in branches]


def _family_roots(known: Mapping[str, Outline]) -> dict[str, str]:
    """Return the first session of each session's family, in the order of the sessions."""
    parents = {o.name: o.above for o in known.values() if o.above in known and o.above != o.name}
    roots: dict[str, str] = {}
    for start in known:
        path: dict[str, int] = {}
        name = start
        while name not in roots and name not in path and name in parents:
            path[name] = len(path)
            name = parents[name]
        root = roots.get(name) or (min(list(path)[path[name] :]) if name in path else name)
        roots.update(dict.fromkeys([*path, name], root))
    return {name: roots[name] for name in known}
