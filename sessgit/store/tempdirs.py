"""Temporary folders that exist as long as a process works in them.

The process holds a lock on a file in the folder, so another process can delete the folder of a killed one.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, SessgitError, StoreError
from sessgit.store import locks, private_files

_ABANDONED_SECONDS = 600.0
"""Age after which a folder without a lock file has lost its owner: the file is created right after the folder."""
_FOLDER_NAME = re.compile(r"(sessgit-(bisect-|replay-)?|repair-|importing-|push-)[a-z0-9_]{8}")
_LOCK_FILE = ".sessgit-room"
"""The locked file in each folder. In the system's temporary folder, a folder without it is not ours."""
_TRIES = 100


@contextmanager
def make_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a folder in `parent`, or in the system's temporary folder, and delete it when the context ends.

    Yields its path without links. `prefix` is one of those in `_FOLDER_NAME`. Raises SessgitError.
    """
    try:
        if parent is not None:
            private_files.make_folder(parent)
            delete_stale_folders(parent)
        folder, lock = _make_locked_folder(prefix, parent)
    except OSError as error:
        if parent is not None:
            raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
        reason = error.strerror or error
        raise SessgitError(f"cannot create a temporary folder: {reason}", "Set TMPDIR to another place.") from error
    try:
        yield folder
    finally:
        delete_folder(folder)
        if lock:
            locks.release(lock)


def _make_locked_folder(prefix: str, parent: Path | None) -> tuple[Path, int]:
    for _ in range(_TRIES):
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=parent)))
        try:
            lock = locks.folder_lock(folder / _LOCK_FILE)
        except SessgitError:  # no locks on this file system: a kill leaves the folder
            return folder, 0
        if lock and (folder / _LOCK_FILE).exists():
            return folder, lock
        if lock:
            locks.release(lock)  # another process took the folder for an abandoned one before it was locked
    raise OSError(errno.EAGAIN, "temporary folders are deleted as soon as they are made", str(parent))


def stale_folders(parent: Path | None = None) -> list[Path]:
    """Return the folders of killed processes, sorted."""
    try:
        place = parent or Path(tempfile.gettempdir())  # there may be none that can be written
        paths = sorted(path for path in place.iterdir() if _FOLDER_NAME.fullmatch(path.name))
    except OSError:
        return []
    return [path for path in paths if _is_stale(path, is_ours=parent is not None)]


def delete_stale_folders(parent: Path | None = None) -> int:
    """Delete the folders of killed processes, with git's records of worktrees in them; return how many."""
    count = 0
    for path in stale_folders(parent):
        records = list(_worktree_records(path))
        delete_folder(path)
        if not path.exists():
            count += 1
            for record in records:
                shutil.rmtree(record, ignore_errors=True)
    return count


def delete_folder(folder: Path) -> None:
    """Delete a folder with all in it, unreadable folders too. What cannot be deleted stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    with suppress(OSError):
        folder.chmod(0o700)
        for parent, names, _ in os.walk(folder):
            for path in (Path(parent) / name for name in names):
                with suppress(OSError):
                    if not path.is_symlink():
                        path.chmod(0o700)  # before the walk enters it
    shutil.rmtree(folder, ignore_errors=True)


def _is_stale(path: Path, *, is_ours: bool) -> bool:
    """Return whether no process works in this folder any more. `is_ours` says that only sessgit makes folders there."""
    try:
        state = path.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
            return False
        lock_file = path / _LOCK_FILE
        if not lock_file.is_file() or lock_file.is_symlink():
            is_old = abs(time.time() - state.st_mtime) >= _ABANDONED_SECONDS
            return is_old and (is_ours or not any(path.iterdir()))
        lock = locks.folder_lock(lock_file)
    except (OSError, SessgitError):
        return False
    if lock:
        locks.release(lock)
    return bool(lock)


def _worktree_records(folder: Path) -> Iterator[Path]:
    """Yield the folders in which git records the worktrees below `folder`, if they point back to them."""
    for file in folder.glob("*/.git"):
        with suppress(OSError, ValueError):
            if file.is_symlink() or not file.is_file():
                continue
            record = Path(file.read_text("utf-8").removesuffix("\n").removeprefix("gitdir: "))
            is_record = record.is_absolute() and record.parent.name == "worktrees" and not record.is_symlink()
            if is_record and (record / "gitdir").read_text("utf-8").removesuffix("\n") == str(file):
                yield record
