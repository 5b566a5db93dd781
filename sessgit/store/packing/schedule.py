"""When it is time to pack: before what is loose makes the store larger than the files that it was recorded from.

A loose object takes blocks of the disk, however small it is, and none has a delta: a turn takes six times the room that
it has in the agent's file. In a pack it takes a sixth, or a third where turns are small. So what is loose may take
three times the packs, which is less than what those were made from; only a store of a few turns is left as it is. To
pack a hundred objects costs some 30 ms of the processor, and a store comes to that a few times in its life.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sessgit.store.files import private
from sessgit.store.layout import StorePaths

MOST_OBJECTS = 2_000
MOST_PACKS = 20
"""So many packs are worth being made fewer: each is searched for every object."""
_LEAST = 128 << 10
"""So many bytes of the disk are left loose in any case."""
_TIMES = 3
_SMALL = 1 << 20
"""Below so many bytes of packs each loose object counts: they are few, and a sample of them would say little."""
_EVERY = 8
"""Of 256 folders one in so many is looked at in a larger store: ids are evenly spread."""
_BLOCK = 512


class Loose(NamedTuple):
    """About how many loose objects there are, and how many bytes of the disk they take."""

    objects: int
    size: int


def loose(store: Path) -> Loose:
    objects = size = 0
    every = 1 if _packed(store) < _SMALL else _EVERY
    for number in range(0, 256, every):
        with suppress(OSError):  # most are missing after a packing
            for entry in os.scandir(store / "objects" / f"{number:02x}"):
                with suppress(OSError):  # it was packed meanwhile
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    objects += 1
    return Loose(objects * every, size * every)


def is_due(store: Path) -> bool:
    """Whether there is much that a packing would make smaller: what the last one left loose does not count."""
    found, left = loose(store), _left(store)
    if found.objects - left.objects >= MOST_OBJECTS or packs(store) >= MOST_PACKS:
        return True
    return found.size - left.size > max(_LEAST, _TIMES * _packed(store))


def packs(store: Path) -> int:
    """How many packs there are."""
    return sum(1 for _ in (store / "objects" / "pack").glob("*.idx"))


def note(store: Path) -> None:
    """Notes what a packing that has just ended left loose, since no ref leads to it."""
    with suppress(OSError), private.files():
        _mark(store).write_text("{} {}\n".format(*loose(store)))


def _left(store: Path) -> Loose:
    try:
        objects, size = _mark(store).read_text("ascii").split()
        return Loose(int(objects), int(size))
    except (OSError, ValueError):
        return Loose(0, 0)


def _packed(store: Path) -> int:
    size = 0
    for path in (store / "objects" / "pack").glob("*.pack"):
        with suppress(OSError):
            size += path.stat().st_size
    return size


def _mark(store: Path) -> Path:
    return StorePaths(store).state / "loose"
