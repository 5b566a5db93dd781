"""A store is its owner's alone: files that nobody else may read, and a folder that nobody else may have made.

A library may be loaded by a program with any umask, and git and SQLite go by that. So whoever makes files of a store
narrows it for as long as that takes. Another thread of the program may meanwhile make a file that is too private, and
never one that is too open.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from sessgit.errors import StoreError

UMASK = 0o077
"""For children that make files of a store."""

_PARTS = ("objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/archive", "refs/deleted", "refs/keep",
          "refs/tags", "refs/remotes", "HEAD", "config", "packed-refs", "spool", "state", "state/locks", "key",
          "operations.jsonl", "state/forbidden")  # fmt: skip
"""What is never a link in a store that this program made. Settings may be one: they may belong to a collection."""


class _Narrowed:
    """How many of this process's threads have the umask narrowed, and what it was."""

    lock = Lock()
    count = 0
    before = 0


@contextmanager
def files() -> Iterator[None]:
    """What is made inside is readable by its owner alone."""
    with _Narrowed.lock:
        if not _Narrowed.count:
            _Narrowed.before = os.umask(UMASK)
        _Narrowed.count += 1
    try:
        yield
    finally:
        with _Narrowed.lock:
            _Narrowed.count -= 1
            if not _Narrowed.count:
                os.umask(_Narrowed.before)


def folder(path: Path) -> None:
    """The folder is there, and each that was not there is its owner's alone; raises OSError."""
    with files():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def check(store: Path) -> None:
    """Raises StoreError where the store is someone else's, or a part of it a link to what is none of the store's.

    Who owns a store says what runs when git is called in it. As git does, it takes root's word with sudo for that of
    who called it, and that of `safe.directory` in the user's settings.
    """
    try:
        owner = store.stat().st_uid
    except OSError as error:
        raise StoreError(f"cannot read the store at {store}: {error.strerror or error}") from error
    if owner != os.geteuid():
        from sessgit.store import backend

        if not backend.is_trusted(store):
            raise StoreError(
                f"the store at {store} belongs to someone else",
                "Name one of your own in SESSGIT_STORE. If you trust whoever owns this one: "
                "git config --global --add safe.directory FOLDER",
            )
    for part in _PARTS:
        try:
            if stat.S_ISLNK(os.lstat(store / part).st_mode):
                raise StoreError(
                    f"{part} in the store at {store} is a link",
                    "Nothing is read or written through it: put what it leads to in its place.",
                )
        except OSError:  # it is not there, or whoever needs it will say what is wrong
            continue
