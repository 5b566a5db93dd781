"""Packing the store with git itself, and pruning it.

libgit2's own packing takes fifteen times as long and leaves the loose objects behind. Only `prune` deletes what no
ref reaches: elsewhere a recorder may be about to move a ref to it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import refs
from sessgit.store.damage import packed
from sessgit.store.files import lasting, private, rooms
from sessgit.store.layout import Beside
from sessgit.store.locks import moving
from sessgit.store.packing import due

DAMAGED = "sessgit verify tells what is missing or damaged. Nothing was changed."
"""The hint where git finds something that it cannot read."""
STALE = 600.0
"""Seconds after which nobody writes a file any more that was made for a moment."""

_ALL = ("-a", "-d", "-f", "-F", "--keep-unreachable")
_COLD = ("--window=250", "--window-memory=128m")
"""With how many objects each one is compared, in place of 10, and the memory that they may take in each thread: large
transcripts would take gigabytes."""
_HARD = ("-c", "pack.compression=9")
_UNFINISHED = ("tmp_", ".tmp-")
_LACKING = re.compile(r"missing|corrupt|bad (object|tree|sha1)|unable to read|could not parse|does not match")
_COUNTED = re.compile(r"^(count|in-pack): ([0-9]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extent:
    """How many objects a store holds, and the bytes of all files that hold them, unfinished ones too."""

    objects: int
    size: int


def git_env() -> dict[str, str]:
    """The environment for git children: none of `GIT_*`, whoever set it."""
    return {"PATH": os.defpath, "LC_ALL": "C", "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}


def pack(store: Path, lock: int = 0, *, full: bool = False, cold: bool = False, git: str | None = None) -> bool:
    """Packs loose objects if there are many or they take much room, or everything where `full`; returns whether it did.

    With `cold` each object of a full packing is compared with more of the others: some 6 % smaller, for five times the
    work. `lock` is the descriptor of the maintenance lock. Raises StoreError where git is missing or fails; the store
    is whole all the same.
    """
    if not full and not due.is_due(store):
        return False
    if full:
        _repack(store, [*_ALL, *(_COLD if cold else ())], [lock], git, settings=_HARD)
    elif due.packs(store) < due.MOST_PACKS:
        _repack(store, ["-d"], [lock], git)
    else:
        _join(store, lock, git)
    due.note(store)
    pack_refs(store, lock, git=git)
    return True


def _join(store: Path, lock: int, git: str | None) -> None:
    """Makes many packs few: the small ones one, or all of them where git is too old for that."""
    try:
        _repack(store, ["-d", "--geometric=2"], [lock], git)
    except StoreError:
        _repack(store, ["-a", "-d", "--keep-unreachable"], [lock], git)


def pack_refs(store: Path, lock: int = 0, *, git: str | None = None) -> None:
    """Puts all refs into one file, which is read faster than many."""
    refs.take_stale_locks(store, [])
    packed.note(store)
    with moving(Beside(store)):
        # git takes the other files of the refs away, and does not wait for the disk before that unless it is told to.
        _run(store, ["-c", "core.fsync=reference", "pack-refs", "--all"], [lock], git)


def prune(store: Path, locks: Sequence[int], *, git: str | None = None) -> None:
    """Deletes every object that no ref leads to. The descriptors are those of the maintenance lock and of the lock
    under which nobody writes objects."""
    _repack(store, ["-a", "-d"], locks, git)
    _run(store, ["prune", "--expire=now"], locks, git)


def sweep(store: Path, now: float) -> int:
    """Deletes what interrupted work has left, and returns how many files: objects and packs that were never finished,
    locks of refs, files beside the repository that never took their places, and what keeps a fetched pack until refs
    lead to it. The caller holds the maintenance lock.

    What a packing left that was killed goes at once, all else only once nobody writes it any more; of the temporary
    folders, which may lie elsewhere, those that nobody holds.
    """
    count = _sweep_packing(store) + sum(map(_deleted, leftovers(store, now))) + lasting.sweep(store)
    Beside(store).packing.unlink(missing_ok=True)
    return count + rooms.sweep() + rooms.sweep(Beside(store).state)


def leftovers(store: Path, now: float) -> list[Path]:
    """The files of interrupted work that nobody writes any more."""
    packs = (store / "objects" / "pack").glob("*.keep")
    every = [*_unfinished(store), *_ref_locks(store), *_unplaced(store), *packs]
    # What is of the future was written before the clock was put back.
    return [path for path in every if (changed := _changed(path)) is not None and abs(now - changed) > STALE]


def sweep_all(store: Path) -> None:
    """Deletes all that is no whole object and no pack, and what would keep a pack. The caller holds the maintenance
    lock, and the one under which nobody writes objects."""
    for path in [*_unfinished(store), *(store / "objects" / "pack").glob("*.keep")]:
        _deleted(path)
    lasting.sweep(store)


def extent(store: Path, *, git: str | None = None) -> Extent:
    """What there is to pack, or was packed."""
    counted = _COUNTED.findall(_run(store, ["count-objects", "-v"], [], git))
    folders = os.walk(store / "objects")
    sizes = (_size(Path(folder) / name) for folder, _, names in folders for name in names)
    return Extent(sum(int(number) for _, number in counted), sum(sizes))


def _repack(
    store: Path, scope: Sequence[str], locks: Sequence[int], git: str | None, settings: Sequence[str] = ()
) -> None:
    """Packs, and leaves a mark if it is killed. Where it fails, it takes no room: the disk may be full."""
    mark = Beside(store).packing
    try:
        mark.touch(0o600)
    except OSError as error:
        raise StoreError(f"the store cannot be packed: {error}", ROOM) from error
    try:
        _run(store, [*settings, "repack", "--quiet", *scope], locks, git)
    except StoreError:
        _sweep_packing(store)
        raise
    mark.unlink(missing_ok=True)


def _sweep_packing(store: Path) -> int:
    """Deletes the unfinished packs of a packing that did not come to its end, as its mark says."""
    begun = _changed(Beside(store).packing)
    if begun is None:
        return 0
    packs = [path for path in _unfinished(store) if path.parent.name == "pack"]
    return sum(_deleted(path) for path in packs if (changed := _changed(path)) is not None and changed >= begun)


def _deleted(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _unfinished(store: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(store / "objects"):
        yield from (Path(folder) / name for name in names if name.startswith(_UNFINISHED))


def _unplaced(store: Path) -> Iterator[Path]:
    """Files beside the repository, as they are called until they are whole."""
    beside = Beside(store)
    for pattern in ("state/.*.tmp", "spool/*.tmp", ".*.tmp", f".{beside.hook.name}.*", "stale.*.lock", "_git2_*"):
        yield from store.glob(pattern)
    yield from (store / name for name in ("config.lock", "HEAD.lock"))


def _ref_locks(store: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(store / "refs"):
        yield from (Path(folder) / name for name in names if name.endswith(".lock"))
    yield store / "packed-refs.lock"
    yield store / refs.NEW_PACKED


def _changed(path: Path) -> float | None:
    """When a file was written last, or None where there is none."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # it was packed meanwhile
        return 0


def _run(store: Path, arguments: Sequence[str], locks: Sequence[int], git: str | None) -> str:
    """What git prints; it holds the locks on where this process is killed."""
    git = git or shutil.which("git")
    if git is None:
        raise StoreError("git is missing", "Install git 2.30 or later: the store is packed with it.")
    try:
        done = subprocess.run(
            [git, "--git-dir", str(store), *arguments], env=git_env(), check=True, capture_output=True,
            stdin=subprocess.DEVNULL, cwd="/", pass_fds=[lock for lock in locks if lock], umask=private.UMASK,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip() or f"it ended with {error.returncode}"
        raise StoreError(f"git could not pack the store: {said}", _hint(said)) from error
    except OSError as error:
        raise StoreError(f"git could not be run: {error}") from error
    return done.stdout.decode("utf-8", "replace")


def _hint(said: str) -> str:
    if ".lock" in said:
        return refs.LOCKED
    return DAMAGED if _LACKING.search(said) else refs.hint(said, ROOM)
