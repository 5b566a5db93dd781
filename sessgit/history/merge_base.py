"""The commit at which two branches parted."""

from __future__ import annotations

from collections.abc import Iterable

from sessgit.store.store import Store


def merge_base(store: Store, ours: str, theirs: str) -> str:
    """Return the merge base of two commits, ``""`` if they have none; of several the one with the most turns."""
    return newest_commit(store, store.repo.merge_bases(ours, theirs))


def newest_commit(store: Store, commits: Iterable[str]) -> str:
    """Return the commit with the most turns, ``""`` if there is none."""
    return max(commits, key=lambda commit: (store.state(commit).turns, commit), default="")
