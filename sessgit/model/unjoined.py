"""A file of lines that are not joined: one of them may be as long as all else in memory together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_LARGE = 4 << 20
_PIECE = 256 << 10


@dataclass(frozen=True, slots=True)
class Unjoined:
    """The bytes of a file of these lines, which have no newlines here; the last one has none in the file either where
    it is `torn`."""

    lines: Sequence[bytes]
    torn: bool = False

    def __len__(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines) - self.torn

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The file piece by piece: small lines together, and of a long one no copy."""
        small, size = list[bytes](), 0
        last = len(self.lines) - 1
        for number, line in enumerate(self.lines):
            end = b"" if self.torn and number == last else b"\n"
            if len(line) > _PIECE:
                yield b"".join(small)
                yield line
                small, size = [end], 0
                continue
            small += line, end
            size += len(line)
            if size > _PIECE:
                yield b"".join(small)
                small, size = [], 0
        yield b"".join(small)


Bytes = bytes | Unjoined
"""The bytes of a file."""


def of_lines(lines: Sequence[bytes], *, torn: bool = False) -> Bytes:
    """The file of these lines, joined unless it is large."""
    if sum(map(len, lines)) > _LARGE:
        return Unjoined(lines, torn)
    return b"\n".join(lines if torn else (*lines, b""))


def lines_of(data: Bytes) -> list[bytes]:
    """What `split` makes of a file at its newlines."""
    if isinstance(data, bytes):
        return data.split(b"\n")
    return list(data.lines) if data.torn else [*data.lines, b""]


def pieces(data: Bytes) -> Iterable[bytes]:
    """The bytes of a file piece by piece."""
    return data.pieces() if isinstance(data, Unjoined) else (data,)
