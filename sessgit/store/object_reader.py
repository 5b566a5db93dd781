"""Reads objects from git's files (gitformat-pack(5)), so that a command that reads a few does not load libgit2.

Loading it takes as long as reading a thousand objects here. It reads what cannot be read here: large files, objects
in packs that were added since, and in other folders. And it says what is wrong with an object.
"""

from __future__ import annotations

import mmap
import os
import zlib
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sessgit.model import canonical
from sessgit.store import objects
from sessgit.store.objects import Commit, Entry

if TYPE_CHECKING:
    from sessgit.store.backend import Repository

_T = TypeVar("_T")
_KINDS = {1: "commit", 2: "tree", 3: "blob"}
_OFFSET_DELTA, _REF_DELTA = 6, 7
_INDEX_START = b"\xfftOc\x00\x00\x00\x02"
_IDS = len(_INDEX_START) + 256 * 4
_LARGE_OFFSET = 1 << 31
_MOST_DELTAS = 4096
"""git's default is 50; a damaged pack may have a circle."""
_HEADER_SIZE = 32
_MOST_TREES = 64
_UNREADABLE = (KeyError, ValueError, IndexError, OSError, zlib.error)


class ObjectReader:
    """Reads objects of a repository, each verified by its id; `repository` is the same, opened with libgit2."""

    def __init__(self, path: Path, repository: Callable[[], Repository]) -> None:
        self._folder = path / "objects"
        self._repository = repository
        self.count = 0
        """Number of objects that were read."""
        self._tree = lru_cache(maxsize=_MOST_TREES)(self._read_tree)

    def commit(self, oid: str) -> Commit:
        """Return a commit. Raises NotFoundError if the object is no commit, UnreadableError."""
        return self._or_libgit2(lambda: _decode_commit(oid, self._read("commit", oid)), lambda repo: repo.commit(oid))

    def tree(self, oid: str) -> dict[str, Entry]:
        """Return the entries of a tree by name."""
        return self._or_libgit2(
            lambda: {name.decode(): _entry(*value) for name, value in self._tree(oid).items()},
            lambda repo: repo.tree(oid),
        )

    def entry(self, tree: str, path: str) -> Entry | None:
        """Return the entry at a path below a tree, or None."""
        return self._or_libgit2(lambda: self._entry_at(tree, path.encode()), lambda repo: repo.entry(tree, path))

    def files(self, tree: str, prefix: str = "") -> dict[str, Entry]:
        """Return every file below a tree by path, as `edit_tree` takes them."""
        return objects.files(self.tree, tree, prefix)

    def blob(self, oid: str) -> bytes:
        """Return the bytes of a file, verified by its id."""
        return self._or_libgit2(lambda: self._read("blob", oid), lambda repo: repo.blob(oid))

    def lines(self, oid: str, longest: float = float("inf")) -> list[bytes]:
        """Return what `split` makes of a file at its newlines; lines over `longest` bytes of a large file are empty."""
        return self._or_libgit2(lambda: self._read("blob", oid).split(b"\n"), lambda repo: repo.lines(oid, longest))

    def _or_libgit2(self, read: Callable[[], _T], reread: Callable[[Repository], _T]) -> _T:
        try:
            return read()
        except _UNREADABLE:
            return reread(self._repository())

    def _entry_at(self, tree: str, path: bytes) -> Entry | None:
        first, _, rest = path.partition(b"/")
        mode, raw = self._tree(tree).get(first, (b"", b""))
        if not rest or not mode:
            return _entry(mode, raw) if mode else None
        return self._entry_at(raw.hex(), rest) if mode == objects.FOLDER_MODE else None

    def _read_tree(self, oid: str) -> objects.Tree:
        return objects.decode_tree(self._read("tree", oid))

    def _read(self, kind: str, oid: str) -> bytes:
        """Return an object's bytes. Raises one of `_UNREADABLE` if it is not readable here, or not of this kind."""
        self.count += 1
        raw = bytes.fromhex(oid)
        found = next(((pack, place) for pack in self._packs if (place := pack.find(raw)) is not None), None)
        actual, data = found[0].read(found[1]) if found else _read_loose(self._folder, oid)
        if actual != kind or objects.object_id(kind, data) != oid:
            raise ValueError(oid)
        return data

    @cached_property
    def _packs(self) -> list[_Pack]:
        return [_Pack(path) for path in (self._folder / "pack").glob("pack-*.idx")]


class _Pack:
    """A pack with its index, both mapped into memory."""

    def __init__(self, index: Path) -> None:
        self._index, self._pack = _map(index), _map(index.with_suffix(".pack"))
        if self._index[: len(_INDEX_START)] != _INDEX_START:
            raise ValueError(f"{index} is not an index of version 2")
        self._count = self._number(_IDS - 4)

    def find(self, oid: bytes) -> int | None:
        """Return the offset of an object in the pack, or None."""
        start = len(_INDEX_START) + 4 * oid[0]
        numbers = range(self._number(start - 4) if oid[0] else 0, self._number(start))
        number = numbers.start + bisect_left(numbers, oid, key=self._oid)
        if number == numbers.stop or self._oid(number) != oid:
            return None
        offsets = _IDS + 24 * self._count  # behind the ids and the checksums
        offset = self._number(offsets + 4 * number)
        if offset < _LARGE_OFFSET:
            return offset
        return self._number(offsets + 4 * self._count + 8 * (offset - _LARGE_OFFSET), 8)

    def read(self, offset: int) -> tuple[str, bytes]:
        """Return the kind and the bytes of the object at an offset."""
        deltas = list[bytes]()
        while len(deltas) < _MOST_DELTAS:
            kind, size, place = self._header(offset)
            if kind in _KINDS:
                data = self._inflate(place, size)
                for delta in reversed(deltas):
                    data = _apply_delta(data, delta)
                return _KINDS[kind], data
            if kind == _OFFSET_DELTA:
                distance, place = self._distance(place)
                base: int | None = offset - distance
            else:
                base = self.find(self._pack[place : place + 20]) if kind == _REF_DELTA else None
                place += 20
            if base is None:
                raise ValueError(f"an entry of kind {kind}")
            deltas.append(self._inflate(place, size))
            offset = base
        raise ValueError("a circle of deltas")

    def _oid(self, number: int) -> bytes:
        return self._index[_IDS + 20 * number : _IDS + 20 * number + 20]

    def _number(self, place: int, size: int = 4) -> int:
        return int.from_bytes(self._index[place : place + size], "big")

    def _header(self, place: int) -> tuple[int, int, int]:
        """Return the kind of an entry as git numbers it, the size of what it holds, and where that begins."""
        byte = self._pack[place]
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80:
            place += 1
            byte = self._pack[place]
            size |= (byte & 0x7F) << shift
            shift += 7
        return kind, size, place + 1

    def _distance(self, place: int) -> tuple[int, int]:
        """Return how far before a delta its base begins, and where the delta itself begins."""
        byte = self._pack[place]
        distance = byte & 0x7F
        while byte & 0x80:
            place += 1
            byte = self._pack[place]
            distance = (distance + 1) << 7 | byte & 0x7F
        return distance, place + 1

    def _inflate(self, place: int, size: int) -> bytes:
        if size > objects.LARGE_SIZE:
            raise ValueError("a large file")
        most = size + (size >> 8) + 64  # of what cannot be compressed
        data = zlib.decompressobj().decompress(self._pack[place : place + most], size + 1)
        if len(data) != size:
            raise ValueError("an entry of another size")
        return data


def _map(path: Path) -> mmap.mmap:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)


def _apply_delta(base: bytes, delta: bytes) -> bytes:
    base_size, place = _varint(delta, 0)
    size, place = _varint(delta, place)
    if base_size != len(base) or size > objects.LARGE_SIZE:
        raise ValueError("a delta of another object, or of a large file")
    pieces = list[bytes]()
    while place < len(delta):
        code = delta[place]
        place += 1
        if not code & 0x80:
            pieces.append(delta[place : place + code])
            place += code
            continue
        numbers = [0] * 7
        for bit in range(7):
            if code & 1 << bit:
                numbers[bit] = delta[place]
                place += 1
        start, length = int.from_bytes(numbers[:4], "little"), int.from_bytes(numbers[4:], "little")
        pieces.append(base[start : start + (length or 0x10000)])
    return b"".join(pieces)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return number, place


def _read_loose(folder: Path, oid: str) -> tuple[str, bytes]:
    inflater = zlib.decompressobj()
    start = inflater.decompress((folder / oid[:2] / oid[2:]).read_bytes(), _HEADER_SIZE)
    header, _, data = start.partition(b"\0")
    kind, size = header.split()
    if int(size) > objects.LARGE_SIZE:
        raise ValueError("a large file")
    return kind.decode(), data + inflater.decompress(inflater.unconsumed_tail)


def _entry(mode: bytes, raw: bytes) -> Entry:
    return raw.hex(), mode == objects.FOLDER_MODE


def _decode_commit(oid: str, data: bytes) -> Commit:
    head, _, message = data.partition(b"\n\n")
    fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    values = {key: value.decode() for key, value in reversed(fields)}
    parents = tuple(value.decode() for key, value in fields if key == b"parent")
    time = int(canonical.nearest_time(int(values[b"committer"].split()[-2])))
    return Commit(oid, values[b"tree"], parents, message.decode("utf-8", "replace"), time)
