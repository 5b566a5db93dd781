"""The folder in which an import keeps stores that are not part of the user's store yet.

Each import has a folder of its own and holds a lock in it. The next import deletes what a killed one left.
"""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import locks
from sessgit.store.layout import StorePaths

_PREFIX = "importing-"
_LOCK = "lock"
_TRIES = 100


@contextmanager
def quarantine_folder(beside: StorePaths) -> Iterator[Path]:
    """Make a folder for this process, and delete it when the context ends."""
    delete_stale_folders(beside)
    try:
        beside.state.mkdir(mode=0o700, exist_ok=True)  # somebody may have taken it for a cache
        folder, held = _make_locked_folder(beside)
    except OSError as error:
        raise StoreError(f"cannot write the store: {error.strerror or error}", ROOM) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held:
            locks.release(held)


def _make_locked_folder(beside: StorePaths) -> tuple[Path, int]:
    """A folder and the descriptor of the lock in it."""
    for _ in range(_TRIES):
        folder = beside.state / f"{_PREFIX}{secrets.token_hex(6)}"
        folder.mkdir(mode=0o700)
        held = 0
        with suppress(StoreError):
            held = locks.folder_lock(folder / _LOCK)
        if held and (folder / _LOCK).exists():
            return folder, held
        if held:
            locks.release(held)  # a sweep found it before it was locked, and takes it away
    raise OSError(errno.EAGAIN, "a folder is taken away as soon as it is made", str(folder))


def delete_stale_folders(beside: StorePaths) -> int:
    """Deletes the folders that nobody holds, and returns how many."""
    count = 0
    for folder in beside.state.glob(f"{_PREFIX}*"):
        if folder.is_symlink() or not folder.is_dir():
            continue
        held = locks.folder_lock(folder / _LOCK)
        if held:
            shutil.rmtree(folder, ignore_errors=True)
            locks.release(held)
            count += 1
    return count
