"""A store is its owner's alone: files that nobody else may read.

A library may be loaded by a program with any umask, and git and SQLite go by that. So whoever makes files of a store
narrows it for as long as that takes. Another thread of the program may meanwhile make a file that is too private, and
never one that is too open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

UMASK = 0o077
"""For children that make files of a store."""


class _UmaskCount:
    """How many of this process's threads have the umask narrowed, and what it was."""

    lock = Lock()
    count = 0
    before = 0


@contextmanager
def files() -> Iterator[None]:
    """What is made inside is readable by its owner alone."""
    with _UmaskCount.lock:
        if not _UmaskCount.count:
            _UmaskCount.before = os.umask(UMASK)
        _UmaskCount.count += 1
    try:
        yield
    finally:
        with _UmaskCount.lock:
            _UmaskCount.count -= 1
            if not _UmaskCount.count:
                os.umask(_UmaskCount.before)


def folder(path: Path) -> None:
    """The folder is there, and each that was not there is its owner's alone; raises OSError."""
    with files():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
