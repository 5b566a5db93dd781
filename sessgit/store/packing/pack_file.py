"""A pack and its index, written as git has them (gitformat-pack(5)), whole objects only.

git's own ways to write many objects at once read or hash each of them twice more. Deltas are left to the packing that
comes after: it looks for better ones than can be found while objects come in.
"""

from __future__ import annotations

import hashlib
import os
import struct
import weakref
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from sessgit.errors import ROOM, StoreError
from sessgit.model.line_list import Bytes, file_pieces
from sessgit.store.files.large import chunks, object_id

BLOB: Final = "blob"
TREE: Final = "tree"
COMMIT: Final = "commit"

_KINDS = {COMMIT: 1, TREE: 2, BLOB: 3}
_LEVEL = 6
"""The packing that comes after takes over what is compressed here, as far as it finds no delta for it. Level 4 takes a
fifth less time and 2 % more room."""
_CHUNK_SIZE = 1 << 20
_LARGE_SIZE = 4 << 20
_LARGE_OFFSET = 1 << 31
"""Places from here on stand in a table of their own."""
_MAGIC = b"\xfftOc\x00\x00\x00\x02"
_SHA_SIZE = 20
_FANOUT_END = 8 + 256 * 4


class _Entry(NamedTuple):
    """An object of a pack: its kind and size, the offset and the length of its entry, and the checksum of that."""

    kind: str
    size: int
    offset: int
    length: int
    crc: int


class Pack:
    """A pack that grows at `path`, for its owner alone; nobody finds it before it is finished and has its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        """So many bytes it has so far."""
        self._entries: dict[str, _Entry] = {}
        self._waiting: list[bytes] = []
        self._written = 0
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _write_error(path, error) from error
        self.close = weakref.finalize(self, os.close, self._handle)
        """Lets go of the file, which is none of git's yet."""
        self._put(struct.pack(">4sLL", b"PACK", 2, 0))

    def __contains__(self, oid: str) -> bool:
        return oid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, kind: str, data: Bytes) -> str:
        """The id of an object, which the pack holds from now on."""
        oid = object_id(kind, data)
        if oid in self._entries:
            return oid
        header = entry_header(_KINDS[kind], len(data))
        if len(data) > _LARGE_SIZE:
            self._add_large(oid, kind, header, data)
            return oid
        packed = header + zlib.compress(bytes(data), _LEVEL)
        self._entries[oid] = _Entry(kind, len(data), self.length, len(packed), zlib.crc32(packed))
        self._put(packed)
        return oid

    def _add_large(self, oid: str, kind: str, header: bytes, data: Bytes) -> None:
        """Writes an object as it is compressed, piece by piece: another copy of it may be more than there is room."""
        begin, check, packing = self.length, zlib.crc32(header), zlib.compressobj(_LEVEL)
        self._put(header)
        for step in chunks(file_pieces(data)):
            piece = packing.compress(step)
            check = zlib.crc32(piece, check)
            self._put(piece)
        last = packing.flush()
        self._put(last)
        self._entries[oid] = _Entry(kind, len(data), begin, self.length - begin, zlib.crc32(last, check))

    def read(self, oid: str) -> tuple[str, bytes]:
        """The kind and the bytes of an object that it holds."""
        entry = self._entries[oid]
        self._flush()
        packed = os.pread(self._handle, entry.length, entry.offset)
        start = next(place for place, byte in enumerate(packed) if byte < 0x80) + 1
        return entry.kind, zlib.decompress(packed[start:])

    def header(self, oid: str) -> tuple[str, int]:
        """The kind of an object that it holds, and how many bytes it has."""
        return self._entries[oid].kind, self._entries[oid].size

    def finish(self) -> str:
        """Writes what is missing and the index beside it, both on the disk when it returns; returns the name of the
        pack, or "" where it holds nothing and is none."""
        if not self._entries:
            return ""
        try:
            self._flush()
            os.pwrite(self._handle, struct.pack(">L", len(self._entries)), 8)
            digest = hashlib.sha1(usedforsecurity=False)
            for offset in range(0, self.length, _CHUNK_SIZE):
                digest.update(os.pread(self._handle, _CHUNK_SIZE, offset))
            proof = digest.digest()
            _write_all(self._handle, proof)
            os.fsync(self._handle)
            self.close()
            name, index = self._index(proof)
            beside = os.open(self.path.with_suffix(".idx"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(beside, "wb", 0) as file:
                _write_all(file.fileno(), index)
                os.fsync(file.fileno())
        except OSError as error:
            raise _write_error(self.path, error) from error
        return name

    def _index(self, proof: bytes) -> tuple[str, bytes]:
        """The name, made of the ids of all objects, and the bytes of the index."""
        known = sorted(self._entries)
        ids = [bytes.fromhex(oid) for oid in known]
        counts = [0] * 256
        for oid in ids:
            counts[oid[0]] += 1
        totals = [sum(counts[: n + 1]) for n in range(256)]
        offsets = [self._entries[oid].offset for oid in known]
        far = [offset for offset in offsets if offset >= _LARGE_OFFSET]
        numbers = iter(range(len(far)))
        near = [offset if offset < _LARGE_OFFSET else _LARGE_OFFSET | next(numbers) for offset in offsets]
        joined = b"".join(ids)
        data = b"".join((
            struct.pack(">4sL256L", b"\xfftOc", 2, *totals),
            joined,
            struct.pack(f">{len(known)}L", *(self._entries[oid].crc for oid in known)),
            struct.pack(f">{len(known)}L", *near),
            struct.pack(f">{len(far)}Q", *far),
            proof,
        ))  # fmt: skip
        name = hashlib.sha1(joined, usedforsecurity=False).hexdigest()
        return name, data + hashlib.sha1(data, usedforsecurity=False).digest()

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self.length += len(data)
        if self.length - self._written >= _CHUNK_SIZE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        data, self._waiting = b"".join(self._waiting), []
        try:
            _write_all(self._handle, data)
        except OSError as error:
            raise _write_error(self.path, error) from error
        self._written += len(data)


def is_whole_index(data: bytes) -> bool:
    """Whether it is the index of a pack, and whole."""
    if not data.startswith(_MAGIC) or len(data) < _FANOUT_END + 2 * _SHA_SIZE:
        return False
    return hashlib.sha1(data[:-_SHA_SIZE], usedforsecurity=False).digest() == data[-_SHA_SIZE:]


def pack_matches_index(pack: Path, index: bytes) -> bool:
    """Whether a pack ends as a whole index says of it: one that was cut does not. Raises OSError."""
    with pack.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _SHA_SIZE))
        return file.read() == index[-2 * _SHA_SIZE : -_SHA_SIZE]


def index_ids(index: bytes) -> list[str]:
    """The ids of all objects that an index names, in their order; none where it is damaged."""
    if not is_whole_index(index):
        return []
    count = int.from_bytes(index[_FANOUT_END - 4 : _FANOUT_END], "big")
    names = index[_FANOUT_END : _FANOUT_END + count * _SHA_SIZE]
    return [names[place : place + _SHA_SIZE].hex() for place in range(0, len(names), _SHA_SIZE)]


def entry_header(kind: int, size: int) -> bytes:
    """What an entry of a pack begins with: its kind, as git numbers them, and so many bytes once it is unpacked."""
    first, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    out.append(first)
    return bytes(out)


def _write_all(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _write_error(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot write to the store: {path}: {error.strerror or error}", ROOM)
