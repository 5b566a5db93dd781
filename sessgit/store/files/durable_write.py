"""Objects that last: written aside, on the disk all at once, and only then under their names.

Whoever would write an object that is there already believes it. So none may have its name before its bytes are on the
disk: a loss of power would leave an empty file that nobody writes again. Until then they lie in a folder of their own,
named as git names its own, which its pruning knows (`core.fsyncMethod=batch` does the same).

Each file and each folder is synced for itself, since only that is promised on every file system: git waits for one
file in the name of all, which is enough on ext4, xfs and APFS, and is not on btrfs. But those that are synced at the
same time wait together for one commit of the file system's journal, and for one flush of the disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread

_PREFIX = "tmp_objdir-sessgit-"
_SYNC_THREADS = 8
"""So many wait together: more of them are hardly faster, and each is a thread."""
_TRIES = 5
_WAIT = 0.001
_SYNC_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)
"""What a file system says that cannot sync folders."""
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS what is synced lies in the drive's own memory until that is written out."""


class PendingObjects:
    """The folder of one process, and what it was asked to write since names were last given."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._objects = store / "objects"
        self.folder = self._objects / f"{_PREFIX}{os.urandom(6).hex()}"
        self._asked: dict[str, None] = {}
        self._remove: weakref.finalize[..., PendingObjects] | None = None

    def begin(self) -> None:
        """The folder is there, and nobody takes it for one that a killed process left. Raises OSError."""
        if self._remove is not None:
            return
        delete_stale_folders(self._store)
        self._remove = weakref.finalize(self, _delete_folder, self.folder, _make_folder(self.folder), os.getpid())

    def note(self, oid: str) -> None:
        """The object was written here, or found where it belongs."""
        self._asked[oid] = None

    def flush(self) -> None:
        """All that was asked for is on the disk under its name when this returns; raises OSError.

        So is what was there already: who gave it its name a moment ago may not be done, and git does not wait for the
        disk when it unpacks what it fetched.
        """
        if not self._asked:
            return
        new = {
            path: _object_path(self._objects, oid)
            for oid in self._asked
            if (path := _object_path(self.folder, oid)).exists()
        }
        known = {_object_path(self._objects, oid) for oid in self._asked} - set(new.values())
        loose = known.intersection(_sync_existing([*new, *known]))
        flush_drive(self._objects)
        for path, place in new.items():  # in the order of writing: none has its name before those that it leads to
            _link(path, place)
        folders = {place.parent for place in (*new.values(), *loose)}
        if len(loose) < len(known):  # it is in a pack: whoever makes one syncs it, but not its name
            folders.add(self._objects / "pack")
        _sync_existing(sorted(folders))
        flush_drive(self._objects)
        self._asked.clear()

    def drop(self) -> None:
        """Forgets what has no name yet, since no ref will lead to it."""
        self._asked.clear()
        if self._remove is not None:
            self._remove()
            self._remove = None


def delete_stale_folders(store: Path) -> int:
    """Deletes the folders of processes that are no more, and returns how many."""
    count = 0
    for folder in (store / "objects").glob(f"{_PREFIX}*"):
        handle = _lock_folder(folder)
        if handle:
            _delete_folder(folder, handle, os.getpid())
            count += 1
    return count


def link_object(path: Path, folder: Path, oid: str) -> None:
    """Makes a file, whole, that object of a folder of objects. Raises OSError."""
    _link(path, _object_path(folder, oid))


def flush_drive(folder: Path) -> None:
    """What was synced outlasts a loss of power: on macOS that takes a call of its own. Raises OSError."""
    if _FULL_FSYNC is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.fcntl(handle, _FULL_FSYNC)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:  # a file system of the network has no drive here
            raise
    finally:
        os.close(handle)


def _object_path(folder: Path, oid: str) -> Path:
    return folder / oid[:2] / oid[2:]


def _make_folder(folder: Path) -> int:
    """The descriptor that holds a folder which was not there."""
    for _ in range(_TRIES):
        folder.mkdir(mode=0o700, exist_ok=True)
        handle = _lock_folder(folder)
        if handle and folder.is_dir():
            return handle
        if handle:
            os.close(handle)
        time.sleep(_WAIT)  # a sweep found it before it was locked, and takes it away
    raise OSError(errno.EAGAIN, "a folder is taken away as soon as it is made", str(folder))


def _link(path: Path, place: Path) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            path.rename(place)
        except FileNotFoundError:  # packing deletes the folders that it has emptied
            if not tries_left:
                raise
            place.parent.mkdir(mode=0o700, exist_ok=True)
        else:
            return


def _lock_folder(folder: Path) -> int:
    """The descriptor that holds a folder, or 0 where somebody else does or there is none."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return 0
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return 0
    return handle


def _delete_folder(folder: Path, handle: int, process: int) -> None:
    """Deletes the folder and lets go of it; in a child of its process it does nothing."""
    if os.getpid() != process:
        return
    with suppress(OSError):
        for inner in folder.iterdir():
            if inner.is_dir():
                for path in inner.iterdir():
                    path.unlink()
                inner.rmdir()
            else:
                inner.unlink()
        folder.rmdir()
    os.close(handle)


def _sync_existing(paths: Iterable[Path]) -> list[Path]:
    """Those files and folders that are there; they are on the disk when this returns. Raises OSError."""
    waiting, there, failed = deque(paths), list[Path](), list[OSError]()

    def work() -> None:
        while not failed:
            try:
                path = waiting.popleft()
            except IndexError:
                return
            try:
                sync(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                failed.append(error)
            else:
                there.append(path)

    others = list[Thread]()
    with suppress(RuntimeError):  # there are no more threads to be had: fewer do it too
        for _ in range(min(_SYNC_THREADS, len(waiting)) - 1):
            other = Thread(target=work, daemon=True)
            other.start()
            others.append(other)
    work()
    for other in others:
        other.join()
    if failed:
        raise failed[0]
    return there


def sync(path: Path) -> None:
    """A file or folder as it is now, on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(handle)
