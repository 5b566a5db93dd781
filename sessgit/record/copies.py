"""A session recorded from several files: pieces of one, older copies, one that the client wrote anew.

The cursor keeps the set of these copies, each as the digests of its lines. The branches are a function of that set:
the newest version that the copies make becomes the head with its rewound branches, and of an older version those
branches stay, as branches of another file, that have lines which no newer one has.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from sessgit.agents.cutter import Cutter
from sessgit.agents.line import Line, Opened, Redact, no_redaction
from sessgit.history import reassemble
from sessgit.model.conversation.message import Extent
from sessgit.record.file_pass import FilePass, RecordingResult
from sessgit.record.source import RecordedSession
from sessgit.record.tip_delivery import free_name
from sessgit.store import layout, operations, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.objects import Entry
from sessgit.store.recorder_state import Cursor
from sessgit.store.store import Store

_DERIVED_EVENTS = ("start", "turn", "compact", "end")
"""The events of commits that follow from the lines of files alone."""
_LIVE_TRAILERS = ("Project-Head", "Origin", "File")
"""Trailers with information that is not in any line."""
_REDACTION_MARK = b"[redacted:"
_CHUNK = 8 << 20
_SidesByTurn = dict[str, dict[str, Entry]]
"""The entries of recorded sidecar files by the key of their turn and their path in its folder."""
_NO_SIDECARS = Path("/dev/null/none")
"""The path of a version without sidecar files."""


def record_copies(current: FilePass) -> tuple[RecordingResult | None, bool]:
    """Record the file as one of several copies, unless it continues what is recorded, or the recorded commits do not
    follow from lines alone: then the result is None. Return also whether all of its lines are recorded."""
    if current.file.prefix and not current.source.imported:
        return None, False  # the file of a fork that goes on is never a copy
    store, session, known = current.store, current.session, current.known.cursor
    copies = _Copies(current)
    branches = copies.branches
    is_head = copies.new == copies.head  # which may be put together from pieces: then the file contains more
    if is_head and copies.new in copies.recorded:
        return None, False
    is_ours = (
        known is not None
        and known.commit == current.known.head
        and set(filter(layout.is_other_version, branches)).issubset(known.others)
        and not copies.is_restored
    )
    is_copy = current.source.is_copy or copies.is_rewritten
    if not is_ours or not is_copy or not _is_derived(current.context, session, branches):
        return None, copies.is_known and not is_head
    every = [*copies.recorded, copies.new]
    before, after = versions(copies.recorded), versions(every)
    sides, folders = _recorded_turns(store, branches)
    tips, passes = copies.write(after, before[0], sides) if before != after else (dict(branches), [])
    current.move(branches, tips)
    others = sorted(filter(layout.is_other_version, tips))
    kept = [copies.dump(copy) for copy in _maximal_copies(every) if (copy,) != after[0]]
    if passes and passes[0].version == after[0] == (copies.new,):
        passes[0].writer.save_cursor(passes[0].cutter, tips, kept, others)
    else:
        _save_cursor(current, kept, others, tips[session])
        current.context.index.sync(session)
    for one in passes:
        one.writer.index_updates.keep(current.context.index)
    written = [(node.number, commit) for one in passes for node, commit, _ in one.writer.written]
    turns = tuple(number for number, commit in written if _turn_tree(store, commit, number) not in folders)
    return RecordingResult(session, turns, tips != branches, tips[session]), False


class _Copies:
    """The recorded copies of a session's file, and the file at hand, which a pass is to record."""

    def __init__(self, current: FilePass) -> None:
        self.current = current
        self.branches = current.store.branches(current.session)
        self.secrets = 0
        """How many secrets were replaced in the file at hand."""
        self._rows: dict[str, Row] = {}
        self._stored: dict[str, bytes] = {}
        """The recorded lines by their digests."""
        self._places: dict[str, Extent] = {}
        """The places of the lines in the file at hand."""
        others = [name for name in self.branches if layout.is_other_version(name)]
        self.head = self._laid_out({name: tip for name, tip in self.branches.items() if name not in others})
        """The file of the head and its rewound branches."""
        self._others = [self._laid_out({current.session: self.branches[name]}) for name in others]
        self.new = self._file_at_hand()
        cursor = current.known.cursor
        loaded = [copy for text in (cursor.copies if cursor else ()) if (copy := self._load(text))]
        is_assembled = bool(loaded) and _rows_of(versions(loaded)[0]) == list(self.head.rows)
        self.recorded = loaded if is_assembled else [self.head, *loaded]

    @property
    def is_known(self) -> bool:
        """Whether one of the recorded files contains the file at hand."""
        return any(_contains_lines(copy, self.new) for copy in (*self.recorded, self.head, *self._others))

    @property
    def is_rewritten(self) -> bool:
        """Whether the file at hand has turns of the head, but not one of its lines: the client wrote them in another
        form."""
        known = {row.digest for row in self.head.rows}
        return bool(self.head.uuids & self.new.uuids) and not any(row.digest in known for row in self.new.rows)

    @property
    def is_restored(self) -> bool:
        """Whether the file at hand has all lines of the head, and fewer secrets were replaced in it than are recorded:
        `restore` wrote the replacements."""
        redacted = self.current.store.state(self.branches[self.current.session]).redacted
        return _contains_lines(self.new, self.head) and self.secrets < redacted

    @contextmanager
    def opened(self, version: Version) -> Iterator[tuple[Opened, Redact]]:
        """Open the file of a version and yield it with the function that redacts its lines."""
        if version == (self.new,):
            yield self.current.file.opened, self.current.known.redact
            return
        rows = _rows_of(version)
        with tempfile.TemporaryFile(dir=self.current.store.paths.state) as file:
            for number, row in enumerate(rows, 1):
                is_unended = number == len(rows) and version[-1].unended
                file.write(self._text(row.digest) + b"\n" * (not is_unended))
            file.write(version[-1].rest)
            file.flush()
            yield Opened(file, 0, file.tell(), 0.0), _count_redactions

    def line_digests(self, tips: Mapping[str, str]) -> set[str]:
        """Return the digests of the lines of branches, one of which is named as the session."""
        pieces = reassemble.file_pieces(self.current.store, self.current.session, dict(tips)).found
        return {_digest(raw) for piece in pieces for raw in piece.lines}

    def dump(self, copy: Copy) -> str:
        """Return the copy for a cursor: the file with each line replaced by its digest."""
        lines = "\n".join(row.digest for row in copy.rows)
        return lines + "\n" * (bool(copy.rows) and not copy.unended) + (_digest(copy.rest) if copy.rest else "")

    def _load(self, text: str) -> Copy | None:
        """Return a copy of the cursor's, or None if the store does not have all of its lines any more."""
        digests, _, last = text.rpartition("\n")
        rows = [self._rows[digest] for digest in digests.split() if digest in self._rows]
        if len(rows) != len(digests.split()):
            return None
        unended, rest = last in self._rows, b"" if last in self._rows else self._stored.get(last, b"")
        return Copy((*rows, self._rows[last]) if unended else tuple(rows), unended, rest)

    def _laid_out(self, tips: dict[str, str]) -> Copy:
        store, session = self.current.store, self.current.session
        data = reassemble.lay_out(reassemble.file_pieces(store, session, tips).found).data
        last = len(data.lines) - data.unended

        def lines() -> Iterator[Line]:
            for number, raw in enumerate(data.lines):
                self._stored[_digest(raw)] = raw
                yield self.current.agent.lines.make(raw, Extent(0, len(raw) + (number < last)), no_redaction)

        return self._copy(lines())

    def _file_at_hand(self) -> Copy:
        def lines() -> Iterator[Line]:
            current, file = self.current, self.current.file.opened
            for raw, extent in file.raw(0, file.size, _CHUNK):
                line = current.agent.lines.make(raw, extent, current.known.redact)
                self.secrets += line.secrets
                self._places.setdefault(_digest(line.raw), extent)
                yield line

        return self._copy(lines())

    def _copy(self, lines: Iterable[Line]) -> Copy:
        rows, is_unended = list[Row](), False
        for line in lines:
            is_unended = line.is_unended
            if is_unended and line.data is None:
                return Copy(tuple(rows), rest=line.raw)
            row = Row(_digest(line.raw), line.uuid, line.parent, line.time)
            rows.append(self._rows.setdefault(row.digest, row))
        return Copy(tuple(rows), is_unended)

    def _text(self, digest: str) -> bytes:
        """Return a line as it is stored."""
        if digest in self._stored:
            return self._stored[digest]
        (line,) = self.current.file.reader.again(self._places[digest])
        return line.raw

    def write(
        self, every: Sequence[Version], head: Version, sides: _SidesByTurn
    ) -> tuple[dict[str, str], list[_VersionPass]]:
        """Write the commits of every version, the newest first, unless that is the recorded head's; return the branches
        that the copies make, and what wrote them. `sides` are the recorded sidecar files."""
        session, tips, covered, passes = self.current.session, dict[str, str](), set[str](), list[_VersionPass]()
        for version in every:
            if version == head and not tips:
                own = {name: tip for name, tip in self.branches.items() if not layout.is_other_version(name)}
            else:
                own, written = self._write_version(version, sides, is_newest=not tips)
                passes.append(written)
            if not tips:
                tips = own
                covered = self.line_digests(own)
                continue
            for branch in sorted(own, key=lambda name: (name != session, name)):
                lines = self.line_digests({session: own[branch]})
                if not lines <= covered:
                    covered |= lines
                    name = free_name(self.current.store, session, own[branch], tips[session], tips)
                    tips[name] = own[branch]
        return tips, passes

    def _write_version(
        self, version: Version, sides: _SidesByTurn, *, is_newest: bool
    ) -> tuple[dict[str, str], _VersionPass]:
        """Record a version as if nothing of the session were; return its branches."""
        current, source = self.current, self.current.source
        state = current.store.state(self.branches[current.session])
        has_new_lines = any(row.digest in self._places for row in _rows_of(version))
        source = replace(
            source,
            path=source.path if has_new_lines else _NO_SIDECARS,
            place=str(source.path) if source.is_in_place else state.transcript,
            final=source.final or not is_newest,
        )
        with self.opened(version) as (file, redact):
            known = RecordedSession(current.known.cursor, state.rules, redact, sides=sides)
            writer = FilePass(current.context, source, known, file)
            cutter = writer.begin()
            return writer.cut(cutter), _VersionPass(version, writer, cutter)


class _VersionPass(NamedTuple):
    """A version that was written, by what, and how far it was cut."""

    version: Version
    writer: FilePass
    cutter: Cutter


def _save_cursor(current: FilePass, copies: list[str], others: list[str], tip: str) -> None:
    """Remember a file that is not the head's, to be read from its beginning when it has grown; the cursor of another
    file stays, unless this one is where the client looks."""
    known, file, path = current.known.cursor, current.file.opened, str(current.source.path)
    if known is not None and known.path != path and not current.source.is_in_place:
        current_turn = known.current if known.commit == tip else None
        made = replace(known, commit=tip, current=current_turn, copies=copies, others=others)
    else:
        proof, final = recorder_state.prefix_proof(file.file, file.size), current.source.final
        made = Cursor(path, file.inode, file.size, proof, tip, None, final=final, copies=copies, others=others)
    recorder_state.save_cursor(current.context.store.paths, current.source.session, made)


def _is_derived(context: Context, session: str, branches: Mapping[str, str]) -> bool:
    """Return whether all that is recorded of a session follows from lines of files, and nothing else leads to it.

    Then other commits may take the place of these.
    """
    store = context.store
    commits = set[str]()
    for tip in branches.values():
        if any(store.entry(tip, name) for name in (layout.LIVE, *layout.CARRIED)):
            return False
        for commit, message in store.history(tip):
            if commit in commits:
                break
            is_own = message.get("Session") == session and message.get("Event") in _DERIVED_EVENTS
            if not is_own or len(store.commit(commit).parents) > 1 or any(map(message.get, _LIVE_TRAILERS)):
                return False
            commits.add(commit)
    if store.state(branches[session]).origin is not None or context.index.has_forks(session):
        return False
    own = {layout.head_ref(branch) for branch in branches}
    for name, oid in refs.read_all(store.path).items():
        if name not in own and (oid in commits or layout.session_of_ref(name) == session):
            return False
    named = {layout.session_of_ref(move.ref) for operation in operations.read(store.paths) for move in operation.moves}
    return session not in named


def _recorded_turns(store: Store, branches: Mapping[str, str]) -> tuple[_SidesByTurn, set[str]]:
    """Return the recorded sidecar files by the key of their turn, and the trees of all turns' folders."""
    sides: _SidesByTurn = {}
    folders = set[str]()
    for tip in branches.values():
        for commit, message in store.history(tip):
            number, key = message.number("Turn"), message.get("Prompt")
            if number and key:
                folders.add(_turn_tree(store, commit, number))
                sides[key] = store.side_files(store.folder(commit, number)) | sides.get(key, {})
    return sides, folders


def _turn_tree(store: Store, commit: str, number: int) -> str:
    entry = store.entry(commit, layout.turn_folder(number))
    return entry[0] if entry else ""


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _count_redactions(raw: bytes) -> tuple[bytes, int]:
    """Return a line that is redacted already, and how many secrets are replaced in it."""
    return raw, raw.count(_REDACTION_MARK)


# Versions: a function of the set of copies, whatever their order and how often one is there. Copies that overlap or
# continue each other are one version; a file that was written anew is another one.


class Row(NamedTuple):
    """A line of a copy: its digest, its uuid, its parent's uuid and its time."""

    digest: str
    uuid: str
    parent: str
    time: str


@dataclass(frozen=True)
class Copy:
    """A file of a session: its lines in order, and whether the last one lacks its newline.

    `rest` is what follows the last line and is none.
    """

    rows: tuple[Row, ...]
    unended: bool = False
    rest: bytes = b""

    @cached_property
    def uuids(self) -> frozenset[str]:
        """Return the uuids of its lines."""
        return frozenset(row.uuid for row in self.rows if row.uuid)

    @cached_property
    def rank(self) -> tuple[str, int, bool, int, bytes]:
        """Return the higher one of two copies is the newer: by the latest time in it, then by its length, then by
        its hash.

        A copy that holds another one never ranks below it.
        """
        digest = hashlib.sha256("".join(row.digest for row in self.rows).encode() + self.rest).digest()
        latest = max((row.time for row in self.rows), default="")
        return latest, len(self.rows), not self.unended, len(self.rest), digest

    @cached_property
    def first(self) -> Row | None:
        """Its first line with a uuid."""
        return next((row for row in self.rows if row.uuid), None)

    @cached_property
    def times(self) -> tuple[str, str]:
        """Return the earliest and the latest time of its lines with a uuid; of others, a file may have any time."""
        times = [row.time for row in self.rows if row.uuid and row.time] or [""]
        return min(times), max(times)


Version = tuple[Copy, ...]
"""The copies that make one file, one after another."""


def _contains_lines(copy: Copy, other: Copy) -> bool:
    """Return whether all lines of the other one are lines of the copy, in the same order."""
    rows = iter(copy.rows)
    if not all(any(row.digest == line.digest for line in rows) for row in other.rows):
        return False
    if next(rows, None) is not None:
        return True
    return copy.rest.startswith(other.rest) and (other.unended or not copy.unended)


def versions(copies: Iterable[Copy]) -> list[Version]:
    """Return the versions that the copies make, the newest first."""
    left, joined = _join_overlapping(_maximal_copies(copies)), list[Version]()
    while left:
        version = _newest_version(left)
        joined.append(tuple(_copies_in_order(version)))
        left = [copy for copy in left if copy not in version]
    return joined


def _rows_of(version: Version) -> list[Row]:
    """Return the lines of a version."""
    return [row for copy in version for row in copy.rows]


def _maximal_copies(copies: Iterable[Copy]) -> list[Copy]:
    """Return the copies that no other one holds, the newest first."""
    maximal: list[Copy] = []
    for copy in sorted(copies, key=lambda copy: copy.rank, reverse=True):
        if not any(_contains_lines(other, copy) for other in maximal):
            maximal.append(copy)
    return maximal


def _join_overlapping(copies: list[Copy]) -> list[Copy]:
    """Return the copies with one in the place of any two that overlap."""
    for one, other in permutations(copies, 2):
        if (whole := _overlap(one, other)) is not None:
            return _join_overlapping(_maximal_copies([whole, *(copy for copy in copies if copy not in (one, other))]))
    return copies


def _overlap(copy: Copy, other: Copy) -> Copy | None:
    """Return the one of both if the copy ends with the lines with which the other one begins, one with a uuid among
    them."""
    ends, begins = [row.digest for row in copy.rows], [row.digest for row in other.rows]
    if not begins or not copy.uuids & other.uuids:
        return None
    for start in range(max(1, len(ends) - len(begins)), len(ends)):
        if ends[start] == begins[0] and ends[start:] == begins[: len(ends) - start]:
            if not any(row.uuid for row in copy.rows[start:]):
                return None
            return Copy(copy.rows[:start] + other.rows, other.unended, other.rest)
    return None


def _newest_version(copies: Sequence[Copy]) -> list[Copy]:
    """Return the newest copy and those that it continues or that continue it; `copies` are in order of age."""
    version = [copies[0]]
    waiting = list(copies[1:])
    while (more := next((copy for copy in waiting if _can_join_version(copy, version)), None)) is not None:
        version.append(more)
        waiting.remove(more)
    return version


def _can_join_version(copy: Copy, version: Collection[Copy]) -> bool:
    """Return whether a copy shares no uuid with any of the version, continues one of them or is continued by it, and
    was written later than all that it continues, and at another time than the others."""
    pairs = [pair for other in version for pair in ((copy, other), (other, copy))]
    return (
        any(_continues(one, other) for one, other in pairs)
        and not any(_continues(one, other) and not _ends_later(one, other) for one, other in pairs)
        and not any(copy.uuids & other.uuids or _interrupts(copy, other) for other in version)
    )


def _ends_later(copy: Copy, other: Copy) -> bool:
    """Return whether the copy was written last: a piece of an older file ends before the newer file that lacks it.

    Lines that were written together may not be in the order of their times, so it may begin earlier than the other
    ends.
    """
    return copy.times[1] >= other.times[1]


def _interrupts(copy: Copy, other: Copy) -> bool:
    """Return whether neither of the copies continues the other, and one was written while the other was."""
    (first, last), (other_first, other_last) = copy.times, other.times
    is_apart = last <= other_first or other_last <= first
    return not (is_apart or _continues(copy, other) or _continues(other, copy))


def _continues(copy: Copy, other: Copy) -> bool:
    """Return whether the first line of the copy follows a line of the other one."""
    return copy.first is not None and copy.first.parent in other.uuids


def _copies_in_order(version: Collection[Copy]) -> list[Copy]:
    """Return the copies so that each comes after the one that it continues, else by when they began."""
    waiting = sorted(version, key=lambda copy: (copy.times[0], copy.rank))
    ordered: list[Copy] = []
    while waiting:
        free = (c for c in waiting if not any(_continues(c, other) for other in waiting if other is not c))
        ordered.append(next(free, waiting[0]))
        waiting.remove(ordered[-1])
    return ordered
