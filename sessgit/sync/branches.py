"""The refs of a store or a remote, by session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sessgit.store import layout
from sessgit.store.transaction import Move

_REF_SPACES = (layout.HEADS, layout.ARCHIVE, layout.DELETED)


@dataclass(frozen=True, slots=True)
class SessionRefs:
    """What one side holds of a session, by the full names of the refs."""

    session: str
    refs: Mapping[str, str] = field(default_factory=dict)

    @property
    def branches(self) -> dict[str, str]:
        """Its branches and their tips; where one is both live and archived, the live one counts."""
        found: dict[str, str] = {}
        for space in (layout.ARCHIVE, layout.HEADS):
            found |= {ref.removeprefix(space): tip for ref, tip in self.refs.items() if ref.startswith(space)}
        return found

    @property
    def shadowed(self) -> dict[str, str]:
        """What is archived beside a live branch of the same name and another tip, by names that no branch has."""
        found = {
            name: tip for name, tip in self.branches.items() if self.refs.get(layout.archive_ref(name), tip) != tip
        }
        tips = sorted({self.refs[layout.archive_ref(name)] for name in found})
        return {f"{self.session}.archived-{tip[:8]}": tip for tip in tips}

    @property
    def tips(self) -> list[str]:
        """All that its branches hold, live and archived."""
        return sorted({tip for ref, tip in self.refs.items() if ref.startswith((layout.HEADS, layout.ARCHIVE))})

    @property
    def head(self) -> str:
        """The tip of its head, or ``""``."""
        return self.refs.get(layout.head_ref(self.session)) or self.refs.get(layout.archive_ref(self.session)) or ""

    @property
    def archived(self) -> bool:
        return layout.head_ref(self.session) not in self.refs and layout.archive_ref(self.session) in self.refs

    @property
    def tombstone(self) -> str:
        """The tombstone of a session that is not there, or ``""``."""
        return "" if self.head else self.refs.get(layout.tombstone_ref(self.session), "")

    def after(self, moves: Iterable[Move]) -> SessionRefs:
        """What it holds once its refs were moved."""
        return SessionRefs(self.session, refs_after(self.refs, moves))


def refs_after(refs: Mapping[str, str], moves: Iterable[Move]) -> dict[str, str]:
    """The refs once they were moved."""
    moved = {move.ref: move.new for move in moves}
    return {ref: tip for ref, tip in {**refs, **moved}.items() if tip is not None}


def refs_by_session(refs: Mapping[str, str]) -> dict[str, SessionRefs]:
    """What a side holds of each session."""
    found: dict[str, dict[str, str]] = {}
    for ref, oid in refs.items():
        for space in _REF_SPACES:
            if ref.startswith(space):
                found.setdefault(layout.session_of(ref[len(space) :]), {})[ref] = oid
    return {session: SessionRefs(session, own) for session, own in found.items()}


def planned_moves(held: SessionRefs, branches: Mapping[str, str], *, archived: bool) -> list[Move]:
    """What must move so that the side has these branches, live or archived; those that it has besides go along."""
    space, other = (layout.ARCHIVE, layout.HEADS) if archived else (layout.HEADS, layout.ARCHIVE)
    # A branch that is archived beside a live one of the same name does not count, and stays where it is.
    leaves = other == layout.HEADS or held.archived
    found = list[Move]()
    for name, tip in {**held.branches, **branches}.items():
        there = held.refs.get(space + name)
        if there != tip:
            found.append(Move(space + name, there, tip))
        if leaves and other + name in held.refs:
            found.append(Move(other + name, held.refs[other + name], None))
    return found
