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
_LEAST_BYTES = 128 << 10
"""So many bytes of the disk are left loose in any case."""
_LEAST_RATIO = 3
_SMALL_STORE = 1 << 20
"""Below so many bytes of packs each loose object counts: they are few, and a sample of them would say little."""
_SAMPLE_STEP = 8
"""Of 256 folders one in so many is looked at in a larger store: ids are evenly spread."""
_BLOCK_SIZE = 512


class LooseObjects(NamedTuple):
    """About how many loose objects there are, and how many bytes of the disk they take."""

    objects: int
    size: int


def count_loose(store: Path) -> LooseObjects:
    objects = size = 0
    every = 1 if _packed_size(store) < _SMALL_STORE else _SAMPLE_STEP
    for number in range(0, 256, every):
        with suppress(OSError):  # most are missing after a packing
            for entry in os.scandir(store / "objects" / f"{number:02x}"):
                with suppress(OSError):  # it was packed meanwhile
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_SIZE
                    objects += 1
    return LooseObjects(objects * every, size * every)


def is_due(store: Path) -> bool:
    """Whether there is much that a packing would make smaller: what the last one left loose does not count."""
    found, left = count_loose(store), _noted_loose(store)
    if found.objects - left.objects >= MOST_OBJECTS or count_packs(store) >= MOST_PACKS:
        return True
    return found.size - left.size > max(_LEAST_BYTES, _LEAST_RATIO * _packed_size(store))


def count_packs(store: Path) -> int:
    """How many packs there are."""
    return sum(1 for _ in (store / "objects" / "pack").glob("*.idx"))


def note_unreachable_loose(store: Path) -> None:
    """Notes what a packing that has just ended left loose, since no ref leads to it."""
    with suppress(OSError), private.files():
        _note_path(store).write_text("{} {}\n".format(*count_loose(store)))


def _noted_loose(store: Path) -> LooseObjects:
    try:
        objects, size = _note_path(store).read_text("ascii").split()
        return LooseObjects(int(objects), int(size))
    except (OSError, ValueError):
        return LooseObjects(0, 0)


def _packed_size(store: Path) -> int:
    size = 0
    for path in (store / "objects" / "pack").glob("*.pack"):
        with suppress(OSError):
            size += path.stat().st_size
    return size


def _note_path(store: Path) -> Path:
    return StorePaths(store).state / "loose"
