"""Words and rows that no branch holds any more, taken out of the indexes so that nothing of them stays in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store.fulltext.index import TextIndex
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.sqlite import cache_file

_WHERE_UNREACHABLE = "WHERE commit_id NOT IN (SELECT substr(commits, -40) FROM turns)"


def forget_sessions(store: Path, sessions: Collection[str]) -> None:
    """Removes the text index if it holds words of one of these sessions that no other one has: it is made anew."""
    if not StorePaths(store).text.exists():
        return
    try:
        text = TextIndex(store)
        try:
            found = text.holds_left(sessions)
        finally:
            text.close()
        if found:
            text.remove()
    except sqlite3.Error as error:
        raise StoreError(f"cannot use the full-text index: {error}", "Try again in a while.") from error


def remove_fulltext_index(store: Path) -> None:
    """Removes the text index, whatever it holds: it is made anew."""
    cache_file.remove_file(StorePaths(store).text)


def reset_index(index: Index) -> None:
    """Removes the index, whatever it holds, and begins a new one, in which nothing is yet."""
    index._renew(cache_file.DAMAGE_ERROR)


def forget_unreachable(index: Index) -> None:
    """Takes out of the index, which is level with the refs, what is remembered of turns that no branch has.

    The file is written anew: SQLite leaves what was deleted where it stood.
    """
    try:
        with index._db as db:
            for table in ("gists", "touched", "cells"):
                db.execute(f"DELETE FROM {table} {_WHERE_UNREACHABLE}")
        index._db.execute("VACUUM")
        index._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreError(f"the index cannot be written: {error}", "Try again in a while.") from error
