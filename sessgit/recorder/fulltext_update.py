"""The text index brought level in the background, where nobody searches: without what a search needs besides."""

from __future__ import annotations

import sqlite3

from sessgit.history import fulltext_update
from sessgit.store.fulltext.index import TextIndex
from sessgit.store.index import Index
from sessgit.store.sqlite import cache_file


def update_fulltext(index: Index, seconds: float) -> None:
    """Brings it level for about so long; where another process is at it, that one is left to it. Raises SessgitError or
    `sqlite3.Error` where the text index cannot be written."""
    words = TextIndex(index.path, wait=0)
    try:
        if not fulltext_update.is_up_to_date(index, words):
            fulltext_update.update_fulltext(index, words, seconds=seconds)
    except sqlite3.Error as error:
        if cache_file.is_damage(error):
            words.remove()
        elif getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
    finally:
        words.close()
