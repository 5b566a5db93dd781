"""What a text index has of each line of each branch, to compare one that grew with one that was built at once."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sessgit.history import search
from sessgit.store.fulltext import LINE_BITS, LINE_MASK
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

Words = dict[tuple[str, int, int], set[tuple[str, str, int]]]
"""By branch, number of the turn and line: each word with its column and place."""


def check(store: Path, scratch: Path) -> None:
    """Assert that the index has the words that a new one gets."""
    copy = scratch / "indexed-anew"
    shutil.copytree(store, copy)
    try:
        for file in copy.glob(f"{StorePaths(copy).text.name}*"):
            file.unlink()
        assert _followed(store) == _followed(copy)
    finally:
        shutil.rmtree(copy)


def _followed(path: Path) -> Words:
    store = Store(path)
    index = Index(path, lambda: store)
    index.sync()
    assert search.update_fulltext(index) == ""
    index.close()
    return of(path)


def of(store: Path) -> Words:
    """Return the words of each line that is indexed."""
    rows: dict[int, set[tuple[str, str, int]]] = {}
    with closing(sqlite3.connect(StorePaths(store).text)) as db:
        db.execute("CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, words, instance)")
        for term, row, column, place in db.execute("SELECT term, doc, col, offset FROM temp.instances"):
            rows.setdefault(row, set()).add((term, column, place))
        blocks: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for own, turn, variant, number in db.execute("SELECT id, turn, variant, number FROM blocks"):
            blocks.setdefault((turn, variant), []).append((own, number))
        placed = db.execute(
            "SELECT name, number, turn, variant, lines FROM placed JOIN branches ON branch = branches.id"
        )
        found: Words = {}
        for name, number, turn, variant, lines in placed:
            for block, first in blocks.get((turn, variant), ()):
                for at in range(LINE_MASK + 1):
                    line = first << LINE_BITS | at
                    if line < lines and (words := rows.get(block << LINE_BITS | at)):
                        found[name, number, line] = words
    return found
