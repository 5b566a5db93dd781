"""The copies of a session's file: those that are recorded, and what one more makes of them.

A session can be recorded from several files: pieces of one, older copies, one that was written anew. Where all that is
recorded follows from lines, the versions that all copies make are recorded as if nothing had been there before. So the
branches are a function of the set of copies.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.reader import Opened, Reader, Redact, no_redaction
from sessgit.history import reassemble
from sessgit.model import versions
from sessgit.model.conversation.message import Extent
from sessgit.model.versions import Copy, Row, Version
from sessgit.store import journal, layout, refs
from sessgit.store.index import Index
from sessgit.store.sqlite import ancestry
from sessgit.store.store import Store

_DERIVED_EVENTS = ("start", "turn", "compact", "end")
"""The events of commits that follow from the lines of files alone."""
_LIVE_TRAILERS = ("Project-Head", "Origin", "File")
"""Trailers that say what no line says."""
_REDACTION_MARK = b"[redacted:"

ReadLine = Callable[[int], bytes]
"""From the number of a line to the line as it is stored."""


@dataclass(frozen=True, slots=True)
class VersionSource:
    """The file to read a version from, and how to redact its lines."""

    file: Opened
    redact: Redact


@dataclass
class RecordedCopies:
    """What is recorded of a session as copies, and the file at hand, which is copy 0."""

    store: Store
    session: str
    file: Opened
    redact: Redact
    agent: Agent
    seams: Sequence[int] = ()
    """How many lines each copy has of which the head's version was put together."""
    texts: list[ReadLine] = field(default_factory=list)
    secrets: int = 0
    """How many secrets were replaced in the file at hand."""

    @cached_property
    def branches(self) -> dict[str, str]:
        """All branches of the session that are not archived."""
        return self.store.branches(self.session)

    @cached_property
    def new(self) -> Copy:
        """The file at hand."""
        reader, places = Reader(self.file, 0, self.redact, self.agent.lines.make), list[Extent]()

        def lines() -> Iterator[Line]:
            for raw, extent in reader.raw(0, self.file.size, 8 << 20):
                places.append(extent)
                line = self.agent.lines.make(raw, extent, self.redact)
                self.secrets += line.secrets
                yield line

        def text(number: int) -> bytes:
            (raw, extent), *_ = reader.raw(places[number].offset, places[number].end, places[number].length)
            return self.agent.lines.make(raw, extent, self.redact).raw

        return self._copy(lines(), text)

    @cached_property
    def head(self) -> Version:
        """The copies that make the file of the head and its rewound branches."""
        _ = self.new  # its text is the first one
        own = {name: tip for name, tip in self.branches.items() if not layout.is_other_version(name)}
        whole = self._laid(own)
        if not self.seams or sum(self.seams) != len(whole.rows):
            return (whole,)
        found, start = list[Copy](), 0
        for count in self.seams:
            is_last = start + count == len(whole.rows)
            rows = whole.rows[start : start + count]
            found.append(Copy(rows, whole.unended, whole.rest) if is_last else Copy(rows))
            start += count
        return tuple(found)

    @cached_property
    def others(self) -> dict[str, Copy]:
        """The branches of other files."""
        _ = self.head
        found = {name: tip for name, tip in self.branches.items() if layout.is_other_version(name)}
        return {name: self._laid({self.session: tip}) for name, tip in sorted(found.items())}

    @property
    def is_known(self) -> bool:
        """Whether one of the recorded copies holds the file."""
        return any(versions.contains_lines(copy, self.new) for copy in (*self.head, *self.others.values()))

    @property
    def is_head(self) -> bool:
        """Whether the file is the head's version, line for line."""
        one, *others = self.head
        return not others and versions.contains_lines(self.new, one) and versions.contains_lines(one, self.new)

    @property
    def is_restored(self) -> bool:
        """Whether the file has all that is recorded, with words replaced that stood in the file before it."""
        redacted = self.store.state(self.branches[self.session]).redacted
        return all(versions.contains_lines(self.new, copy) for copy in self.head) and self.secrets < redacted

    def versions(self) -> list[Version]:
        """The versions that all copies make, the newest first."""
        return versions.versions([*self.head, *self.others.values(), self.new])

    @contextmanager
    def opened(self, version: Version) -> Iterator[VersionSource]:
        """The file of a version: the one at hand if that is all of it, else one put together of stored lines."""
        if version == (self.new,):
            yield VersionSource(self.file, self.redact)
            return
        rows = versions.rows_of(version)
        with tempfile.TemporaryFile(dir=self.store.beside.state, buffering=0) as file:
            size = 0
            for number, row in enumerate(rows, 1):
                is_unended = number == len(rows) and version[-1].unended
                data = self.texts[row.copy](row.number) + b"\n" * (not is_unended)
                size += _write_file(file, data)
            size += _write_file(file, version[-1].rest)
            yield VersionSource(Opened(file, 0, size, 0.0), _count_redactions)

    def lines(self, tips: Mapping[str, str]) -> set[bytes]:
        """The digests of the lines of branches, one of which is named as the session."""
        pieces = reassemble.file_pieces(self.store, self.session, dict(tips)).found
        return {_line_digest(raw) for piece in pieces for raw in piece.lines}

    def _laid(self, tips: dict[str, str]) -> Copy:
        data = reassemble.lay_out(reassemble.file_pieces(self.store, self.session, tips).found).data
        lines = list(data.lines)
        is_unended = bool(lines) and len(data) != sum(map(len, lines)) + len(lines)
        ends = [1] * (len(lines) - 1) + [0 if is_unended else 1]
        made = (
            self.agent.lines.make(raw, Extent(0, len(raw) + end), no_redaction)
            for raw, end in zip(lines, ends, strict=False)
        )
        return self._copy(made, lines.__getitem__)

    def _copy(self, lines: Iterable[Line], text: ReadLine) -> Copy:
        number, rows, rest, is_unended = len(self.texts), list[Row](), b"", False
        self.texts.append(text)
        for line in lines:
            is_unended = line.extent.length == len(line.written)
            if is_unended and line.data is None:
                rest, is_unended = line.raw, False
                break
            rows.append(Row(_line_digest(line.raw), line.uuid, line.parent, line.time, number, len(rows)))
        return Copy(tuple(rows), is_unended, rest)


def is_derived(store: Store, index: Index, session: str, branches: Mapping[str, str]) -> bool:
    """Return whether all that is recorded of a session follows from lines of files, and nothing else leads to it.

    Then other commits may take the place of these.
    """
    commits = set[str]()
    for tip in branches.values():
        if any(store.repo.entry(store.tree(tip), name) for name in (layout.LIVE, *layout.CARRIED)):
            return False
        for commit in store.repo.first_parents(tip):
            if commit.id in commits:
                break
            message = store.message(commit.id)
            is_made = message.get("Session") == session and message.get("Event") in _DERIVED_EVENTS
            if not is_made or len(commit.parents) > 1 or any(map(message.get, _LIVE_TRAILERS)):
                return False
            commits.add(commit.id)
    state = store.state(branches[session])
    if state.origin is not None or ancestry.has_forks(index, session):
        return False
    own = {layout.head_ref(branch) for branch in branches}
    for name, oid in refs.read_all(store.path).items():
        if name not in own and (oid in commits or layout.session_of_ref(name) == session):
            return False
    named = {layout.session_of_ref(move.ref) for operation in journal.read(store.beside) for move in operation.moves}
    return session not in named


def _line_digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=16).digest()


def _count_redactions(raw: bytes) -> tuple[bytes, int]:
    """A line that was redacted when it was recorded: as it is, and how many secrets stand replaced in it."""
    return raw, raw.count(_REDACTION_MARK)


def _write_file(file: object, data: bytes) -> int:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]  # type: ignore[attr-defined]
    return len(data)
