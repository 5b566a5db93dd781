"""Folders in which something is made for as long as a process is at it, and which are gone afterwards.

A process that is killed leaves its own behind. It held a lock in it until then: so whoever looks later knows that
nobody is at it any more, and takes it away.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.store import locks

STALE_SECONDS = 600.0
"""Seconds after which a folder without a lock has surely lost who made it."""
_FOLDER_NAME = re.compile(r"(sessgit-(bisect-|replay-)?|repair-)[a-z0-9_]{8}")
"""How the folders are called: by what they are for, and by what nobody else has chosen."""
_OWNER = ".sessgit-room"
"""The file in each of them that is locked: without it a folder is none of ours."""


@contextmanager
def make_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A folder of this process' own, by its path without links, in `parent` or where the system has such folders.

    `prefix` is one of `sessgit-`, `sessgit-bisect-`, `sessgit-replay-` and `repair-`. Raises OSError where none can be
    made.
    """
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=parent)))
    held = 0
    with suppress(SessgitError):  # then nobody finds it if this is killed
        held = locks.folder_lock(folder / _OWNER)
    try:
        yield folder
    finally:
        delete_folder(folder)
        if held:
            locks.release(held)


def stale_folders(parent: Path | None = None) -> list[Path]:
    """The folders there that killed processes left, in their order."""
    return [path for path in _own_folders(parent) if _is_stale(path)]


def delete_stale_folders(parent: Path | None = None) -> int:
    """Deletes the folders that killed processes left there, with what git notes of worktrees in them; how many."""
    count = 0
    for path in _own_folders(parent):
        if not _is_stale(path):
            continue
        notes = list(_worktree_records(path))
        delete_folder(path)
        if not path.exists():
            count += 1
            for note in notes:
                shutil.rmtree(note, ignore_errors=True)
    return count


def delete_folder(folder: Path) -> None:
    """Deletes a folder with all in it, also what was made unreadable. What cannot be deleted stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    with suppress(OSError):
        folder.chmod(0o700)
        for place, folders, _ in os.walk(folder):
            for one in (Path(place) / name for name in folders):
                with suppress(OSError):
                    if not one.is_symlink():
                        one.chmod(0o700)  # before the walk goes into it
    shutil.rmtree(folder, ignore_errors=True)


def _own_folders(parent: Path | None) -> Iterator[Path]:
    try:
        place = parent or Path(tempfile.gettempdir())  # there may be none where nothing can be written
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if _FOLDER_NAME.fullmatch(entry.name):
            yield place / entry.name


def _is_stale(path: Path) -> bool:
    """Whether it is a folder of this user, made here, which nobody holds. An empty one was never finished."""
    try:
        state = path.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
            return False
        if abs(time.time() - state.st_mtime) < STALE_SECONDS:
            return False
        owner = path / _OWNER
        if not owner.is_file() or owner.is_symlink():
            return not any(path.iterdir())
        held = locks.folder_lock(owner)
    except (OSError, SessgitError):
        return False
    if held:
        locks.release(held)
    return bool(held)


def _worktree_records(folder: Path) -> Iterator[Path]:
    """What git keeps in a repository of each worktree in the folder, where that says so, too."""
    for file in folder.glob("*/.git"):
        with suppress(OSError, ValueError):
            if file.is_symlink() or not file.is_file():
                continue
            said = file.read_text("utf-8").removesuffix("\n")
            kept = Path(said.removeprefix("gitdir: "))
            is_one = kept.is_absolute() and kept.parent.name == "worktrees" and not kept.is_symlink()
            if is_one and (kept / "gitdir").read_text("utf-8").removesuffix("\n") == str(file):
                yield kept
