"""A pack with deltas of our own, and the entries of one that is there (gitformat-pack(5)).

It grows: a new one begins with all that the one before it held, byte for byte, since a delta tells only how far before
it its base stands.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

import deflate

from sessgit.store.files import private
from sessgit.store.packing.pack import entry_header, ids

MOST_STEPS: Final = 20
"""So many deltas stand between an object and one that is whole, at most: more of them save nothing and take longer."""

_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}
_BY_PLACE = 6
_BY_ID = 7
_START = struct.pack(">4sLL", b"PACK", 2, 0)
_COUNT_AT = 8
_SHA = 20
_TABLE = 8 + 256 * 4
_FAR = 1 << 31
_CHUNK = 1 << 20
_LEVEL = 6
"""Enough to tell which of several is the smallest."""
_LEAST = 12


class Entry(NamedTuple):
    """Where an object stands in a pack, and how many deltas away the whole object is that it is made from."""

    place: int
    steps: int


def entries(pack: Path, index: bytes) -> dict[str, Entry]:
    """All entries of a pack by their objects' ids. Raises OSError, and IndexError or struct.error where it is none."""
    names = ids(index)
    after = _TABLE + len(names) * (_SHA + 4)
    near = struct.unpack_from(f">{len(names)}L", index, after)
    far = after + 4 * len(names)
    places = [at if at < _FAR else struct.unpack_from(">Q", index, far + 8 * (at - _FAR))[0] for at in near]
    steps: dict[int, int] = {}
    with pack.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for place in sorted(places):
            steps[place] = _steps(data, place, steps)
    return {name: Entry(place, steps[place]) for name, place in zip(names, places, strict=True)}


def _steps(data: mmap.mmap, place: int, known: dict[int, int]) -> int:
    at = place
    kind = data[at] >> 4 & 7
    while data[at] & 0x80:
        at += 1
    if kind == _BY_ID:
        return MOST_STEPS
    if kind != _BY_PLACE:
        return 0
    at += 1
    back = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        back = (back + 1) << 7 | data[at] & 0x7F
    return known.get(place - back, MOST_STEPS) + 1


class Writer:
    """A pack at `path`, for its owner alone, that begins with the objects of an `old` one. Its index is left to git,
    which proves each object by that. Raises OSError."""

    def __init__(self, path: Path, old: Path | None, count: int) -> None:
        path.unlink(missing_ok=True)
        with private.files():
            self._file = path.open("xb")
        self._path, self._count = path, count
        self._file.write(_START)
        if old is not None:
            with old.open("rb") as before:
                left = before.seek(0, os.SEEK_END) - len(_START) - _SHA
                before.seek(len(_START))
                while left > 0 and (data := before.read(min(left, _CHUNK))):
                    left -= self._file.write(data)

    def whole(self, kind: bytes, size: int, packed: bytes) -> Entry:
        """Adds an object of so many bytes, as `compressed` gives it."""
        return Entry(self._add(entry_header(_KINDS[kind], size), packed), 0)

    def changed(self, base: Entry, size: int, packed: bytes) -> Entry:
        """Adds the object that a delta of so many bytes makes of another one."""
        back = self._file.tell() - base.place
        numbers = bytearray([back & 0x7F])
        while back := back >> 7:
            back -= 1
            numbers.append(back & 0x7F | 0x80)
        return Entry(self._add(entry_header(_BY_PLACE, size) + bytes(reversed(numbers)), packed), base.steps + 1)

    def _add(self, header: bytes, packed: bytes) -> int:
        place = self._file.tell()
        self._file.write(header)
        self._file.write(packed)
        self._count += 1
        return place

    def finish(self) -> str:
        """Ends the pack, which is on the disk then; its name as git gives it, made of all its bytes."""
        self._file.seek(_COUNT_AT)
        self._file.write(struct.pack(">L", self._count))
        self._file.flush()
        digest = hashlib.sha1(usedforsecurity=False)
        with self._path.open("rb") as written:
            while data := written.read(_CHUNK):
                digest.update(data)
        self._file.seek(0, os.SEEK_END)
        self._file.write(digest.digest())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return f"pack-{digest.hexdigest()}"

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()


def compressed(data: bytes) -> bytes:
    """What a pack holds of an object or a delta, nearly as small as it gets."""
    return bytes(deflate.zlib_compress(data, _LEVEL))


def least(data: bytes) -> bytes:
    """The same, as small as libdeflate makes it: what is archived stays as it is once it is packed."""
    return bytes(deflate.zlib_compress(data, _LEAST))
