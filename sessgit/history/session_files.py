"""The files in `kept/` that an import stored with a session: every commit has them, and forks inherit them."""

from __future__ import annotations

import json
from typing import Any

from sessgit.errors import StoreError
from sessgit.store import layout, refs
from sessgit.store.objects import Entry
from sessgit.store.store import Store

SOURCE = "source.json"
"""The note of the session's source; forks do not inherit it."""


def kept_files(store: Store, commit: str) -> dict[str, Entry]:
    """Return the files as of a commit by their paths, without the note."""
    return {path: one for path, one in sorted(store.files(commit, layout.KEPT).items()) if path != SOURCE}


def file_sizes(store: Store, commit: str) -> dict[str, int]:
    """Return the size of each of them in bytes."""
    return {path: len(store.objects.blob(oid)) for path, (oid, _) in kept_files(store, commit).items()}


def inherited_changes(store: Store, session: str) -> dict[str, Entry | None]:
    """Return what a fork of a session inherits, as changes of its tree: all files that the session keeps now."""
    _, tip = refs.session_head(store.path, layout.session_of(session)) or ("", "")
    return {layout.KEPT: store.entry(tip, layout.KEPT)}


def missing_files(store: Store, ours: str, theirs: str) -> dict[str, Entry]:
    """Return the files that only theirs keeps, by their paths in the tree."""
    here = kept_files(store, ours)
    above = {"/".join(path.split("/")[:n]) for path in here for n in range(1, path.count("/") + 1)}
    return {
        f"{layout.KEPT}/{path}": entry
        for path, entry in kept_files(store, theirs).items()
        if path not in here and path not in above and not any(path.startswith(f"{one}/") for one in here)
    }


def joined_changes(store: Store, main: str, other: str) -> dict[str, Entry | None]:
    """Return the same for two sides of one session, which both have the note."""
    held = store.entry(main, layout.KEPT)
    return {layout.KEPT: store.entry(other, layout.KEPT)} if held is None else {**missing_files(store, main, other)}


def source_note(store: Store, commit: str, session: str) -> dict[str, Any]:
    """Return what an import noted of the session: its `system`, `id`, number of `turns` and what it `said`; empty for
    any other session."""
    note = kept_note(store, commit)
    return note if note.get("session") == session else {}


def kept_note(store: Store, commit: str) -> dict[str, Any]:
    """Return the note of `source_note` in a commit, which forks have of the `session` that was imported."""
    entry = store.entry(commit, f"{layout.KEPT}/{SOURCE}")
    try:
        found = json.loads(store.objects.blob(entry[0])) if entry and not entry[1] else None
    except (ValueError, RecursionError, StoreError):
        return {}
    return found if isinstance(found, dict) else {}
