"""A store is its owner's alone: a folder that nobody else may have made, and no way out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sessgit.errors import StoreError

_CHECKED_PATHS = ("objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/archive", "refs/deleted",
    "refs/keep",
          "refs/tags", "refs/remotes", "HEAD", "config", "packed-refs", "spool", "state", "state/locks", "key",
          "operations.jsonl", "state/forbidden")  # fmt: skip
"""What is never a link in a store that this program made. Settings may be one: they may belong to a collection."""


def check_owner(store: Path) -> None:
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
                f"the store at {store} belongs to another user",
                "Name one of your own in SESSGIT_STORE. If you trust the owner of this one: "
                "git config --global --add safe.directory FOLDER",
            )
    for part in _CHECKED_PATHS:
        try:
            is_link = stat.S_ISLNK(os.lstat(store / part).st_mode)
        except OSError:  # it is not there, or whoever needs it will say what is wrong
            continue
        if is_link:
            raise _link_error(store, part)
    # One of the folders that objects lie in would lead all that is written there out of the store.
    if (name := _first_link(store / "objects")) is not None:
        raise _link_error(store, f"objects/{name}")


def _first_link(folder: Path) -> str | None:
    """The name of a link in a folder: the folder tells it without a look at each."""
    try:
        with os.scandir(folder) as entries:
            return next((entry.name for entry in entries if entry.is_symlink()), None)
    except OSError:
        return None


def _link_error(store: Path, part: str) -> StoreError:
    return StoreError(
        f"{part} in the store at {store} is a link",
        "Links are not followed: replace it with its target.",
    )
