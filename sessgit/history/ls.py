"""The conversations that there are, as families: forks under those they left."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from sessgit.history import views
from sessgit.history.log import side_branches
from sessgit.history.resolve import outlines_in_project, session_title
from sessgit.history.views import Prices
from sessgit.model import canonical
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import ancestry
from sessgit.store.sqlite.ancestry import ForkPlace
from sessgit.store.sqlite.rows import Branch, Outline

Order = Literal["updated", "created", "turns", "tokens", "cost", "name"]
State = Literal["live", "active", "ended", "interrupted"]


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions, in which order; what is None or empty chooses nothing.

    `folder` is a folder of the project, `since` and `before` are seconds since 1970, `live` the agent's ids of the
    sessions that are open in a client, `among` sessions that were chosen elsewhere, `forks_of` the session whose
    descendants are wanted. Headless sessions and those without a turn are left out where not wanted; archived ones
    stand by themselves.
    """

    folder: str | None = None
    labels: tuple[str, ...] = ()
    state: State | None = None
    stage: str = ""
    since: float | None = None
    before: float | None = None
    among: tuple[Collection[str], ...] = ()
    forks_of: str = ""
    archived: bool = False
    headless: bool = False
    empty: bool = False
    live: frozenset[str] = frozenset()
    order: Order | None = None
    reverse: bool = False

    @property
    def narrowed(self) -> bool:
        """Whether anything but the project chooses."""
        return bool(self.labels or self.state or self.stage or self.since is not None or self.among or self.forks_of)


@dataclass(frozen=True, slots=True)
class ListEntry:
    """A session, how deep it stands under the first of its family, and how many sessions left it.

    `left` is where it leaves another one, `merged` are the sessions to which all that it has of its own was brought
    back; `elsewhere` counts the turns that other machines added and that it lacks.
    """

    branch: Branch
    depth: int
    forks: int
    left: ForkPlace | None = None
    merged: tuple[str, ...] = ()
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class SessionListing:
    """Families, the one written last first, or single sessions in the order that was wanted.

    `found` counts the sessions that were chosen, `entries` are those from `offset` on; `total` counts all of the store.
    """

    entries: list[ListEntry]
    found: int
    total: int
    offset: int = 0
    wanted: SessionFilter = field(default_factory=SessionFilter)

    @property
    def branches(self) -> list[Branch]:
        return [entry.branch for entry in self.entries]


@dataclass(frozen=True, slots=True)
class HiddenCounts:
    """What the list of a project leaves out: how many headless sessions and how many without a turn are there, and
    how many are elsewhere."""

    headless: int
    empty: int
    elsewhere: int


def count_hidden(index: Index, folder: str, *, archived: bool = False) -> HiddenCounts:
    """What is in the store beside the sessions that are listed in a folder."""
    everything = [outline for outline in index.outlines() if outline.archived == archived]
    near = outlines_in_project(everything, folder)
    headless = sum(outline.headless for outline in near)
    empty = sum(not outline.headless and not outline.turns for outline in near)
    return HiddenCounts(headless, empty, len(everything) - len(near))


def matching_sessions(index: Index, wanted: SessionFilter) -> list[Outline]:
    """The sessions that are wanted, the one written last first, whatever the order that is wanted."""
    everything = [outline for outline in index.outlines() if outline.archived == wanted.archived]
    return list(_matching_outlines(index, everything, wanted))


def list_sessions(
    index: Index, wanted: SessionFilter, limit: int | None, offset: int, prices: Prices
) -> SessionListing:
    """The sessions that are wanted, at most `limit` of them; only of those the states are read."""
    everything = [outline for outline in index.outlines() if outline.archived == wanted.archived]
    found = list(_matching_outlines(index, everything, wanted))
    forks = _forks_by_parent(everything)
    if wanted.order is None:
        places = list(_families_with_depth(found, forks))
    else:
        places = [(outline.name, 0) for outline in _sorted_outlines(index, found, wanted.order, prices)]
    if wanted.reverse:
        places.reverse()
    shown = places[offset:] if limit is None else places[offset : offset + limit]
    branches = {branch.name: branch for branch in index.branches_named([name for name, _ in shown])}
    back, apart, left = (
        ancestry.merged_elsewhere(index),
        ancestry.sessions_of_other_machines(index),
        ancestry.fork_places(index, list(branches)),
    )
    entries = [
        ListEntry(
            branches[name],
            depth,
            len(forks.get(name, ())),
            left.get(name),
            tuple(_fully_merged_into(branches[name], left.get(name), back.get(name, {}))),
            sum(one.open for one in side_branches(index, branches[name]) if not one.rewound) if name in apart else 0,
        )
        for name, depth in shown
        if name in branches
    ]
    return SessionListing(entries, len(found), len(everything), offset, wanted)


def _fully_merged_into(branch: Branch, left: ForkPlace | None, back: Mapping[str, Sequence[range]]) -> Iterator[str]:
    """Those of the sessions that turns of the branch were brought to which have got all that are its own."""
    first = left.turn + bool(left.cell) + 1 if left else 1
    own = range(first, branch.state.turns + 1)
    for into, turns in back.items():
        if own and into == layout.session_of(into) and covers_range(turns, own):
            yield into


def covers_range(parts: Sequence[range], whole: range) -> bool:
    """Whether each number of a range is in one of the others; as quick for long ranges as for short ones."""
    reached = whole.start
    for part in sorted(parts, key=attrgetter("start")):
        if part.start > reached:
            break
        reached = max(reached, part.stop)
    return reached >= whole.stop


def _matching_outlines(index: Index, everything: Sequence[Outline], wanted: SessionFilter) -> Iterator[Outline]:
    if wanted.folder is not None:
        everything = outlines_in_project(everything, wanted.folder)
    below = _descendants(index, wanted.forks_of) if wanted.forks_of else None
    tests = list(_filter_tests(wanted))
    for outline in everything:
        if below is not None and outline.name not in below:
            continue
        if all(test(outline) for test in tests) and all(outline.name in chosen for chosen in wanted.among):
            yield outline


def _filter_tests(wanted: SessionFilter) -> Iterator[Callable[[Outline], bool]]:
    if not wanted.headless:
        yield lambda outline: not outline.headless
    if not wanted.empty:
        yield lambda outline: outline.turns > 0
    if wanted.labels:
        yield lambda outline: set(wanted.labels) <= set(json.loads(outline.labels))
    if wanted.state == "live":
        yield lambda outline: outline.agent_id in wanted.live
    elif wanted.state:
        yield lambda outline: outline.state == wanted.state
    if wanted.stage:
        yield lambda outline: outline.stage == wanted.stage
    if wanted.since is not None:
        moment = canonical.rfc3339(wanted.since)
        yield lambda outline: outline.updated >= moment
    if wanted.before is not None:
        limit = canonical.rfc3339(wanted.before)
        yield lambda outline: "" < (outline.updated or outline.created) < limit


def _descendants(index: Index, session: str) -> set[str]:
    forks = _forks_by_parent(index.outlines())
    found, waiting = set[str](), [session]
    while waiting:
        new = [fork.name for fork in forks.get(waiting.pop(), ()) if fork.name not in found]
        found.update(new)
        waiting += new
    return found


def _forks_by_parent(everything: Iterable[Outline]) -> dict[str, list[Outline]]:
    """The sessions that left each session."""
    forks: dict[str, list[Outline]] = {}
    for outline in everything:
        if outline.parent and outline.parent != outline.name:
            forks.setdefault(outline.parent, []).append(outline)
    return forks


def _sorted_outlines(index: Index, found: Sequence[Outline], order: Order, prices: Prices) -> list[Outline]:
    """Largest and newest first, names from a to z."""
    if order in ("updated", "created", "turns"):
        return sorted(found, key=attrgetter(order), reverse=True)
    states = {b.name: b.state for b in index.branches_named([outline.name for outline in found])}
    if order == "name":
        return sorted(found, key=lambda outline: session_title(states[outline.name]).casefold())
    sizes = {
        name: views.total_tokens(state).total if order == "tokens" else views.session_cost(state, prices) or 0.0
        for name, state in states.items()
    }
    return sorted(found, key=lambda outline: sizes[outline.name], reverse=True)


def _families_with_depth(found: Sequence[Outline], forks: dict[str, list[Outline]]) -> Iterator[tuple[str, int]]:
    """Each session and how deep it stands; a fork whose parent is not among those found stands by itself."""
    shown = {outline.name: outline for outline in found}
    roots = [outline for outline in found if outline.parent not in shown or outline.parent == outline.name]
    seen: set[str] = set()

    def family(root: Outline) -> list[tuple[str, int]]:
        out: list[tuple[str, int]] = []
        waiting = [(root, 0)]
        while waiting:
            outline, depth = waiting.pop()
            if outline.name in seen:
                continue
            seen.add(outline.name)
            out.append((outline.name, depth))
            below = [fork for fork in forks.get(outline.name, ()) if fork.name in shown]
            below.sort(key=lambda fork: (fork.created, fork.name), reverse=True)
            waiting += [(fork, depth + 1) for fork in below]
        return out

    # Those that name each other as parents, which only a damaged or foreign store holds, have no root among them.
    families = [members for root in (*roots, *found) if (members := family(root))]
    families.sort(key=lambda members: max(shown[name].updated for name, _ in members), reverse=True)
    for members in families:
        yield from members
