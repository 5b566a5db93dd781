"""The conversations that there are, as families: forks under those they left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessgit.ops.resolve import of_project
from sessgit.store import layout
from sessgit.store.index import Branch, Index


@dataclass(frozen=True, slots=True)
class Entry:
    """A session, how deep it stands under the first of its family, and how many sessions left it."""

    branch: Branch
    depth: int
    forks: int
    last: bool
    """Whether no other fork of the same session follows."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Families, the one written last first; `total` counts all sessions of the store that have a turn."""

    entries: list[Entry]
    total: int

    def branches(self, limit: int | None = None) -> list[Branch]:
        return [entry.branch for entry in self.entries[:limit]]


def listing(index: Index, cwd: str | None) -> Listing:
    """The sessions of the project at a folder that were held by a person, or all sessions of the store."""
    everything = [branch for branch in index.branches() if not layout.is_rewound(branch.name)]
    if cwd is None:
        found = everything
    else:
        here = {branch.name for branch in of_project(index, cwd)}
        found = [b for b in everything if b.name in here and b.state.turns and not b.state.headless]
    return Listing(list(_families(found, everything)), len(everything))


def _families(found: list[Branch], everything: list[Branch]) -> Iterator[Entry]:
    shown = {branch.name for branch in found}
    forks: dict[str, list[Branch]] = {}
    count: dict[str, int] = {}
    for branch in everything:
        parent = _parent(branch)
        count[parent] = count.get(parent, 0) + 1
        if branch.name in shown:
            forks.setdefault(parent if parent in shown else "", []).append(branch)
    for members in forks.values():
        members.sort(key=lambda branch: (branch.state.created, branch.name))

    def below(branch: Branch, depth: int, last: bool) -> Iterator[Entry]:
        yield Entry(branch, depth, count.get(branch.name, 0), last)
        members = forks.get(branch.name, [])
        for member in members:
            yield from below(member, depth + 1, member is members[-1])

    families = [list(below(root, 0, True)) for root in forks.get("", [])]
    families.sort(key=lambda family: max(entry.branch.state.updated for entry in family), reverse=True)
    for family in families:
        yield from family


def _parent(branch: Branch) -> str:
    origin = branch.state.origin
    return layout.session_of(origin.session) if origin is not None else ""
