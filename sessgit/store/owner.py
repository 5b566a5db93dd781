"""Whether a folder is a store, and its owner's alone: no part of it leads out of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sessgit.errors import StoreError

_NEVER_LINKS = (
    *("objects", "objects/pack", "objects/info", "HEAD", "config", "packed-refs"),
    *("refs", *(f"refs/{space}" for space in ("heads", "archive", "deleted", "keep", "tags", "remotes"))),
    *("spool", "state", "state/locks", "state/forbidden", "key", "operations.jsonl"),
)
"""Parts of a store that are never symbolic links. The settings may be one, into a collection of dotfiles."""


def store_exists(path: Path) -> bool:
    """Return whether git would take the folder for a repository; raises OSError if that cannot be read."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


def missing_parts(path: Path) -> list[str]:
    """Return which of `HEAD` and `objects` is missing or invalid in a folder with other parts of a store."""
    if not any((path / name).exists() for name in ("objects", "refs/heads", "packed-refs", "operations.jsonl")):
        return []
    try:
        head = (path / "HEAD").read_bytes()
    except OSError:
        head = b""
    missing = [] if head.startswith(b"ref: refs/") else ["HEAD"]
    return missing if (path / "objects").is_dir() else [*missing, "objects"]


def check_owner(store: Path) -> None:
    """Raise StoreError if another user owns the store, or a part of it is a symbolic link.

    The owner of a repository decides what git runs in it. Like git, this accepts the user who called sudo, and folders
    listed under `safe.directory` in the user's git config.
    """
    try:
        owner = store.stat().st_uid
    except OSError as error:
        raise StoreError(f"cannot read the store at {store}: {error.strerror or error}") from error
    if owner != os.geteuid():
        from sessgit.store import backend  # most stores are the user's own

        if not backend.is_trusted(store):
            raise StoreError(
                f"the store at {store} belongs to another user",
                "Name one of your own in SESSGIT_STORE. If you trust the owner of this one: "
                "git config --global --add safe.directory FOLDER",
            )
    # It says False of what cannot be read: the code that needs that reports it.
    links = [part for part in _NEVER_LINKS if os.path.islink(f"{store}/{part}")]  # noqa: PTH114
    # A link among the object folders would lead new objects out of the store. scandir knows the type without a stat.
    with suppress(OSError), os.scandir(store / "objects") as entries:
        links += [f"objects/{entry.name}" for entry in entries if entry.is_symlink()]
    if links:
        raise StoreError(
            f"{links[0]} in the store at {store} is a link", "Links are not followed: replace it with its target."
        )
