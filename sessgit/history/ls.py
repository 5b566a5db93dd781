"""Lists conversations as families, forks below the conversation that they left, or in another order."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from sessgit.history import turn_log
from sessgit.history.resolve import outlines_in_project
from sessgit.history.turn_log import Prices, families, grouped, side_branches
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.store import layout
from sessgit.store.index import Branch, ForkPlace, Index, Outline

Order = Literal["updated", "created", "accessed", "turns", "tokens", "cost", "name"]
Archived = Literal["", "also", "only"]
"""Which archived sessions are listed: none, all with the others, or they alone."""
State = Literal["live", "active", "ended", "interrupted", "failed", "aborted"]
"""`failed` and `aborted` are interrupted sessions of which the system that they come from says so."""


@frozen
class SessionFilter:
    """Which sessions to list, and in which order. None or empty selects all.

    `agent` is the name of one, such as claude. `folder` is a folder of the project, `since` and `before` are seconds
    since 1970, `live` the agent's ids of the sessions that are open in a client, `among` sets of sessions from
    other queries, `forks_of` a session whose descendants are listed, `children_of` one whose children are listed, and
    theirs. Headless, empty and archived sessions are listed only on request.
    """

    folder: str | None = None
    labels: tuple[str, ...] = ()
    agent: str = ""
    state: State | None = None
    stage: str = ""
    since: float | None = None
    before: float | None = None
    among: tuple[Collection[str], ...] = ()
    forks_of: str = ""
    children_of: str = ""
    archived: Archived = ""
    headless: bool = False
    empty: bool = False
    live: frozenset[str] = frozenset()
    order: Order | None = None
    reverse: bool = False

    @property
    def narrowed(self) -> bool:
        """Whether it selects by anything but the project."""
        related = self.forks_of or self.children_of
        return bool(
            self.labels or self.agent or self.state or self.stage or self.since is not None or self.among or related
        )


@frozen
class ListEntry:
    """A session, its depth below the first of its family, and the numbers of its forks and of its children.

    `left` is where it left another session, `merged` are the sessions that have all its own turns by a merge;
    `elsewhere` is the number of turns that other machines added and it lacks. In the order of access `accessed` is when
    it was last used, in RFC 3339, else empty.
    """

    branch: Branch
    depth: int
    forks: int
    children: int = 0
    left: ForkPlace | None = None
    merged: tuple[str, ...] = ()
    elsewhere: int = 0
    accessed: str = ""


@frozen
class SessionListing:
    """Families, the newest first, or single sessions in another order.

    `entries` are the sessions from `offset` on; `matching` counts all that fit, `total` all in the store.
    """

    entries: list[ListEntry]
    matching: int
    total: int
    offset: int = 0
    query: SessionFilter = field(default_factory=SessionFilter)

    @property
    def branches(self) -> list[Branch]:
        return [entry.branch for entry in self.entries]


@frozen
class HiddenCounts:
    """The numbers of sessions that the list of a project leaves out: headless and empty ones, and those of other
    projects."""

    headless: int
    empty: int
    elsewhere: int


def count_hidden(index: Index, folder: str, archived: Archived = "") -> HiddenCounts:
    """Return how many sessions the list of a folder's project leaves out."""
    outlines = _chosen_outlines(index, archived)
    near = outlines_in_project(outlines, folder)
    headless = sum(outline.headless for outline in near)
    empty = sum(not outline.headless and not is_begun(outline) for outline in near)
    return HiddenCounts(headless, empty, len(outlines) - len(near))


def matching_sessions(index: Index, query: SessionFilter) -> list[Outline]:
    """Return the sessions that fit, the newest first, whatever the order of the filter."""
    outlines = _chosen_outlines(index, query.archived)
    return _matching_outlines(index, outlines, query)


def list_sessions(index: Index, query: SessionFilter, limit: int | None, offset: int, prices: Prices) -> SessionListing:
    """Return the sessions that fit, at most `limit` of them; only their states are read."""
    outlines = _chosen_outlines(index, query.archived)
    matching = _matching_outlines(index, outlines, query)
    forks, children = grouped(outlines, "parent"), grouped(outlines, "child_of")
    keys = _sort_keys(index, matching, query.order, prices) if query.order else {}
    if query.order is None:
        newest_first = sorted(families(matching), key=lambda family: max(o.updated for o, _ in family), reverse=True)
        places = [(outline.name, depth) for family in newest_first for outline, depth in family]
    else:  # the largest or newest first, or by name
        places = [(name, 0) for name in sorted(keys, key=lambda name: keys[name], reverse=query.order != "name")]
    if query.reverse:
        places.reverse()
    shown = places[offset:] if limit is None else places[offset : offset + limit]
    branches = {branch.name: branch for branch in index.branches_named([name for name, _ in shown])}
    merged, diverged = index.merged_elsewhere(), index.sessions_of_other_machines()
    left = index.fork_places(list(branches))
    entries = [
        ListEntry(
            branches[name],
            depth,
            len(forks.get(name, ())),
            len(children.get(name, ())),
            left.get(name),
            tuple(_fully_merged_into(branches[name], left.get(name), merged.get(name, {}))),
            sum(side.open for side in side_branches(index, branches[name]) if not side.rewound)
            if name in diverged
            else 0,
            keys[name] if query.order == "accessed" else "",
        )
        for name, depth in shown
        if name in branches
    ]
    return SessionListing(entries, len(matching), len(outlines), offset, query)


def _fully_merged_into(branch: Branch, left: ForkPlace | None, back: Mapping[str, Sequence[range]]) -> Iterator[str]:
    """Yield the sessions that have all own turns of the branch; `back` are the turns that were merged into each."""
    first = left.turn + bool(left.cell) + 1 if left else 1
    own = range(first, branch.state.turns + 1)
    for into, turns in back.items():
        if own and into == layout.session_of(into) and covers_range(turns, own):
            yield into


def is_begun(outline: Outline) -> bool:
    """Return whether a session has turns, or was given a name, a title or a parent."""
    return bool(outline.turns or outline.authored_name or outline.title or outline.child_of)


def covers_range(parts: Sequence[range], whole: range) -> bool:
    """Return whether each number of a range is in one of the others."""
    reached = whole.start
    for part in sorted(parts, key=attrgetter("start")):
        if part.start > reached:
            break
        reached = max(reached, part.stop)
    return reached >= whole.stop


def _matching_outlines(index: Index, outlines: Sequence[Outline], query: SessionFilter) -> list[Outline]:
    """Return the sessions that fit, in their order."""
    if query.folder is not None:
        outlines = outlines_in_project(outlines, query.folder)
    below = _descendants(grouped(index.outlines(), "parent"), query.forks_of) if query.forks_of else None
    if query.children_of:
        children = _descendants(grouped(index.outlines(), "child_of"), query.children_of)
        below = children if below is None else below & children
    since = "" if query.since is None else canonical.rfc3339(query.since)
    before = None if query.before is None else canonical.rfc3339(query.before)
    labels = set(query.labels)
    statuses = {name: facts.get("status") for name, facts in index.imported_facts().items()} if query.state else {}
    return [
        outline
        for outline in outlines
        if (below is None or outline.name in below)
        and (query.headless or not outline.headless)
        and (query.empty or is_begun(outline))
        and (not labels or labels <= set(json.loads(outline.labels)))
        and _has_state(outline, query, statuses.get(outline.name))
        and query.stage in ("", outline.stage)
        and query.agent in ("", outline.agent)
        and outline.updated >= since
        and (before is None or "" < (outline.updated or outline.created) < before)
        and all(outline.name in chosen for chosen in query.among)
    ]


def _has_state(outline: Outline, query: SessionFilter, status: object) -> bool:
    if query.state == "live":
        return outline.agent_id in query.live
    state = status if outline.status == "interrupted" and status in ("failed", "aborted") else outline.status
    return query.state in (None, state)


def _descendants(forks: Mapping[str, Sequence[Outline]], session: str) -> set[str]:
    """Return the forks or children of a session, and those of each."""
    found, waiting = set[str](), [session]
    while waiting:
        new = [fork.name for fork in forks.get(waiting.pop(), ()) if fork.name not in found]
        found.update(new)
        waiting += new
    return found


def _chosen_outlines(index: Index, archived: Archived) -> list[Outline]:
    return [outline for outline in index.outlines() if archived == "also" or outline.archived == bool(archived)]


def _sort_keys(index: Index, outlines: Sequence[Outline], order: Order, prices: Prices) -> dict[str, Any]:
    """Return what orders the sessions, by name; those that cannot be read are left out.

    A session was last used at the time of its last turn, of its transcript, or of what the system from which it was
    imported says, whichever is the latest.
    """
    if order in ("updated", "created", "turns"):
        return {outline.name: getattr(outline, order) for outline in outlines}
    names = [outline.name for outline in outlines]
    read = {branch.name: branch.state for branch in index.branches_named(names)}
    states = {name: read[name] for name in names if name in read}
    if order == "name":
        return {name: state.display_title.casefold() for name, state in states.items()}
    if order == "tokens":
        return {name: turn_log.total_tokens(state).total for name, state in states.items()}
    if order == "cost":
        return {name: turn_log.session_cost(state, prices) or 0.0 for name, state in states.items()}
    facts, times = index.imported_facts(), dict[str, str]()
    for name, state in states.items():
        known = [state.updated, state.created]
        with suppress(OSError):
            known.append(canonical.rfc3339(Path(state.transcript).stat().st_mtime) if state.transcript else "")
        imported = canonical.seconds(str(facts.get(name, {}).get("lastAccessedAt", "")))
        times[name] = max(*known, "" if imported is None else canonical.rfc3339(imported))
    return times
