"""Whether refs may have moved, told without reading them: for who asks again and again.

git writes a ref beside its place and renames it, which changes the time of the folder; so does whoever packs them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from sessgit.store.layout import StorePaths

_CERTAIN_SECONDS = 2.0
"""Seconds after which another change gets another time on any disk."""

Stamp = tuple[int, int, int]


class RefPoller:
    """The times of the folders and files that git keeps refs in: some ten calls to the system each time."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._folders: list[str] = []
        self._known: list[Stamp] = []
        self._certain = False

    def may_have_moved(self) -> bool:
        """Whether a ref may have moved since this was asked last: also True the first time, and for two seconds after
        a change, in which a second one might not show. Who reads the refs then reads all that it speaks of."""
        if self._certain and self._stamps() == self._known:
            return False
        self._folders = _folders_below(self._store / "refs")
        self._known = self._stamps()
        newest = max((when for _, when, _ in self._known), default=0) / 1e9
        self._certain = newest + _CERTAIN_SECONDS < time.time()
        return True

    def _stamps(self) -> list[Stamp]:
        return [file_stamp(path) for path in (*self._folders, f"{self._store}/packed-refs")]


def store_identity(store: Path) -> tuple[Stamp, ...] | None:
    """What tells a store from another one in its place, or None where there is none."""
    try:
        folder = store.stat()
    except OSError:
        return None
    if not (store / "HEAD").is_file() or not (store / "objects").is_dir():
        return None
    return ((folder.st_dev, folder.st_ino, 0), file_stamp(StorePaths(store).key))


def file_stamp(path: Path | str) -> Stamp:
    """The inode, the time and the size of a file or folder; zeros where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked of ten paths, four times a second
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _folders_below(top: Path) -> list[str]:
    """The folder and all below it; what goes meanwhile is passed over."""
    found = [str(top)]
    for folder in found:
        try:
            with os.scandir(folder) as entries:
                found += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    return found
