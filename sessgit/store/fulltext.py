"""The full-text index: which words are in which line of which turn, in an SQLite file of its own, never the truth.

It holds words and no texts. A turn is stored under its prompt, so that branches which share it share its words, and a
turn that grew adds its new lines only. Words are never deleted: queries skip what no branch holds any more, and once
half of the turns are like that, the index is rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.model.frozen import frozen
from sessgit.model.search_query import space_single_char_words
from sessgit.store import layout
from sessgit.store.index import CacheSchema, open_cache, remove_cache

LONGEST_TEXT = 1 << 18
"""Number of characters of a line's text by one speaker that are indexed: half of them from its start, half from its
end."""
_VERSION = 2
"""Changes with what is indexed of a line: an older file is rebuilt."""
_TABLES = {
    "branches": "CREATE TABLE branches(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, tip TEXT NOT NULL)",
    "turns": """CREATE TABLE turns(
        id INTEGER PRIMARY KEY, prompt TEXT NOT NULL UNIQUE, time INTEGER NOT NULL, home TEXT NOT NULL)""",
    "bodies": """CREATE TABLE bodies(
        turn INTEGER NOT NULL, variant INTEGER NOT NULL, blob TEXT NOT NULL, hashes BLOB NOT NULL,
        PRIMARY KEY(turn, variant)) WITHOUT ROWID""",
    "placed": """CREATE TABLE placed(
        branch INTEGER NOT NULL, number INTEGER NOT NULL, turn INTEGER NOT NULL, variant INTEGER NOT NULL,
        lines INTEGER NOT NULL, at BLOB NOT NULL, PRIMARY KEY(branch, number)) WITHOUT ROWID""",
    "blocks": """CREATE TABLE blocks(
        id INTEGER PRIMARY KEY, turn INTEGER NOT NULL, variant INTEGER NOT NULL, number INTEGER NOT NULL,
        UNIQUE(turn, variant, number))""",
    "level": "CREATE TABLE level(refs BLOB NOT NULL)",
    "gone": "CREATE TABLE gone(turn INTEGER PRIMARY KEY)",
    "words": """CREATE VIRTUAL TABLE words USING fts5(
        asked, answered, did, tool, content = '', tokenize = 'unicode61 remove_diacritics 2')""",
}
WORDS = _TABLES["words"]
"""The statement for the table of words, which has a row for each line with any."""
_INDEXES = ("CREATE INDEX placed_turn ON placed(turn)", "CREATE INDEX placed_at ON placed(at)")
_SCHEMA = CacheSchema(_VERSION, tuple(_TABLES), (*_TABLES.values(), *_INDEXES))

LINE_BITS = 5
"""Each 32 lines of a turn have a block; the id of a row is its block's id followed by so many bits for its line. So the
rows with a word have ids close to each other, which take a byte or two instead of five."""
LINE_MASK = (1 << LINE_BITS) - 1
_HASH = 8
_CHECKPOINT = 8_000
"""Pages of 4 KB in the write-ahead log after which they are moved into the file itself."""
_FTS_HASH_BYTES = 48 << 20
"""Bytes of words that FTS5 gathers before it writes them: with the default of 1 MB it merges the written parts
again and again."""
_BULK_MERGE = {"automerge": 0, "crisismerge": 64}
_NORMAL_MERGE = {"automerge": 4, "crisismerge": 16}
"""FTS5's defaults: the number of parts on a level from which it begins to merge, and at which it must."""
_NON_WORD = re.compile(r"[^a-z0-9]")


@frozen
class Texts:
    """The searchable texts of a line: what was asked, what was answered, and the input and output of a tool."""

    asked: str = ""
    answered: str = ""
    did: str = ""
    tool: str = ""


@frozen
class Words:
    """What is indexed of a turn: a hash after each line of all texts so far, and for each line with words its number,
    from 0, and the four columns."""

    hashes: bytes
    rows: tuple[tuple[int, str, str, str, str], ...]

    @property
    def lines(self) -> int:
        """The number of lines of the turn."""
        return len(self.hashes) // _HASH

    @property
    def size(self) -> int:
        """The number of indexed characters."""
        return sum(len(asked) + len(answered) + len(did) for _, asked, answered, did, _ in self.rows)


@frozen
class Turn:
    """A turn by its prompt's uuid; `time` is in seconds since 1970, `home` the session that it was recorded for."""

    prompt: str
    time: int
    home: str


@frozen
class Body:
    """The first `lines` lines of a variant of a turn: what a branch holds of it."""

    turn: int
    variant: int
    lines: int


class TextIndex:
    """The full-text index of the store at `path`, not to be shared between threads."""

    def __init__(self, path: Path, wait: float = 10.0) -> None:
        self._file = layout.StorePaths(path).text
        self.db = open_cache(self._file, _SCHEMA)
        self.read_only = not self.db.execute("PRAGMA database_list").fetchone()[2]
        """Whether nothing can be added to the file."""
        if self.read_only:
            self.db.close()
            self.db = _open_read_only(self._file)
        self.db.isolation_level = None
        self.db.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self.db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
        if not self.read_only:
            self._configure()

    def _configure(self) -> None:
        with suppress(sqlite3.Error):  # another process is writing, or the next query finds the damage
            self._set({"hashsize": _FTS_HASH_BYTES}, {})

    def set_bulk_mode(self, *, much: bool) -> None:
        """Merge the written parts seldom while much is added, which takes a sixth of the time; lasts until the next
        call. Raises `sqlite3.Error`."""
        self._set(_BULK_MERGE if much else _NORMAL_MERGE, _NORMAL_MERGE)

    def _set(self, options: Mapping[str, int], defaults: Mapping[str, int]) -> None:
        current = {**defaults, **dict(self.db.execute("SELECT k, v FROM words_config").fetchall())}
        for name, value in options.items():
            if current.get(name) != value:
                self.db.execute("INSERT INTO words(words, rank) VALUES (?, ?)", (name, value))

    def join(self) -> None:
        """Merge all written parts into one. Raises `sqlite3.Error`."""
        self.db.execute("INSERT INTO words(words) VALUES ('optimize')")

    def close(self) -> None:
        self.db.close()

    def remove(self) -> None:
        """Close the file and delete it: the next index is empty."""
        self.db.close()
        remove_cache(self._file)

    # Following the branches

    def level(self) -> bytes:
        """Return the hash of the refs up to which all branches are indexed."""
        row = self.db.execute("SELECT refs FROM level").fetchone()
        return row[0] if row and isinstance(row[0], bytes) else b""

    def note_level(self, refs: bytes) -> None:
        """Store the hash of the refs up to which all branches are indexed."""
        self.db.execute("DELETE FROM level")
        self.db.execute("INSERT INTO level VALUES (?)", (refs,))

    def tips(self) -> dict[str, str]:
        """Return the commit up to which each branch is indexed."""
        return dict(self.db.execute("SELECT name, tip FROM branches").fetchall())

    def tip(self, branch: str) -> str:
        """Return the commit up to which a branch is indexed, or ``""``."""
        row = self.db.execute("SELECT tip FROM branches WHERE name = ?", (branch,)).fetchone()
        return str(row[0]) if row else ""

    def clear(self) -> None:
        """Delete everything."""
        with self.writing():
            for table in _TABLES:
                self.db.execute(f"DROP TABLE {table}")
            for statement in _SCHEMA.statements:
                self.db.execute(statement)
        self._configure()

    def is_worn(self) -> bool:
        """Return whether most turns are on no branch any more."""
        counts = "SELECT (SELECT count(*) FROM gone) * 2 > (SELECT count(*) FROM turns)"
        return bool(self.db.execute(counts).fetchone()[0])

    def holds_left(self, sessions: Collection[str]) -> bool:
        """Return whether there are words of these deleted sessions that no other branch has."""
        branches = any(layout.session_of(branch) in sessions for branch in self.tips())
        query = "SELECT 1 FROM gone JOIN turns ON id = turn WHERE home IN (SELECT value FROM json_each(?)) LIMIT 1"
        return branches or self.db.execute(query, (json.dumps(list(sessions)),)).fetchone() is not None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write everything in the context, or nothing; other processes wait."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def common(self, branch: str, commit_of: Callable[[int], str]) -> int:
        """Return the last turn of a branch that is indexed at the commit which it has now; release later ones."""
        branch_id = self._branch(branch)
        placed = self.db.execute("SELECT number, at FROM placed WHERE branch = ? ORDER BY number DESC", (branch_id,))
        last = next((number for number, at in placed if commit_of(number) == at.hex()), 0)
        self._release("branch = ? AND number > ?", (branch_id, last))
        return last

    def body_at(self, commit: str) -> Body | None:
        """Return what is indexed of the turn that a commit ends with."""
        query = "SELECT turn, variant, lines FROM placed WHERE at = ? LIMIT 1"
        row = self.db.execute(query, (bytes.fromhex(commit),)).fetchone()
        return Body(*row) if row else None

    def body_of(self, prompt: str, blob: str) -> Body | None:
        """Return what is indexed of a turn, if it is just what the blob holds."""
        query = """SELECT turn, variant, length(hashes) / ? FROM turns, bodies
            WHERE prompt = ? AND turn = id AND blob = ?"""
        row = self.db.execute(query, (_HASH, prompt, blob)).fetchone()
        return Body(*row) if row else None

    def add(self, turn: Turn, blob: str, words: Words) -> Body:
        """Index those of a turn's words that are not indexed yet."""
        self.db.execute(
            "INSERT OR IGNORE INTO turns(prompt, time, home) VALUES (?,?,?)", (turn.prompt, turn.time, turn.home)
        )
        ((turn_id,),) = self.db.execute("SELECT id FROM turns WHERE prompt = ?", (turn.prompt,))
        hashes = words.hashes
        variant = -1
        bodies = self.db.execute("SELECT variant, hashes FROM bodies WHERE turn = ?", (turn_id,)).fetchall()
        for variant, known in bodies:
            shared = min(len(known), len(hashes))
            if known[shared - _HASH : shared] == hashes[shared - _HASH : shared]:
                if len(hashes) > len(known):
                    change = "UPDATE bodies SET blob = ?, hashes = ? WHERE turn = ? AND variant = ?"
                    self.db.execute(change, (blob, hashes, turn_id, variant))
                    self._add_rows(turn_id, variant, words, len(known) // _HASH)
                return Body(turn_id, variant, words.lines)
        variant += 1
        self.db.execute("INSERT INTO bodies VALUES (?,?,?,?)", (turn_id, variant, blob, hashes))
        self._add_rows(turn_id, variant, words, 0)
        return Body(turn_id, variant, words.lines)

    def _add_rows(self, turn: int, variant: int, words: Words, known: int) -> None:
        """Add the rows of the lines from number `known` on."""
        rows = []
        blocks: dict[int, int] = {}
        for line, *columns in words.rows:
            if line >= known:
                number = line >> LINE_BITS
                if number not in blocks:
                    blocks[number] = self._block(turn, variant, number)
                rows.append((blocks[number] << LINE_BITS | line & LINE_MASK, *columns))
        self.db.executemany("INSERT INTO words(rowid, asked, answered, did, tool) VALUES (?,?,?,?,?)", rows)

    def _block(self, turn: int, variant: int, number: int) -> int:
        place = (turn, variant, number)
        self.db.execute("INSERT OR IGNORE INTO blocks(turn, variant, number) VALUES (?,?,?)", place)
        query = "SELECT id FROM blocks WHERE turn = ? AND variant = ? AND number = ?"
        return int(self.db.execute(query, place).fetchone()[0])

    def place(self, branch: str, number: int, commit: str, body: Body) -> None:
        """Note that turn `number` of a branch, which ends with the commit, is that body."""
        values = (self._branch(branch), number, body.turn, body.variant, body.lines, bytes.fromhex(commit))
        self.db.execute("INSERT INTO placed VALUES (?,?,?,?,?,?)", values)
        self.db.execute("DELETE FROM gone WHERE turn = ?", (body.turn,))

    def mark_indexed(self, branch: str, tip: str) -> None:
        """Note that a branch is indexed up to its tip."""
        self.db.execute("UPDATE branches SET tip = ? WHERE name = ?", (tip, branch))

    def drop(self, branch: str) -> None:
        """Release a deleted branch."""
        branch_id = self._branch(branch)
        self._release("branch = ?", (branch_id,))
        self.db.execute("DELETE FROM branches WHERE id = ?", (branch_id,))

    def _branch(self, name: str) -> int:
        self.db.execute("INSERT OR IGNORE INTO branches(name, tip) VALUES (?, '')", (name,))
        return int(self.db.execute("SELECT id FROM branches WHERE name = ?", (name,)).fetchone()[0])

    def _release(self, where: str, arguments: Sequence[object]) -> None:
        """Remove turns from a branch, and note those that are on none any more."""
        turns = self.db.execute(f"SELECT DISTINCT turn FROM placed WHERE {where}", arguments).fetchall()
        if turns:
            self.db.execute(f"DELETE FROM placed WHERE {where}", arguments)
            left = "INSERT OR IGNORE INTO gone SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM placed WHERE turn = ?1)"
            self.db.executemany(left, turns)


def forget_sessions(store: Path, sessions: Collection[str]) -> None:
    """Delete the index if it holds words of these sessions that no other one has: it is rebuilt. Raises StoreError."""
    if not layout.StorePaths(store).text.exists():
        return
    try:
        with closing(TextIndex(store)) as text:
            if text.holds_left(sessions):
                text.remove()
    except sqlite3.Error as error:
        raise StoreError(f"cannot use the full-text index: {error}", "Try again in a while.") from error


def _open_read_only(file: Path) -> sqlite3.Connection:
    """Open the file in a folder where nothing can be written."""
    for mode in ("mode=ro", "immutable=1"):
        with suppress(sqlite3.Error):
            db = sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True)
            if _has_version(db):
                return db
    raise StoreError(
        f"cannot write the full-text index: {file}",
        "Make the store writable, or copy it and name the copy in SESSGIT_STORE.",
    )


def _has_version(db: sqlite3.Connection) -> bool:
    """Return whether the file is of this version, and close it if not."""
    try:
        is_current = bool(db.execute("PRAGMA user_version").fetchone()[0] == _VERSION)
    except sqlite3.Error:
        db.close()
        raise
    if not is_current:
        db.close()
    return is_current


# The words of a turn


def words_of(lines: Sequence[Texts]) -> Words:
    """Return what is indexed of the lines of a turn."""
    rows = tuple(
        (line, _indexed(texts.asked), _indexed(texts.answered), _indexed(texts.did), _tool_words(texts.tool))
        for line, texts in enumerate(lines)
        if texts.asked or texts.answered or texts.did
    )
    return Words(_line_hashes(lines), rows)


def _line_hashes(lines: Sequence[Texts]) -> bytes:
    """Return after each line a hash of all texts so far, so that the last one tells of a common beginning."""
    digest, hashes = hashlib.sha256(), bytearray()
    for texts in lines:
        for text in (texts.asked, texts.answered, texts.did, texts.tool):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)
        hashes += digest.digest()[:_HASH]
    return bytes(hashes)


def _indexed(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]} {text[-half:]}"
    return text if text.isascii() else plain(space_single_char_words(text))


def tool_word(name: str) -> str:
    """Return a tool's name as one word."""
    return _NON_WORD.sub("x", name.lower())


def _tool_words(name: str) -> str:
    """Return a tool's name as one word, and its last part, as of `mcp__server__tool`."""
    return " ".join({tool_word(part): None for part in (name, name.rpartition("__")[2])})


def plain(text: str) -> str:
    """Return the text without quotes, NUL and halves of characters, which FTS5 does not take."""
    return text.replace('"', " ").replace("\0", " ").encode("utf-8", "replace").decode()


# Verification

_SELECT_PLACED = """SELECT name, tip, number, placed.turn, placed.variant, lines, at, hashes FROM branches
    JOIN placed ON branch = branches.id LEFT JOIN bodies USING (turn, variant) ORDER BY name, number"""
ReadTexts = Callable[[str, int], Sequence[Texts] | None]
"""Returns the texts of each line of a turn as of a commit, or None if they cannot be read."""


def differing_branches(
    store: Path, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], read_texts: ReadTexts
) -> list[str]:
    """Return the branches whose indexed lines differ from their turns, by name, without writing anything.

    Lines are compared by their hashes, and by whether they have words: the words follow from the hashed texts. A branch
    that is not indexed up to its tip is skipped. `commits` returns the last commits of a branch's turns, by number.
    Raises StoreError if the index cannot be read.
    """
    file = layout.StorePaths(store).text
    if not file.exists():
        return []
    try:
        try:
            # Opened read-only, SQLite would leave its other files behind.
            db = sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)
            is_current = _has_version(db)
        except sqlite3.OperationalError:
            db, is_current = _open_read_only(file), True
        if not is_current:
            return []
        with closing(db):
            return list(dict.fromkeys(_find_differing(db, tips, commits, read_texts)))
    except sqlite3.Error as error:
        raise StoreError(f"cannot read the full-text index: {error}") from error


def _find_differing(
    db: sqlite3.Connection, tips: Mapping[str, str], commits: Callable[[str], Mapping[int, str]], read_texts: ReadTexts
) -> Iterator[str]:
    db.execute("BEGIN")  # all queries read the same state, whatever another process adds
    rows = {row for (row,) in db.execute("SELECT id FROM words_docsize")}
    lines_of: dict[tuple[int, int], set[int]] = {}
    """The lines with rows, by turn and variant."""
    for block, turn, variant, number in db.execute("SELECT * FROM blocks"):
        lines = (line for line in range(LINE_MASK + 1) if block << LINE_BITS | line in rows)
        lines_of.setdefault((turn, variant), set()).update(number << LINE_BITS | line for line in lines)
    results: dict[tuple[int, int, int, bytes], bool] = {}
    branch, numbers = "", dict[int, str]()
    placed = db.execute(_SELECT_PLACED).fetchall()
    db.execute("COMMIT")
    for name, tip, number, turn, variant, count, at, hashes in placed:
        if tips.get(name) != tip:
            continue
        if name != branch:
            branch, numbers = name, dict(commits(name))
        place = (turn, variant, count, at)
        if place not in results:
            texts = read_texts(at.hex(), number)
            indexed = lines_of.get((turn, variant), set())
            results[place] = texts is None or _matches(words_of(texts), count, hashes or b"", indexed)
        if not results[place] or numbers.get(number) != at.hex():
            yield name


def _matches(words: Words, count: int, hashes: bytes, indexed: Collection[int]) -> bool:
    """Return whether the first `count` lines of a body are those with these words; another branch may have more."""
    if words.lines != count or words.hashes != hashes[: count * _HASH]:
        return False
    longest = len(hashes) // _HASH
    return {line for line in indexed if line < count or line >= longest} == {row[0] for row in words.rows}
