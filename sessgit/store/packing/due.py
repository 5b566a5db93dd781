"""When it is time to pack: before what is loose makes the store larger than the files that it was recorded from.

A loose object takes blocks of the disk, however small it is, and none has a delta: a turn takes six times the room that
it has in the agent's file. In a pack it takes a sixth. So what is loose may take four times the packs, which is less
than what those were made from; only a store of a few turns is left as it is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sessgit.store import private
from sessgit.store.layout import Beside

MOST_OBJECTS = 2_000
MOST_PACKS = 20
"""So many packs are worth being made fewer: each is searched for every object."""
_LEAST = 1 << 20
"""So many bytes of the disk are left loose in any case."""
_TIMES = 4
_EVERY = 8
"""Of 256 folders one in so many is looked at: ids are evenly spread."""
_BLOCK = 512


class Loose(NamedTuple):
    """About how many loose objects there are, and how many bytes of the disk they take."""

    objects: int
    size: int


def loose(store: Path) -> Loose:
    objects = size = 0
    for number in range(0, 256, _EVERY):
        with suppress(OSError):  # most are missing after a packing
            for entry in os.scandir(store / "objects" / f"{number:02x}"):
                with suppress(OSError):  # it was packed meanwhile
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    objects += 1
    return Loose(objects * _EVERY, size * _EVERY)


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
    return Beside(store).state / "loose"
