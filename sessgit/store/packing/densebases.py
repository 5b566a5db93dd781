"""Which objects one is like: what it could be made from by a short delta.

git compares those that stand beside each other when all are sorted by name and size. Here an object is looked for by
what it says. Of its strings a few are noted, those with the least checksums: so any two objects that have much in
common have some of these in common too. Of the objects that have most of them, those are the nearest that leave the
least to be said.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from sessgit.store.packing.densepack import MOST_STEPS, Entry

BLOB: Final = b"blob"

_NOTED = re.compile(rb'[^"\\\n\t\x80-\xff]{14,200}')
_STRING = re.compile(rb'[^"\\\n\t\x80-\xff]{8,}')
_MOST_NOTED = 64
_MOST_WITH_IT = 8
"""So many of the last objects are found by a string."""
_MOST_STRINGS = 400_000
"""From so many on all strings are forgotten: each takes some 250 bytes."""
_MOST_FOUND = 10
_LAST = 4
_LAST_FILES = 2
"""Of the folders and commits, and of the files, that came last under the same name, so many are looked at."""
_MOST_SMALL = 6
_MOST = 2
"""So many are worth a delta each, for an object up to `_SMALL` bytes and for others."""
_SMALL = 4 << 10
_MOST_READ = 64
_READ_AGAIN = 128 << 10
"""The strings of so many objects are kept, unless they are larger than that."""
_WINDOW = 96 << 20
"""So many bytes of objects are remembered."""
_QUICK = 1


class Base(NamedTuple):
    """An object that others may be made from, and where it stands."""

    data: bytes
    entry: Entry


class Bases:
    """The objects that came so far."""

    def __init__(self) -> None:
        self._count = self._size = 0
        self._known: dict[int, Base] = {}
        self._last: dict[tuple[bytes, bytes], tuple[int, ...]] = {}
        self._with: dict[int, tuple[int, ...]] = {}
        self._strings = lru_cache(_MOST_READ)(self._read)

    def near(self, kind: bytes, name: bytes, data: bytes) -> list[Base]:
        """What is worth a delta to make an object from."""
        last = self._last.get((kind, name), ())
        if kind != BLOB:
            return [self._known[number] for number in last if self._is_base(number)]
        found = Counter(chain.from_iterable(self._with.get(noted, ()) for noted in _noted(data)))
        numbers = dict.fromkeys(number for number, _ in found.most_common(_MOST_FOUND))
        every = [number for number in (numbers | dict.fromkeys(last[-_LAST_FILES:])) if self._is_base(number)]
        most = _MOST_SMALL if len(data) <= _SMALL else _MOST
        if len(every) > most:
            own = dict.fromkeys(_STRING.findall(data))
            every.sort(key=lambda number: self._left(own, number))
        return [self._known[number] for number in every[:most]]

    def add(self, kind: bytes, name: bytes, data: bytes, entry: Entry) -> None:
        """Others may be made from this one from now on; the first ones are forgotten when there are too many."""
        number = self._count
        self._count += 1
        self._known[number] = Base(data, entry)
        self._size += len(data)
        while self._size > _WINDOW:
            self._size -= len(self._known.pop(next(iter(self._known))).data)
        if name:
            self._last[kind, name] = (*self._last.get((kind, name), ()), number)[-_LAST:]
        if kind == BLOB:
            for noted in _noted(data):
                self._with[noted] = (*self._with.get(noted, ()), number)[-_MOST_WITH_IT:]
            if len(self._with) > _MOST_STRINGS:
                self._with.clear()

    def _is_base(self, number: int) -> bool:
        base = self._known.get(number)
        return base is not None and base.entry.steps < MOST_STEPS

    def _left(self, strings: Iterable[bytes], number: int) -> int:
        """How much is still to be said of an object with these strings, where it is made from that one."""
        known = self._strings(number) if len(self._known[number].data) <= _READ_AGAIN else self._read(number)
        return len(zlib.compress(b"".join(string for string in strings if string not in known), _QUICK))

    def _read(self, number: int) -> frozenset[bytes]:
        return frozenset(_STRING.findall(self._known[number].data))


def _noted(data: bytes) -> list[int]:
    return sorted(map(zlib.crc32, set(_NOTED.findall(data))))[:_MOST_NOTED]
