"""The text index held against the lines of the turns that it says it has; nothing is written.

Each word of a line, with its column and place there, counts into a number of the line. So a word that is missing, is
too much or stands elsewhere is found without keeping all of them, and lines are indexed once more in small parts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store import layout
from sessgit.store.fulltext.index import BITS, PLACE, WORDS, Texts, Words, looked_into, words_of

_HELD = """SELECT name, tip, number, placed.turn, placed.variant, lines, at, hashes FROM branches
    JOIN placed ON branch = branches.id LEFT JOIN bodies USING (turn, variant) ORDER BY name, number"""
_HASH = 8
_BATCH = 8_000_000
"""Characters that are indexed once more at a time."""
_INSTANCES = "CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, words, instance)"

_Columns = tuple[str, str, str, str]
_Place = tuple[int, int, int, bytes]
Lines = Callable[[str, int], Sequence[Texts] | None]
"""What is to be found in each line of a turn as of a commit, None where that cannot be read."""


def differing(
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
            return list(dict.fromkeys(_differing(db, tips, commits, lines)))
    except sqlite3.Error as error:
        raise StoreError(f"the text index cannot be read: {error}") from error


def _differing(
    db: sqlite3.Connection, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], lines: Lines
) -> Iterator[str]:
    held = _Held(db)
    places: dict[_Place, frozenset[int] | None] = {}
    placed: list[tuple[str, _Place]] = []
    known, numbers = "", dict[int, str]()
    with closing(_Anew()) as anew:
        for name, tip, number, turn, variant, count, at, hashes in db.execute(_HELD).fetchall():
            if tips.get(name) != tip:
                continue
            if name != known:
                known, numbers = name, dict(commits(name))
            place = (turn, variant, count, at)
            if place not in places:
                said = lines(at.hex(), number)
                places[place] = frozenset[int]()
                if said is not None:
                    words = words_of(said)
                    is_right = words.lines == count and words.hashes == (hashes or b"")[: count * _HASH]
                    rows = held.rows(words, turn, variant, len(hashes or b"") // _HASH) if is_right else None
                    places[place] = None if rows is None else frozenset(rows)
                    anew.add(rows or {})
            placed.append((name, place))
            if numbers.get(number) != at.hex():
                yield name
        wanted = anew.words()
    there = _words(db, wanted.keys())
    wrong = {row for row, words in wanted.items() if there.get(row) != words}
    for name, place in placed:
        rows_of = places[place]
        if rows_of is None or not wrong.isdisjoint(rows_of):
            yield name


class _Held:
    """Where the text index has words."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.blocks = {
            (turn, variant, number): own for own, turn, variant, number in db.execute("SELECT * FROM blocks")
        }
        self.all = {row for (row,) in db.execute("SELECT id FROM words_docsize")}

    def rows(self, words: Words, turn: int, variant: int, longest: int) -> dict[int, _Columns] | None:
        """The words of each line that has any, by their rows; None where other lines of the turn have rows.

        `longest` are the lines of the variant: those of another branch may go on behind these.
        """
        found: dict[int, _Columns] = {}
        said = {row[0]: row[1:] for row in words.rows}
        end = (longest | PLACE) + 1
        for line in (*range(words.lines), *range(longest, end)):
            block = self.blocks.get((turn, variant, line >> BITS))
            row = -1 if block is None else block << BITS | line & PLACE
            if (row in self.all) != (line in said):
                return None
            if line in said:
                found[row] = said[line]
        return found


class _Anew:
    """Lines indexed once more, in memory, each row once."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.execute(WORDS)
        self.known = set[int]()
        self.size = 0
        self.found: dict[int, tuple[int, bytes]] = {}

    def close(self) -> None:
        self.db.close()

    def add(self, rows: Mapping[int, _Columns]) -> None:
        """Takes rows with their columns."""
        new = {row: columns for row, columns in rows.items() if row not in self.known}
        self.known.update(rows)
        values = [(row, *columns) for row, columns in new.items()]
        self.db.executemany("INSERT INTO words(rowid, asked, answered, did, tool) VALUES (?,?,?,?,?)", values)
        self.size += sum(len(text) for columns in new.values() for text in columns)
        if self.size > _BATCH:
            self.words()

    def words(self) -> Mapping[int, tuple[int, bytes]]:
        """What was added, as `_words` gives it."""
        self.found |= _words(self.db)
        self.db.execute("INSERT INTO words(words) VALUES ('delete-all')")
        self.size = 0
        return self.found


def _words(db: sqlite3.Connection, rows: Collection[int] | None = None) -> dict[int, tuple[int, bytes]]:
    """By row a number of all words in it, each with its column and place, and how long the columns are; of these rows
    or all. Numbers of the same words are the same in one process."""
    numbers: dict[int, int] = {}
    db.execute(_INSTANCES)
    try:
        for term, row, column, offset in db.execute("SELECT term, doc, col, offset FROM temp.instances"):
            if rows is None or row in rows:
                numbers[row] = numbers.get(row, 0) ^ hash((term, column, offset))
    finally:
        db.execute("DROP TABLE temp.instances")
    sizes = db.execute("SELECT id, sz FROM words_docsize")
    return {row: (numbers.get(row, 0), bytes(size)) for row, size in sizes if rows is None or row in rows}
