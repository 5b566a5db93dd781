"""The text index held against the lines of the turns that it says it has; nothing is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store import layout
from sessgit.store.words.index import BITS, PLACE, Texts, line_hashes, looked_into

_HELD = """SELECT name, tip, number, placed.turn, placed.variant, lines, at, hashes FROM branches
    JOIN placed ON branch = branches.id LEFT JOIN bodies USING (turn, variant) ORDER BY name, number"""
_HASH = 8

Lines = Callable[[str, int], Sequence[Texts] | None]
"""What is to be found in each line of a turn as of a commit, None where that cannot be read."""


def differing(
    store: Path, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], lines: Lines
) -> list[str]:
    """The branches of which the text index holds anything but what their turns say, by name.

    One that is not indexed up to its tip is passed over, and none is named where there is no text index. `commits` are
    the last ones of a branch's turns, by number. Raises StoreError where the index cannot be read.
    """
    file = layout.Beside(store).text
    if not file.exists():
        return []
    try:
        db = looked_into(file)
        if db is None:
            return []
        with closing(db):
            return list(dict.fromkeys(_differing(db, tips, commits, lines)))
    except sqlite3.Error as error:
        raise StoreError(f"the text index cannot be read: {error}") from error


def _differing(
    db: sqlite3.Connection, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], lines: Lines
) -> Iterator[str]:
    blocks = {(turn, variant, number): own for own, turn, variant, number in db.execute("SELECT * FROM blocks")}
    rows = {row for (row,) in db.execute("SELECT id FROM words_docsize")}
    right: dict[tuple[object, ...], bool] = {}
    known, numbers = "", dict[int, str]()
    for name, tip, number, turn, variant, count, at, held in db.execute(_HELD).fetchall():
        if tips.get(name) != tip:
            continue
        if name != known:
            known, numbers = name, dict(commits(name))
        place = (turn, variant, count, at)
        if place not in right:
            said = lines(at.hex(), number)
            right[place] = said is None or (
                len(said) == count
                and line_hashes(said) == (held or b"")[: count * _HASH]
                and all(row in rows for row in _rows(said, blocks, turn, variant))
            )
        if numbers.get(number) != at.hex() or not right[place]:
            yield name


def _rows(said: Sequence[Texts], blocks: Mapping[tuple[int, int, int], int], turn: int, variant: int) -> Iterator[int]:
    """Where the words of each line stand that has any; -1 for a line that has no place."""
    for line, texts in enumerate(said):
        if texts.asked or texts.answered or texts.did:
            block = blocks.get((turn, variant, line >> BITS))
            yield -1 if block is None else block << BITS | line & PLACE
