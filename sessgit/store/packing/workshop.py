"""The folder in which a bulk import makes what is not in the store yet: packs, and what the recorder keeps of files.

Each import has one of its own, and holds a lock in it. What a killed one left goes when the next one begins.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import locks
from sessgit.store.layout import Beside

_PREFIX = "importing-"
_LOCK = "lock"


@contextmanager
def opened(beside: Beside) -> Iterator[Path]:
    """A folder that is there, and this process' own, for as long as the context lasts."""
    sweep(beside)
    folder = beside.state / f"{_PREFIX}{secrets.token_hex(6)}"
    try:
        beside.state.mkdir(mode=0o700, exist_ok=True)  # somebody may have taken it for a cache
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise StoreError(f"the store cannot be written: {error}", ROOM) from error
    held = locks.folder(folder / _LOCK)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held:
            locks.release(held)


def sweep(beside: Beside) -> int:
    """Deletes the folders that nobody holds, and returns how many."""
    count = 0
    for folder in beside.state.glob(f"{_PREFIX}*"):
        if folder.is_symlink() or not folder.is_dir():
            continue
        held = locks.folder(folder / _LOCK)
        if held:
            shutil.rmtree(folder, ignore_errors=True)
            locks.release(held)
            count += 1
    return count
