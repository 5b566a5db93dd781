"""New objects that survive a power loss: written in a folder of their own, synced together, and only then named.

A writer that finds an object under its name does not write it again. So no object may get its name before its bytes
are on the disk: a power loss would leave an empty file for good. Until then they are in a folder whose name git's prune
recognizes (as with `core.fsyncMethod=batch`).

Each file and folder is synced, since only that works on every file system: git syncs one file on behalf of all, which
is enough on ext4, xfs and APFS, but not on btrfs. Syncs at the same time share one commit of the file system's journal
and one flush of the disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread

from sessgit.store.private_files import sync

_PREFIX = "tmp_objdir-sessgit-"
_SYNC_THREADS = 8
"""More threads sync hardly faster."""
_TRIES = 5
_WAIT = 0.001
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS, fsync leaves the bytes in the drive's cache; this flushes it."""


class PendingObjects:
    """The objects of one process that are not flushed yet, in a folder that other processes do not look into."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._objects = store / "objects"
        self.folder = self._objects / f"{_PREFIX}{os.urandom(6).hex()}"
        self._oids: dict[str, None] = {}
        self._remove: weakref.finalize[..., PendingObjects] | None = None

    def begin(self) -> None:
        """Make the folder, locked against other processes that delete stale ones. Raises OSError."""
        if self._remove is None:
            delete_stale_folders(self._store)
            lock = _make_folder(self.folder)
            self._remove = weakref.finalize(self, _delete_folder, self.folder, lock, os.getpid())

    def add(self, oid: str) -> None:
        """Include an object in the next flush: it was written here, or existed already."""
        self._oids[oid] = None

    def flush(self) -> None:
        """Return once all added objects are on the disk under their names. Raises OSError.

        This includes existing objects: their writer may not have synced them yet, and git does not sync what it
        unpacks from a fetch.
        """
        if not self._oids:
            return
        paths = {oid: _object_path(self.folder, oid) for oid in self._oids}
        new = {path: _object_path(self._objects, oid) for oid, path in paths.items() if path.exists()}
        old = {_object_path(self._objects, oid) for oid in self._oids}.difference(new.values())
        loose = old.intersection(_sync_existing([*new, *old]))
        flush_drive(self._objects)
        for path, name in new.items():  # in the order of writing: an object comes after those that it refers to
            _rename(path, name)
        folders = {path.parent for path in (*new.values(), *loose)}
        if len(loose) < len(old):  # the others are in packs: git syncs these, but not their names
            folders.add(self._objects / "pack")
        _sync_existing(sorted(folders))
        flush_drive(self._objects)
        self._oids.clear()

    def drop(self) -> None:
        """Delete the folder with all objects that were not flushed: no ref will lead to them."""
        self._oids.clear()
        if self._remove is not None:
            self._remove()
            self._remove = None


def delete_stale_folders(store: Path) -> int:
    """Delete the folders of processes that ended; return how many."""
    count = 0
    for folder in (store / "objects").glob(f"{_PREFIX}*"):
        lock = _lock_folder(folder)
        if lock:
            _delete_folder(folder, lock, os.getpid())
            count += 1
    return count


def name_object(path: str, folder: Path, oid: str) -> None:
    """Rename a complete file to the place of an object in a folder of objects. Raises OSError."""
    _rename(Path(path), _object_path(folder, oid))


def flush_drive(folder: Path) -> None:
    """Flush the drive's own cache where fsync does not do so, on macOS. Raises OSError."""
    if _FULL_FSYNC is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.fcntl(handle, _FULL_FSYNC)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a network file system has no drive here
            raise
    finally:
        os.close(handle)


def _object_path(folder: Path, oid: str) -> Path:
    return folder / oid[:2] / oid[2:]


def _make_folder(folder: Path) -> int:
    """Make the folder, and return the descriptor that locks it."""
    for _ in range(_TRIES):
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = _lock_folder(folder)
        if lock and folder.is_dir():
            return lock
        if lock:
            os.close(lock)
        time.sleep(_WAIT)  # another process deleted it before it was locked
    raise OSError(errno.EAGAIN, "the folder is deleted as soon as it is made", str(folder))


def _rename(path: Path, name: Path) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            path.rename(name)
        except FileNotFoundError:  # packing deletes the folders that it has emptied
            if not tries_left:
                raise
            name.parent.mkdir(mode=0o700, exist_ok=True)
        else:
            return


def _lock_folder(folder: Path) -> int:
    """Return the descriptor that locks the folder, or 0 if another process holds the lock or there is no folder."""
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


def _delete_folder(folder: Path, lock: int, process: int) -> None:
    """Delete the folder and release its lock, unless this is a forked child of its process."""
    if os.getpid() != process:
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _sync_existing(paths: Iterable[Path]) -> list[Path]:
    """Sync those files and folders that exist, at the same time, and return them. Raises OSError."""
    waiting, synced, failures = list(paths), list[Path](), list[OSError]()
    waiting.reverse()

    def work() -> None:
        while not failures:
            try:
                path = waiting.pop()
            except IndexError:
                return
            try:
                sync(path)
                synced.append(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append(error)

    threads = list[Thread]()
    with suppress(RuntimeError):  # no more threads can be started: fewer work too
        for _ in range(min(_SYNC_THREADS, len(waiting)) - 1):
            thread = Thread(target=work, daemon=True)
            thread.start()
            threads.append(thread)
    work()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return synced
