"""The text index against the lines of the turns that it has: each line by its hash, and whether it has words; nothing
is written.

The words themselves are not compared: they follow from lines with these hashes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store import layout
from sessgit.store.fulltext.index import LINE_BITS, LINE_MASK, Texts, Words, looked_into, words_of

_SELECT_PLACED = """SELECT name, tip, number, placed.turn, placed.variant, lines, at, hashes FROM branches
    JOIN placed ON branch = branches.id LEFT JOIN bodies USING (turn, variant) ORDER BY name, number"""
_HASH = 8
_Place = tuple[int, int, int, bytes]
Lines = Callable[[str, int], Sequence[Texts] | None]
"""What is to be found in each line of a turn as of a commit, None where that cannot be read."""


def differing_branches(
    store: Path, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], lines: Lines
) -> list[str]:
    """The branches of which the text index holds anything but what their turns say, by name.

    One that is not indexed up to its tip is passed over, and none is named where there is no text index. `commits` are
    the last ones of a branch's turns, by number. Raises StoreError where the index cannot be read.
    """
    file = layout.StorePaths(store).text
    if not file.exists():
        return []
    try:
        db = looked_into(file)
        if db is None:
            return []
        with closing(db):
            return list(dict.fromkeys(_find_differing(db, tips, commits, lines)))
    except sqlite3.Error as error:
        raise StoreError(f"cannot read the full-text index: {error}") from error


def _find_differing(
    db: sqlite3.Connection, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], lines: Lines
) -> Iterator[str]:
    held = _IndexedWords(db)
    right: dict[_Place, bool] = {}
    known, numbers = "", dict[int, str]()
    for name, tip, number, turn, variant, count, at, hashes in db.execute(_SELECT_PLACED).fetchall():
        if tips.get(name) != tip:
            continue
        if name != known:
            known, numbers = name, dict(commits(name))
        place = (turn, variant, count, at)
        if place not in right:
            said = lines(at.hex(), number)
            right[place] = said is None or held.has(words_of(said), count, turn, variant, hashes or b"")
        if not right[place] or numbers.get(number) != at.hex():
            yield name


class _IndexedWords:
    """Where the text index has words."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.blocks = {
            (turn, variant, number): own for own, turn, variant, number in db.execute("SELECT * FROM blocks")
        }
        self.all = {row for (row,) in db.execute("SELECT id FROM words_docsize")}

    def has(self, words: Words, count: int, turn: int, variant: int, hashes: bytes) -> bool:
        """Return whether just the lines of a turn that have words have rows, and all lines these hashes.

        `count` is how many lines of the variant a branch has: those of another branch may go on behind these.
        """
        if words.lines != count or words.hashes != hashes[: count * _HASH]:
            return False
        said = {row[0] for row in words.rows}
        longest = len(hashes) // _HASH
        every = (*range(words.lines), *range(longest, (longest | LINE_MASK) + 1))
        return all((self._row(turn, variant, line) in self.all) == (line in said) for line in every)

    def _row(self, turn: int, variant: int, line: int) -> int:
        block = self.blocks.get((turn, variant, line >> LINE_BITS))
        return -1 if block is None else block << LINE_BITS | line & LINE_MASK
