"""Large files among the objects of a store, written and read piece by piece: the library takes copies of them."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Final

from sessgit.errors import StoreError
from sessgit.model.line_list import Bytes, file_pieces
from sessgit.store.files import durable_write

LARGE_SIZE: Final = 4 << 20
"""So many bytes are large."""
_LEVEL = 1
"""As git and the library compress loose objects."""
_CHUNK_SIZE = 1 << 20
_BLOB_TYPE = 3


def object_id(kind: str, data: Bytes) -> str:
    """The id that git gives an object."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode("ascii"), len(data)), usedforsecurity=False)
    for piece in file_pieces(data):
        digest.update(piece)
    return digest.hexdigest()


def write_blob(folder: Path, data: Bytes, has: Callable[[str], bool]) -> str:
    """The id of a file, which is put among the loose objects of a folder, whole or not at all, unless `has` tells that
    it is there. Raises OSError."""
    oid = object_id("blob", data)
    if has(oid):
        return oid
    beside = folder / f"tmp_obj_{os.urandom(6).hex()}"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(_compress_loose(data))
        durable_write.link_object(beside, folder, oid)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    return oid


def read_lines(
    store: Path,
    header: Callable[[str], tuple[int, int]],
    oid: str,
    longest: float,
    errors: tuple[type[Exception], ...],
) -> list[bytes] | None:
    """What `split` makes of a large file at its newlines, proved by its id, with nothing in the place of lines longer
    than that, and the first byte of what follows the last newline, if that is longer; None where it is not large, or
    git cannot read it. `header` tells kind and size of an object, or raises one of the errors."""
    try:
        kind, size = header(oid)
    except errors:
        return None
    if kind != _BLOB_TYPE or size <= LARGE_SIZE:
        return None
    from sessgit.store import git  # starts children, which few need

    found, digest = _LineSplitter(longest), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with suppress(StoreError, OSError), Path(os.devnull).open("rb") as nothing:
        with git.run_with_progress(store, ["cat-file", "blob", oid], (), nothing) as told:
            while piece := told.read(_CHUNK_SIZE):
                digest.update(piece)
                found.take(piece)
        if digest.hexdigest() == oid:
            return found.end()
    return None


def chunks(data: Iterable[bytes]) -> Iterator[memoryview]:
    """The same bytes, no more at once than are worked on well."""
    for piece in data:
        whole = memoryview(piece)
        for start in range(0, len(whole), _CHUNK_SIZE):
            yield whole[start : start + _CHUNK_SIZE]


class _LineSplitter:
    """Lines out of pieces. A buffer is handed out without a copy, which a list of pieces could not be."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._done: list[bytes] = []
        self._line = BytesIO()

    def take(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        if self._line.tell() <= self._longest:
            self._line.write(first)
        if others:
            self._done.append(self._ended())
            self._done += (line if len(line) <= self._longest else b"" for line in others[:-1])
            self._line = BytesIO()
            self._line.write(others[-1])

    def end(self) -> list[bytes]:
        return [*self._done, self._ended() or self._line.getvalue()[:1]]

    def _ended(self) -> bytes:
        return self._line.getvalue() if self._line.tell() <= self._longest else b""


def _compress_loose(data: Bytes) -> Iterator[bytes]:
    """A loose object of a file."""
    packing = zlib.compressobj(_LEVEL)
    yield packing.compress(b"blob %d\0" % len(data))
    for piece in chunks(file_pieces(data)):
        yield packing.compress(piece)
    yield packing.flush()
