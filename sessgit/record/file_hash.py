"""The hash of an agent's file, line by line, so that what is recorded of it later can be told from what it was.

It begins with 32 zero bytes; each line, redacted and without its newline, makes SHA-256 of the hash so far and the
line. So a recorder that goes on from its cursor needs no line before that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from sessgit.agents.line import Line
from sessgit.model.conversation.message import Extent

INITIAL_HASH = bytes(32)


class FileHash:
    """The hash of the lines added so far, and of the file up to each of them."""

    def __init__(self, start: bytes = INITIAL_HASH, end: int = 0) -> None:
        self._start = self._last = start
        self._end = end
        self._places: dict[int, bytes] = {}

    @classmethod
    def loads(cls, text: str, end: int) -> FileHash:
        """Return what goes on from the hash of the file up to `end`; if a cursor has none, each hash is ``""``."""
        try:
            start = bytes.fromhex(text)
        except ValueError:
            start = b""
        return cls(start if len(start) == len(INITIAL_HASH) else b"", end)

    def dumps(self) -> str:
        """Return the hash of all lines, for a cursor."""
        return self._last.hex()

    def add(self, line: Line) -> None:
        """Take the next line of the file."""
        if self._last:
            self._last = self._places[line.extent.offset] = next_hash(self._last, line.raw)

    def at(self, line: Line) -> str:
        """Return the hash of the file up to the end of a line, or ``""`` for one that was not added."""
        if not line.extent.length:
            return ""
        # The newline of the last line that was read before may have come since.
        before = self._start if self._end in (line.extent.end, line.extent.end - 1) else b""
        return self._places.get(line.extent.offset, before).hex()

    def furthest(self, runs: Iterable[Sequence[Extent]]) -> str:
        """Return the hash of the file up to the end of the last of the lines at these places."""
        last = max((extent.offset for run in runs for extent in run), default=-1)
        return self._places[last].hex() if last in self._places else ""


def hash_lines(lines: Iterable[bytes]) -> str:
    """Return the hash of a file of these lines."""
    found = INITIAL_HASH
    for line in lines:
        found = next_hash(found, line)
    return found.hex()


def next_hash(before: bytes, line: bytes) -> bytes:
    """Return the hash of a file up to a line, given the hash up to the line before it."""
    digest = hashlib.sha256(before)
    digest.update(line)
    return digest.digest()
