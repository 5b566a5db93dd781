"""The text index brought level in the background, where nobody searches: without what a search needs besides."""

from __future__ import annotations

import sqlite3

from sessgit.ops.reading import following
from sessgit.store.index import Index
from sessgit.store.indexed import derived
from sessgit.store.words.index import TextIndex


def follow(index: Index, seconds: float) -> None:
    """Brings it level for about so long; where another process is at it, that one is left to it. Raises SessgitError or
    `sqlite3.Error` where the text index cannot be written."""
    words = TextIndex(index.path, wait=0)
    try:
        if not following.is_level(index, words):
            following.follow(index, words, seconds=seconds)
    except sqlite3.Error as error:
        if derived.is_damage(error):
            words.remove()
        elif getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
    finally:
        words.close()
