"""A pack and its index, written in git's formats (gitformat-pack(5)), with whole objects only.

git's own ways to write many objects at once read or hash each of them twice more. The packing that follows finds better
deltas than would be found while objects come in.
"""

from __future__ import annotations

import hashlib
import os
import struct
import weakref
import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from sessgit.errors import ROOM, StoreError
from sessgit.model.line_list import Bytes, file_pieces
from sessgit.store import private_files
from sessgit.store.objects import chunks, object_id

BLOB: Final = "blob"
_KINDS = {"commit": 1, "tree": 2, BLOB: 3}
_LEVELS = {"commit": 1, "tree": 1, BLOB: 6}
"""The packing that follows keeps this compression where it finds no delta, as for most files. For them level 4 takes a
fifth less time and 2 % more room. Trees and commits are mostly ids, which no level makes smaller."""
_SMALL_SIZE = 4096
_SMALL_WINDOW = 12, 5
"""zlib's `wbits` and `memLevel` for an object of at most so many bytes: its window holds all of it."""
_LARGE_WINDOW = zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL
_MOST_CACHED = 1024
_MOST_COMPARED = 64 << 10
"""Bytes above which git looks for no delta of an object when it packs an import."""
_SHORTEST_LINE = 16
_FINISHED = 0o400
"""The mode of a pack that nobody writes any more, as git leaves it for its owner."""
_CHUNK_SIZE = 1 << 20
_LARGE_OFFSET = 1 << 31
"""Offsets from here on are in a table of their own."""
_MAGIC = b"\xfftOc\x00\x00\x00\x02"
_SHA_SIZE = 20
_FANOUT_END = 8 + 256 * 4


class _Entry(NamedTuple):
    """An object's kind and size, and the offset, length and checksum of its entry in the pack."""

    kind: str
    size: int
    offset: int
    length: int
    crc: int


class Pack:
    """A pack that grows at `path`, readable by its owner alone; git finds it only under its last name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        """The number of bytes so far."""
        self.likeness: dict[str, int] = {}
        """By id what `_likeness` returns of a file."""
        self._entries: dict[str, _Entry] = {}
        self._recent: dict[str, bytes] = {}
        """The last trees and commits: the next commit is made from them."""
        self._waiting: list[bytes] = []
        self._written = 0
        try:
            self._file = private_files.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise _write_error(path, error) from error
        self.close = weakref.finalize(self, self._file.close)
        """Closes the unfinished file."""
        self._put(struct.pack(">4sLL", b"PACK", 2, 0))

    def __contains__(self, oid: str) -> bool:
        return oid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, kind: str, data: Bytes) -> str:
        """Add an object, and return its id."""
        oid = object_id(kind, data)
        if oid in self._entries:
            return oid
        offset, crc = self.length, 0
        for piece in _packed(kind, data):
            crc = zlib.crc32(piece, crc)
            self._put(piece)
        self._entries[oid] = _Entry(kind, len(data), offset, self.length - offset, crc)
        if kind != BLOB:
            self._recent[oid] = bytes(data)
            if len(self._recent) > _MOST_CACHED:
                del self._recent[next(iter(self._recent))]
        elif len(data) <= _MOST_COMPARED:
            self.likeness[oid] = _likeness(bytes(data))
        return oid

    def read(self, oid: str) -> tuple[str, bytes]:
        """Return the kind and the bytes of an object."""
        entry = self._entries[oid]
        if oid in self._recent:
            return entry.kind, self._recent[oid]
        self._flush()
        packed = os.pread(self._file.fileno(), entry.length, entry.offset)
        start = next(place for place, byte in enumerate(packed) if byte < 0x80) + 1
        return entry.kind, zlib.decompress(packed[start:])

    def header(self, oid: str) -> tuple[str, int]:
        """Return the kind and the size of an object."""
        return self._entries[oid].kind, self._entries[oid].size

    def finish(self) -> str:
        """Write the rest and the index, durably; return the name of the pack, or "" if it is empty and no pack."""
        if not self._entries:
            return ""
        try:
            self._flush()
            handle = self._file.fileno()
            os.pwrite(handle, struct.pack(">L", len(self._entries)), 8)
            digest = hashlib.sha1(usedforsecurity=False)
            for offset in range(0, self.length, _CHUNK_SIZE):
                digest.update(os.pread(handle, _CHUNK_SIZE, offset))
            private_files.write_all(self._file, digest.digest())
            os.fchmod(handle, _FINISHED)
            os.fsync(handle)
            self.close()
            name, index = self._index(digest.digest())
            with private_files.open_file(self.path.with_suffix(".idx"), os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
                private_files.write_all(file, index)
                os.fchmod(file.fileno(), _FINISHED)
                os.fsync(file.fileno())
        except OSError as error:
            raise _write_error(self.path, error) from error
        return name

    def _index(self, checksum: bytes) -> tuple[str, bytes]:
        """Return the name, which is a hash of all ids, and the bytes of the index."""
        entries = sorted((bytes.fromhex(oid), entry) for oid, entry in self._entries.items())
        counts = [0] * 256
        for oid, _ in entries:
            counts[oid[0]] += 1
        large = [entry.offset for _, entry in entries if entry.offset >= _LARGE_OFFSET]
        numbers = iter(range(len(large)))
        offsets = [
            entry.offset if entry.offset < _LARGE_OFFSET else _LARGE_OFFSET | next(numbers) for _, entry in entries
        ]
        oids = b"".join(oid for oid, _ in entries)
        data = b"".join((
            _MAGIC,
            struct.pack(">256L", *accumulate(counts)),
            oids,
            struct.pack(f">{len(entries)}L", *(entry.crc for _, entry in entries)),
            struct.pack(f">{len(entries)}L", *offsets),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        ))  # fmt: skip
        name = hashlib.sha1(oids, usedforsecurity=False).hexdigest()
        return name, data + hashlib.sha1(data, usedforsecurity=False).digest()

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self.length += len(data)
        if self.length - self._written >= _CHUNK_SIZE:
            self._flush()

    def _flush(self) -> None:
        data, self._waiting = b"".join(self._waiting), []
        try:
            private_files.write_all(self._file, data)
        except OSError as error:
            raise _write_error(self.path, error) from error
        self._written += len(data)


def is_whole_index(data: bytes) -> bool:
    """Return whether this is the whole index of a pack."""
    if not data.startswith(_MAGIC) or len(data) < _FANOUT_END + 2 * _SHA_SIZE:
        return False
    return hashlib.sha1(data[:-_SHA_SIZE], usedforsecurity=False).digest() == data[-_SHA_SIZE:]


def pack_matches_index(pack: Path, index: bytes) -> bool:
    """Return whether a pack ends as its index says, which a truncated one does not. Raises OSError."""
    with pack.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _SHA_SIZE))
        return file.read() == index[-2 * _SHA_SIZE : -_SHA_SIZE]


def index_ids(index: bytes) -> list[str]:
    """Return the ids of all objects in an index, in their order; none if it is damaged."""
    if not is_whole_index(index):
        return []
    count = int.from_bytes(index[_FANOUT_END - 4 : _FANOUT_END], "big")
    oids = index[_FANOUT_END : _FANOUT_END + count * _SHA_SIZE]
    return [oids[place : place + _SHA_SIZE].hex() for place in range(0, len(oids), _SHA_SIZE)]


def _likeness(data: bytes) -> int:
    """Return a min-hash of the lines of a text: the more of its lines another one has, the likelier both have the same.
    It is 0 for a text of short lines."""
    return min((zlib.crc32(line.strip()) for line in data.split(b"\n") if len(line) >= _SHORTEST_LINE), default=0)


def _packed(kind: str, data: Bytes) -> Iterator[bytes]:
    """Yield the bytes of an entry in pieces: there may be no room for another copy of them."""
    # zlib allocates and clears 256 KB for a large window, which takes longer than compressing a small object.
    window = _SMALL_WINDOW if len(data) <= _SMALL_SIZE else _LARGE_WINDOW
    compressor = zlib.compressobj(_LEVELS[kind], zlib.DEFLATED, *window)
    header = _entry_header(_KINDS[kind], len(data))
    if len(data) <= _SMALL_SIZE:
        yield b"".join((header, compressor.compress(bytes(data)), compressor.flush()))
        return
    yield header
    yield from map(compressor.compress, chunks(file_pieces(data)))
    yield compressor.flush()


def _entry_header(kind: int, size: int) -> bytes:
    """Return the start of an entry: the kind as git numbers it, and the unpacked size."""
    byte, size = kind << 4 | size & 15, size >> 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    header.append(byte)
    return bytes(header)


def _write_error(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot write to the store: {path}: {error.strerror or error}", ROOM)
