"""A session recorded once more from all copies of its file, as if they had come at once.

The newest version becomes the head with its rewound branches. Of an older one those branches stay, as branches of
another file, that have lines which no newer one has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sessgit.agents.base import Cutter
from sessgit.agents.reader import Opened, Redact
from sessgit.model.versions import Version
from sessgit.record.copies import RecordedCopies, is_derived
from sessgit.record.index_updates import IndexUpdates
from sessgit.record.source import IsolatedRecording, TranscriptSource
from sessgit.record.tip_delivery import free_name
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.cursor import Cursor
from sessgit.store.store import Store

_NOWHERE = Path("/dev/null/none")
"""Where nothing lies beside a file."""


class FilePass(Protocol):
    """What a recording of one file offers."""

    store: Store
    index: Index
    session: str
    source: TranscriptSource
    file: Opened
    redact: Redact
    old_head: str
    prefix: int
    others: list[str]
    is_known: bool
    noted: IndexUpdates
    committed: list[tuple[int, str]]

    def apart(self, source: TranscriptSource, file: Opened, alone: IsolatedRecording) -> FilePass:
        """Returns a pass over another file, as if nothing of its session were recorded."""

    def begun(self) -> Cutter:
        """Returns a cutter that reads the file from its beginning."""

    def cut(self, cutter: Cutter) -> dict[str, str]:
        """Writes the commits; returns the branches as they must be then."""

    def move(self, before: Mapping[str, str], tips: Mapping[str, str]) -> None:
        """Moves the branches that have changed."""

    def remember(self, cutter: Cutter, tips: dict[str, str]) -> None:
        """Keeps how far the file is recorded."""


@dataclass
class RecordedVersions:
    """The branches as they are then, the numbers of turns that were written, and whether a branch moved."""

    tips: dict[str, str]
    turns: tuple[int, ...] = ()
    changed: bool = False


def record_copies(current: FilePass) -> RecordedVersions | None:
    """Records the file as one of several copies of its session's; None where it goes on from what is recorded, or where
    that does not follow from lines alone."""
    if current.prefix and not current.source.imported:
        return None  # a fork goes on: of its file nothing is laid out again
    store, session = current.store, current.session
    known, branches = cursors.load_cursor(store.beside, session), store.branches(session)
    copies = RecordedCopies(
        store, session, current.file, current.redact, current.source.agent, known.copies if known else ()
    )
    if copies.is_head:
        return None
    is_ours = known is not None and known.commit == current.old_head
    is_ours = is_ours and all(name in current.others for name in branches if layout.is_other_version(name))
    is_ours = is_ours and not copies.is_restored
    if not is_ours or not current.source.is_copy or not is_derived(store, current.index, session, branches):
        current.is_known = copies.is_known
        return None
    made = _VersionWriter(current, copies)
    if copies.is_known:
        made.tips, made.version = dict(branches), copies.head
    else:
        made.all()
    current.move(branches, made.tips)
    others = sorted(filter(layout.is_other_version, made.tips))
    if made.head is not None:
        made.head[0].others = others
        made.head[0].remember(made.head[1], made.tips)
    else:
        _remember_file(current, known, [len(copy.rows) for copy in made.version], others, made.tips[session])
        current.index.sync(session)
    for one in made.passes:
        one.noted.keep(current.index)
    return RecordedVersions(made.tips, made.turns(), made.tips != branches)


class _VersionWriter:
    """The branches that the copies make. `head` is the pass that read the file at hand as all of the head's version,
    and its cutter, if there is one."""

    def __init__(self, current: FilePass, copies: RecordedCopies) -> None:
        self.current, self.copies, self.store = current, copies, copies.store
        self.tips: dict[str, str] = {}
        self.version: Version = ()
        self.passes: list[FilePass] = []
        self.head: tuple[FilePass, Cutter] | None = None
        self._sides: dict[str, dict[str, tuple[str, bool]]] = {}
        self._folders: set[str] = set()

    def all(self) -> None:
        """Writes the commits of all versions that are not recorded as they are."""
        self._sides, self._folders = _recorded_turns(self.store, self.copies.session, self.copies.branches)
        session, covered = self.copies.session, set[bytes]()
        for version in self.copies.versions():
            own = self._kept(version) or self._written(version)
            if not self.tips:
                self.tips, self.version = own, version
                covered = self.copies.lines(own)
                continue
            for branch in sorted(own, key=lambda name: (name != session, name)):
                lines = self.copies.lines({session: own[branch]})
                if not lines <= covered:
                    covered |= lines
                    name = free_name(self.store, session, own[branch], self.tips[session], self.tips)
                    self.tips[name] = own[branch]

    def turns(self) -> tuple[int, ...]:
        """Returns the numbers of the turns that were not recorded as they are."""
        written = ((number, commit) for one in self.passes for number, commit in one.committed)
        return tuple(
            number for number, commit in written if _turn_tree(self.store, commit, number) not in self._folders
        )

    def _kept(self, version: Version) -> dict[str, str]:
        """The branches of a version that is recorded as it is, the head's under the session's id."""
        if version == self.copies.head:
            return {name: tip for name, tip in self.copies.branches.items() if not layout.is_other_version(name)}
        name = next((name for name, copy in self.copies.others.items() if version == (copy,)), "")
        return {self.copies.session: self.copies.branches[name]} if name else {}

    def _written(self, version: Version) -> dict[str, str]:
        """The branches of a version, recorded as if nothing of the session were."""
        current, source = self.current, self.current.source
        state = self.store.state(self.copies.branches[self.copies.session])
        source = replace(
            source,
            path=source.path if any(row.copy == 0 for copy in version for row in copy.rows) else _NOWHERE,
            place=str(source.path) if source.is_in_place else state.transcript,
            final=source.final or bool(self.tips),
        )
        with self.copies.opened(version) as found:
            alone = IsolatedRecording(state.rules, found.redact, self._sides)
            made = current.apart(source, found.file, alone)
            cutter = made.begun()
            tips = made.cut(cutter)
        if not self.tips and version == (self.copies.new,):
            self.head = made, cutter
        self.passes.append(made)
        return tips


def _remember_file(current: FilePass, known: Cursor | None, seams: list[int], others: list[str], tip: str) -> None:
    """Remembers a file that is not the head's as one that is read from its beginning when it has grown; another one
    stays remembered, unless this lies where the client looks."""
    path, size = str(current.source.path), current.file.size
    if known is not None and known.path != path and not current.source.is_in_place:
        current_turn = known.current if known.commit == tip else None
        made = replace(known, commit=tip, current=current_turn, copies=seams, others=others)
    else:
        proof, final = cursors.prefix_proof(current.file.file, size), current.source.final
        made = Cursor(path, current.file.inode, size, proof, tip, None, final=final, copies=seams, others=others)
    cursors.save_cursor(current.store.beside, current.session, made)


def _recorded_turns(
    store: Store, session: str, branches: Mapping[str, str]
) -> tuple[dict[str, dict[str, tuple[str, bool]]], set[str]]:
    """By the key of each recorded turn what is recorded beside its lines, and the folders of all turns."""
    sides: dict[str, dict[str, tuple[str, bool]]] = {}
    folders = set[str]()
    for tip in branches.values():
        for commit in store.repo.first_parents(tip):
            message = store.message(commit.id)
            number, key = message.number("Turn"), message.get("Prompt")
            if not number or not key:
                continue
            folders.add(_turn_tree(store, commit.id, number))
            held = store.folder(commit.id, number)
            found = (store.repo.files(held[name][0], name) for name in (layout.SUBAGENTS, layout.FILES) if name in held)
            for files in found:
                sides[key] = {**files, **sides.get(key, {})}
    return sides, folders


def _turn_tree(store: Store, commit: str, number: int) -> str:
    entry = store.repo.entry(store.tree(commit), layout.turn_folder(number))
    return entry[0] if entry else ""
