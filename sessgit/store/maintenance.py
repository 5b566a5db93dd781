"""Packing the store with git itself, and pruning it.

libgit2's own packing takes fifteen times as long and leaves the loose objects behind. Only `prune` deletes what no
ref reaches: elsewhere a recorder may be about to move a ref to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.model.progress import Progress, no_progress
from sessgit.store import git, refs
from sessgit.store.damage import packed_refs
from sessgit.store.files import durable_write, tempdirs
from sessgit.store.layout import StorePaths
from sessgit.store.locks import ref_move_lock
from sessgit.store.packing import background_repack, git_packs, schedule

STALE_SECONDS = 600.0
"""Seconds after which nobody writes a file any more that was made for a moment."""

_COUNT_OBJECTS_LINE = re.compile(r"^(count|in-pack): ([0-9]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ObjectCount:
    """How many objects a store holds, and the bytes of all files that hold them, unfinished ones too."""

    objects: int
    size: int


def pack_store(
    store: Path,
    lock: int = 0,
    *,
    full: bool = False,
    progress: Progress = no_progress,
) -> bool:
    """Packs loose objects if there are many or they take much room, or everything where `full`; returns whether it did.

    `lock` is the descriptor of the maintenance lock; a full packing tells how far it is. Raises StoreError where git is
    missing or fails; the store is whole all the same.
    """
    if not full and not schedule.is_due(store):
        return False
    if full:
        git_packs.pack_everything(store, lock, progress=progress)
        StorePaths(store).repacking.unlink(missing_ok=True)
    else:
        git_packs.pack_loose(store, lock)
        if schedule.count_packs(store) >= schedule.MOST_PACKS:
            git_packs.join_small_packs(store, lock)
    schedule.note_unreachable_loose(store)
    pack_refs(store, lock)
    return True


def pack_arrived(store: Path, packs: Collection[str], lock: int, progress: Progress) -> None:
    """Packs what has just come in as packs of these names, and what is loose. Raises StoreError as `pack_store`
    does."""
    background_repack.note_packs(store, git_packs.pack_arrived(store, packs, lock, progress))
    schedule.note_unreachable_loose(store)
    pack_refs(store, lock)


def repack_imported(store: Path, lock: int) -> None:
    """Packs what imports packed once more, about as small as a full packing makes it: too slow for an import to wait
    for. Raises StoreError as `pack_store` does."""
    names = background_repack.noted_packs(store)
    if names:
        git_packs.repack_with_better_deltas(store, names, lock)
    StorePaths(store).repacking.unlink(missing_ok=True)


def pack_refs(store: Path, lock: int = 0) -> None:
    """Puts all refs into one file, which is read faster than many."""
    refs.delete_stale_locks(store, [])
    packed_refs.record_refs(store)
    with ref_move_lock(StorePaths(store)):
        # git takes the other files of the refs away, and does not wait for the disk before that unless it is told to.
        git.run(store, ["-c", "core.fsync=reference", "pack-refs", "--all"], [lock])


def prune(store: Path, locks: Sequence[int]) -> None:
    """Deletes every object that no ref leads to. The descriptors are those of the maintenance lock and of the lock
    under which nobody writes objects."""
    git_packs.pack_reachable(store, locks)
    git.run(store, ["prune", "--expire=now"], locks)


def delete_leftovers(store: Path, now: float) -> int:
    """Deletes what interrupted work has left, and returns how many files: objects and packs that were never finished,
    locks of refs, files beside the repository that never took their places, and what keeps a fetched pack until refs
    lead to it. The caller holds the maintenance lock.

    What a packing left that was killed goes at once, all else only once nobody writes it any more; of the temporary
    folders, which may lie elsewhere, those that nobody holds.
    """
    count = (
        git_packs.delete_unfinished(store)
        + sum(map(git_packs.delete_file, leftovers(store, now)))
        + durable_write.delete_stale_folders(store)
    )
    StorePaths(store).packing.unlink(missing_ok=True)
    return count + tempdirs.delete_stale_folders() + tempdirs.delete_stale_folders(StorePaths(store).state)


def leftovers(store: Path, now: float) -> list[Path]:
    """The files of interrupted work that nobody writes any more."""
    packs = (store / "objects" / "pack").glob("*.keep")
    every = [*git_packs.unfinished_files(store), *_stale_ref_locks(store), *_temporary_files(store), *packs]
    # What is of the future was written before the clock was put back.
    return [
        path
        for path in every
        if (changed := git_packs.modified_time(path)) is not None and abs(now - changed) > STALE_SECONDS
    ]


def delete_all_leftovers(store: Path) -> None:
    """Deletes all that is no whole object and no pack, and what would keep a pack. The caller holds the maintenance
    lock, and the one under which nobody writes objects."""
    for path in [*git_packs.unfinished_files(store), *(store / "objects" / "pack").glob("*.keep")]:
        git_packs.delete_file(path)
    durable_write.delete_stale_folders(store)


def count_objects(store: Path) -> ObjectCount:
    """What there is to pack, or was packed."""
    counted = _COUNT_OBJECTS_LINE.findall(git.run(store, ["count-objects", "-v"], []))
    folders = os.walk(store / "objects")
    sizes = (_file_size(Path(folder) / name) for folder, _, names in folders for name in names)
    return ObjectCount(sum(int(number) for _, number in counted), sum(sizes))


def _temporary_files(store: Path) -> Iterator[Path]:
    """Files beside the repository, as they are called until they are whole."""
    beside = StorePaths(store)
    for pattern in ("state/.*.tmp", "spool/*.tmp", ".*.tmp", f".{beside.hook.name}.*", "stale.*.lock", "_git2_*"):
        yield from store.glob(pattern)
    yield from (store / name for name in ("config.lock", "HEAD.lock"))


def _stale_ref_locks(store: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(store / "refs"):
        yield from (Path(folder) / name for name in names if name.endswith(".lock"))
    yield store / f"{refs.PACKED}.lock"
    yield store / refs.NEW_PACKED


def _file_size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # it was packed meanwhile
        return 0
