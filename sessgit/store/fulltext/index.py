"""The text index: which words stand in which line of which turn, in an SQLite file of its own, never the truth.

It holds words and no texts. A turn is kept under its prompt, so that branches which share it share its words, and a
turn that grew adds its new lines only. Words are never taken out again: what no branch holds any more is passed over
when someone asks, and once half of the index is like that, it is made anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.model.search_query import space_single_char_words
from sessgit.store import layout
from sessgit.store.sqlite import cache_file

LONGEST_TEXT = 1 << 18
"""Characters of one line's text by one speaker that are indexed: half of them from its beginning, half from its end."""

_VERSION = 2
"""Another one where what is indexed of a line is another: an older file is made anew."""
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
"""What makes the table of words, in which each line that has any is a row."""
_INDEXES = ("CREATE INDEX placed_turn ON placed(turn)", "CREATE INDEX placed_at ON placed(at)")
_SCHEMA = cache_file.Schema(_VERSION, tuple(_TABLES), (*_TABLES.values(), *_INDEXES))

LINE_BITS = 5
"""Each 32 lines of a turn have a block; a row's id is its block's and, in so many bits, its place there. What one word
stands in are numbers close to each other then, which take a byte or two and not five."""
LINE_MASK = (1 << LINE_BITS) - 1
_HASH = 8
_CHECKPOINT = 8_000
"""Pages of 4 KB after which what was written is moved into the file itself."""
_FTS_HASH_BYTES = 48 << 20
"""Bytes of words that are gathered before they are written."""
_BULK_MERGE = {"automerge": 0, "crisismerge": 64}
_NORMAL_MERGE = {"automerge": 4, "crisismerge": 16}
"""Of how many parts on a level FTS5 begins to make one, and of how many at the latest; by default the second."""
_NON_WORD = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class Texts:
    """What is to be found in a line: what was asked, what was answered, and what a tool was given and gave back."""

    asked: str = ""
    answered: str = ""
    did: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """What is indexed of a turn: after each of its lines a hash of all texts so far (`line_hashes`), and of each line
    that has any its number, from 0, and the four columns as SQLite takes them."""

    hashes: bytes
    rows: tuple[tuple[int, str, str, str, str], ...]

    @property
    def lines(self) -> int:
        """How many lines the turn has."""
        return len(self.hashes) // _HASH

    @property
    def size(self) -> int:
        """The characters that are indexed."""
        return sum(len(asked) + len(answered) + len(did) for _, asked, answered, did, _ in self.rows)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn by its prompt's uuid; `time` is in seconds since 1970, `home` the session that it was recorded for."""

    prompt: str
    time: int
    home: str


@dataclass(frozen=True, slots=True)
class Body:
    """The first `lines` lines of a variant of a turn: what a branch holds of it."""

    turn: int
    variant: int
    lines: int


class TextIndex:
    """The text index of the store at `path`. Not to be shared between threads."""

    def __init__(self, path: Path, wait: float = 10.0) -> None:
        self._file = layout.StorePaths(path).text
        self.db = cache_file.connect(self._file, _SCHEMA)
        self.read_only = not self.db.execute("PRAGMA database_list").fetchone()[2]
        """Whether nothing can be added to what is indexed."""
        if self.read_only:
            self.db.close()
            self.db = _open_read_only(self._file)
        self.db.isolation_level = None
        self.db.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self.db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
        if not self.read_only:
            self._gather()

    def _gather(self) -> None:
        """Lets FTS5 gather more words in memory before it writes them: of each MB, as it is by itself, the parts that
        it wrote are joined again and again. Whoever only adds a turn gathers no more than that."""
        with suppress(sqlite3.Error):  # somebody else is writing, or it is damaged, which whoever asks finds out
            if self.db.execute("SELECT v FROM words_config WHERE k = 'hashsize'").fetchone() != (_FTS_HASH_BYTES,):
                self.db.execute("INSERT INTO words(words, rank) VALUES ('hashsize', ?)", (_FTS_HASH_BYTES,))

    def set_bulk_mode(self, *, much: bool) -> None:
        """Where much is to come, what was written is seldom joined to larger parts meanwhile: that takes a sixth of
        the time. It lasts until this is asked again. Raises `sqlite3.Error` where nothing can be written."""
        wanted = _BULK_MERGE if much else _NORMAL_MERGE
        held = dict(self.db.execute("SELECT k, v FROM words_config").fetchall())
        for name, value in wanted.items():
            if held.get(name, _NORMAL_MERGE[name]) != value:
                self.db.execute("INSERT INTO words(words, rank) VALUES (?, ?)", (name, value))

    def join(self) -> None:
        """Makes one part of all that was written. Raises `sqlite3.Error` where that cannot be done."""
        self.db.execute("INSERT INTO words(words) VALUES ('optimize')")

    def close(self) -> None:
        self.db.close()

    def remove(self) -> None:
        """Closes it and deletes the file: the next one begins anew."""
        self.db.close()
        cache_file.remove_file(self._file)

    # Following the branches

    def level(self) -> bytes:
        """What was noted of the refs when all branches were indexed last."""
        row = self.db.execute("SELECT refs FROM level").fetchone()
        return row[0] if row and isinstance(row[0], bytes) else b""

    def note_level(self, refs: bytes) -> None:
        """Notes that all branches are indexed as these refs are."""
        self.db.execute("DELETE FROM level")
        self.db.execute("INSERT INTO level VALUES (?)", (refs,))

    def tips(self) -> dict[str, str]:
        """The commit up to which each branch is indexed."""
        return dict(self.db.execute("SELECT name, tip FROM branches").fetchall())

    def tip(self, branch: str) -> str:
        """The commit up to which a branch is indexed, or ``""``."""
        row = self.db.execute("SELECT tip FROM branches WHERE name = ?", (branch,)).fetchone()
        return str(row[0]) if row else ""

    def clear(self) -> None:
        """Begins anew, with nothing indexed."""
        with self.writing():
            for table, statement in _TABLES.items():
                self.db.execute(f"DROP TABLE {table}")
                self.db.execute(statement)
            for statement in _INDEXES:
                self.db.execute(statement)
        self._gather()

    def is_worn(self) -> bool:
        """Whether more turns are held for no branch than for any."""
        return bool(
            self.db.execute("SELECT (SELECT count(*) FROM gone) * 2 > (SELECT count(*) FROM turns)").fetchone()[0]
        )

    def holds_left(self, sessions: Collection[str]) -> bool:
        """Whether words are held of these sessions, which are no more, that no other branch has."""
        branches = any(layout.session_of(branch) in sessions for branch in self.tips())
        query = "SELECT 1 FROM gone JOIN turns ON id = turn WHERE home IN (SELECT value FROM json_each(?)) LIMIT 1"
        return branches or self.db.execute(query, (json.dumps(list(sessions)),)).fetchone() is not None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All of what is written inside, or nothing; other processes wait for their turn."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def common(self, branch: str, commit_of: Callable[[int], str]) -> int:
        """The last turn of a branch that is indexed as of the commit which it has now; later ones are let go."""
        ident = self._branch(branch)
        placed = self.db.execute("SELECT number, at FROM placed WHERE branch = ? ORDER BY number DESC", (ident,))
        last = next((number for number, at in placed if commit_of(number) == at.hex()), 0)
        self._leave("branch = ? AND number > ?", (ident, last))
        return last

    def body_at(self, commit: str) -> Body | None:
        """What is indexed of the turn that a commit ends with."""
        query = "SELECT turn, variant, lines FROM placed WHERE at = ? LIMIT 1"
        row = self.db.execute(query, (bytes.fromhex(commit),)).fetchone()
        return Body(*row) if row else None

    def body_of(self, prompt: str, blob: str) -> Body | None:
        """What is indexed of a turn, if it is just what the blob holds."""
        query = """SELECT turn, variant, length(hashes) / ? FROM turns, bodies
            WHERE prompt = ? AND turn = id AND blob = ?"""
        row = self.db.execute(query, (_HASH, prompt, blob)).fetchone()
        return Body(*row) if row else None

    def add(self, turn: Turn, blob: str, words: Words) -> Body:
        """Indexes the words of a turn, all of which are given, as far as they are not indexed already."""
        self.db.execute(
            "INSERT OR IGNORE INTO turns(prompt, time, home) VALUES (?,?,?)", (turn.prompt, turn.time, turn.home)
        )
        ((ident,),) = self.db.execute("SELECT id FROM turns WHERE prompt = ?", (turn.prompt,))
        hashes = words.hashes
        variant = -1
        bodies = self.db.execute("SELECT variant, hashes FROM bodies WHERE turn = ?", (ident,)).fetchall()
        for variant, known in bodies:
            both = min(len(known), len(hashes))
            if known[both - _HASH : both] == hashes[both - _HASH : both]:
                if len(hashes) > len(known):
                    change = "UPDATE bodies SET blob = ?, hashes = ? WHERE turn = ? AND variant = ?"
                    self.db.execute(change, (blob, hashes, ident, variant))
                    self._add(ident, variant, words, len(known) // _HASH)
                return Body(ident, variant, words.lines)
        variant += 1
        self.db.execute("INSERT INTO bodies VALUES (?,?,?,?)", (ident, variant, blob, hashes))
        self._add(ident, variant, words, 0)
        return Body(ident, variant, words.lines)

    def _add(self, turn: int, variant: int, words: Words, known: int) -> None:
        rows = []
        block = numbered = -1
        for line, *columns in words.rows:
            if line < known:
                continue
            if line >> LINE_BITS != numbered:
                numbered = line >> LINE_BITS
                block = self._block(turn, variant, numbered)
            rows.append((block << LINE_BITS | line & LINE_MASK, *columns))
        self.db.executemany("INSERT INTO words(rowid, asked, answered, did, tool) VALUES (?,?,?,?,?)", rows)

    def _block(self, turn: int, variant: int, number: int) -> int:
        place = (turn, variant, number)
        self.db.execute("INSERT OR IGNORE INTO blocks(turn, variant, number) VALUES (?,?,?)", place)
        query = "SELECT id FROM blocks WHERE turn = ? AND variant = ? AND number = ?"
        return int(self.db.execute(query, place).fetchone()[0])

    def place(self, branch: str, number: int, commit: str, body: Body) -> None:
        """Notes that the turn `number` of a branch, which ends with the commit, is that body."""
        values = (self._branch(branch), number, body.turn, body.variant, body.lines, bytes.fromhex(commit))
        self.db.execute("INSERT INTO placed VALUES (?,?,?,?,?,?)", values)
        self.db.execute("DELETE FROM gone WHERE turn = ?", (body.turn,))

    def mark_indexed(self, branch: str, tip: str) -> None:
        """Notes that a branch is indexed up to its tip."""
        self.db.execute("UPDATE branches SET tip = ? WHERE name = ?", (tip, branch))

    def drop(self, branch: str) -> None:
        """Lets go of a branch that is no more."""
        ident = self._branch(branch)
        self._leave("branch = ?", (ident,))
        self.db.execute("DELETE FROM branches WHERE id = ?", (ident,))

    def _branch(self, name: str) -> int:
        row = self.db.execute("SELECT id FROM branches WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else self._new_branch(name)

    def _new_branch(self, name: str) -> int:
        return self.db.execute("INSERT INTO branches(name, tip) VALUES (?, '')", (name,)).lastrowid or 0

    def _leave(self, where: str, arguments: Sequence[object]) -> None:
        turns = self.db.execute(f"SELECT DISTINCT turn FROM placed WHERE {where}", arguments).fetchall()
        if turns:
            self.db.execute(f"DELETE FROM placed WHERE {where}", arguments)
            left = "INSERT OR IGNORE INTO gone SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM placed WHERE turn = ?1)"
            self.db.executemany(left, turns)


def _open_read_only(file: Path) -> sqlite3.Connection:
    """The file as it is, in a folder where nothing can be written."""
    for how in ("mode=ro", "immutable=1"):
        try:
            db = sqlite3.connect(f"{file.as_uri()}?{how}", uri=True)
        except sqlite3.Error:
            continue
        with suppress(sqlite3.Error):
            if db.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
                return db
        db.close()
    raise StoreError(
        f"cannot write the full-text index: {file}",
        "Make the store writable, or copy it and name the copy in SESSGIT_STORE.",
    )


def looked_into(file: Path) -> sqlite3.Connection | None:
    """The file for who only reads it; None where it is of another version, so that whoever asks makes it anew."""
    try:
        # Not as one that is only read: then SQLite leaves what it makes beside it.
        db = sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError:
        return _open_read_only(file)
    if version == _VERSION:
        return db
    db.close()
    return None


def words_of(lines: Sequence[Texts]) -> Words:
    """What is indexed of the lines of a turn."""
    rows = tuple(
        (line, _indexed(texts.asked), _indexed(texts.answered), _indexed(texts.did), _tool(texts.tool))
        for line, texts in enumerate(lines)
        if texts.asked or texts.answered or texts.did
    )
    return Words(line_hashes(lines), rows)


def line_hashes(lines: Sequence[Texts]) -> bytes:
    """After each line a hash of all texts so far: so a beginning is known by the last one of it."""
    digest, out = hashlib.sha256(), bytearray()
    for texts in lines:
        for text in (texts.asked, texts.answered, texts.did, texts.tool):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)
        out += digest.digest()[:_HASH]
    return bytes(out)


def _indexed(text: str) -> str:
    """As much of a text as is indexed, in a form that SQLite takes."""
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]} {text[-half:]}"
    return text if text.isascii() else plain(space_single_char_words(text))


def tool_word(name: str) -> str:
    """A tool's name as one word."""
    return _NON_WORD.sub("x", name.lower())


def _tool(name: str) -> str:
    """A tool's name as one word, and so the last part of a long one."""
    small = name.lower()
    return " ".join({tool_word(part): None for part in (small, small.rpartition("__")[2])})


def plain(text: str) -> str:
    """The text without what SQLite does not take: quotes, NUL, halves of characters."""
    return text.replace('"', " ").replace("\0", " ").encode("utf-8", "replace").decode()
