"""A file of lines that are not joined: one of them may be as long as all else in memory together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sessgit.model.frozen import frozen

_LARGE_SIZE = 4 << 20
_PIECE_SIZE = 256 << 10


@frozen
class LineFile:
    """The bytes of a file of these lines, which have no newlines here; the last one has none in the file either where
    it is `unended`."""

    lines: Sequence[bytes]
    unended: bool = False

    def __len__(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines) - self.unended

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """Yield the file piece by piece: small lines together, and of a long one no copy."""
        small, size = list[bytes](), 0
        last = len(self.lines) - 1
        for number, line in enumerate(self.lines):
            end = b"" if self.unended and number == last else b"\n"
            if len(line) > _PIECE_SIZE:
                yield b"".join(small)
                yield line
                small, size = [end], 0
                continue
            small += line, end
            size += len(line)
            if size > _PIECE_SIZE:
                yield b"".join(small)
                small, size = [], 0
        yield b"".join(small)


Bytes = bytes | LineFile
"""The bytes of a file."""


def file_of_lines(lines: Sequence[bytes], *, unended: bool = False) -> Bytes:
    """Return the file of these lines, joined unless it is large; the last line of an `unended` one has no newline."""
    if sum(map(len, lines)) > _LARGE_SIZE:
        return LineFile(lines, unended)
    return b"\n".join(lines if unended else (*lines, b""))


def file_of_split(lines: Sequence[bytes]) -> Bytes:
    """Return the file of which `split` makes these lines."""
    return file_of_lines(lines, unended=True) if lines[-1] else file_of_lines(lines[:-1])


def split_lines(data: Bytes) -> list[bytes]:
    """Return what `split` makes of a file at its newlines."""
    if isinstance(data, bytes):
        return data.split(b"\n")
    return list(data.lines) if data.unended else [*data.lines, b""]


def file_lines(lines: list[bytes]) -> list[bytes]:
    """Return the lines of a file of which `split` makes these: what follows its last newline is one where there is
    any."""
    return lines if lines[-1] else lines[:-1]


def file_pieces(data: Bytes) -> Iterable[bytes]:
    """Return the bytes of a file piece by piece."""
    return data.pieces() if isinstance(data, LineFile) else (data,)
