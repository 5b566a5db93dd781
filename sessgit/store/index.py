"""The index: sessions, turns and prompts in one SQLite file, derived from the refs and never the truth.

Before it answers, it catches up with the refs, branch by branch, from the new tip back to the first commit that it
knows. A missing, damaged or older file is rebuilt; if it cannot be written, the index lives in memory.
"""

from __future__ import annotations

import json
import re
import sqlite3
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints
from zlib import crc32

from sessgit.errors import DamageError, NewerStoreError, SessgitError, StoreError
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Gist, Tokens, plausible_count
from sessgit.model.frozen import frozen
from sessgit.store import layout, private_files, refs

if TYPE_CHECKING:
    from sessgit.store.store import Store

# SQLite files that are derived from the repository
#
# Such a file may be deleted at any time, and if it cannot be written it lives in memory as long as the command runs.

_DAMAGE_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)
"""The program's statements are valid, so one that SQLite cannot parse or execute shows a damaged table. An I/O error is
what it reports if another process deletes its files at the moment in which they are opened."""


class _DamageError(sqlite3.DatabaseError):
    """Damage that SQLite does not notice: a well-formed page with nonsense in it."""


_DAMAGE_ERROR = _DamageError("a value that cannot be read")


@frozen
class CacheSchema:
    """The names of the tables, the statements that create them, and their version."""

    version: int
    tables: Sequence[str]
    statements: Sequence[str]


def open_cache(path: Path, schema: CacheSchema) -> sqlite3.Connection:
    """Open the file at `path`, with empty tables if it has none of this version."""
    for is_retry in (False, True):
        try:
            return _open_cache_file(path, schema)
        except sqlite3.Error as error:
            if is_retry or not is_damage(error):
                break
            remove_cache(path)
    return _open_in_memory(schema)


def _open_in_memory(schema: CacheSchema) -> sqlite3.Connection:
    """Return a connection with empty tables that are gone with it."""
    return _prepare_tables(sqlite3.connect(":memory:", check_same_thread=False), schema)


def remove_cache(path: Path) -> None:
    """Delete the file and SQLite's other files for it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def sqlite_text(value: str) -> str:
    """Return the text with halves of characters, as in a title that the client cut, replaced: SQLite refuses them."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error means that the file is damaged, not locked or gone."""
    if isinstance(error, _DamageError) or "Could not decode to UTF-8" in str(error):
        return True
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES


class _Connection(sqlite3.Connection):
    """Reports damage as such even if SQLite's message holds a damaged name that cannot be decoded."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except UnicodeDecodeError as error:
            raise _DAMAGE_ERROR from error


def _open_cache_file(path: Path, schema: CacheSchema) -> sqlite3.Connection:
    if path.is_symlink():
        path.unlink(missing_ok=True)
    with suppress(OSError):  # SQLite gives its other files the mode of this one
        private_files.open_append(path).close()
    # Programs with several threads use it under a lock of theirs.
    db = sqlite3.connect(path, timeout=10, check_same_thread=False, factory=_Connection)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        return _prepare_tables(db, schema)
    except sqlite3.Error:
        db.close()
        raise


def _prepare_tables(db: sqlite3.Connection, schema: CacheSchema) -> sqlite3.Connection:
    if _schema_version(db) == schema.version:
        return db
    db.execute("BEGIN IMMEDIATE")
    with db:
        if _schema_version(db) != schema.version:  # another process may have done it meanwhile
            for table in schema.tables:
                db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in schema.statements:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {schema.version}")
    return db


def _schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


# The index

_NAMES_ORIGIN = "instr(message, char(10) || 'Origin: ')"
_RECORD = "commit_id, commits, prompt, time, message, compacted, bytes"
_HAS_ORIGIN = f"commit_id IN (SELECT commit_id FROM recorded WHERE {_NAMES_ORIGIN})"
"""Whether a turn comes from another conversation: a partial index answers."""


class Outline(NamedTuple):
    """The properties by which branches are listed, sought and compared, without the rest of their states.

    Times are RFC 3339 or empty, `ended` only if the session is not active; `labels` is JSON. `authored_name`, `labels`
    and `description` come from the session's user, `title` from the client. `parent` is the session that this one was
    forked from, `child_of` the one that began it as its child, or empty; `remote` is the project's. Halves of
    characters are replaced.
    """

    name: str
    tip: str
    archived: bool
    session: str
    agent: str
    agent_id: str
    project: str
    title: str
    authored_name: str
    description: str
    first_prompt: str
    labels: str
    created: str
    updated: str
    ended: str
    turns: int
    headless: bool
    status: str
    stage: str
    parent: str
    child_of: str
    remote: str

    @property
    def above(self) -> str:
        """The session that it was forked from, or whose child it is, or empty."""
        return self.parent or self.child_of


_SQL_TYPES = {str: "TEXT", int: "INTEGER", bool: "INTEGER"}
_OUTLINE_COLUMNS = ", ".join(f"{name} {_SQL_TYPES[kind]} NOT NULL" for name, kind in get_type_hints(Outline).items())
SCHEMA = CacheSchema(
    20,
    ("branches", "noted", "holdings", "recorded", "merges", "gists", "touched", "cells", "edited", "edits"),
    (
        f"CREATE TABLE branches({_OUTLINE_COLUMNS}, state BLOB NOT NULL, PRIMARY KEY(name)) WITHOUT ROWID",
        """CREATE TABLE noted(
            name TEXT PRIMARY KEY, source TEXT NOT NULL, facts TEXT NOT NULL, pad TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE holdings(
            branch TEXT NOT NULL, turn INTEGER NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(branch, turn)
        ) WITHOUT ROWID""",
        "CREATE INDEX holdings_record ON holdings(record)",
        """CREATE TABLE recorded(
            id INTEGER PRIMARY KEY, commit_id TEXT NOT NULL UNIQUE, commits TEXT NOT NULL, prompt TEXT NOT NULL,
            time INTEGER NOT NULL, message TEXT NOT NULL, compacted INTEGER NOT NULL, bytes INTEGER NOT NULL
        )""",
        "CREATE INDEX recorded_prompt ON recorded(prompt)",
        f"CREATE INDEX recorded_origin ON recorded(commit_id) WHERE {_NAMES_ORIGIN}",
        f"CREATE VIEW turns AS SELECT branch, turn, {_RECORD} FROM holdings JOIN recorded ON record = id",
        "CREATE TABLE merges(branch TEXT PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE gists(commit_id TEXT PRIMARY KEY, gist TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE touched(
            path TEXT NOT NULL, commit_id TEXT NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY(path, commit_id)
        ) WITHOUT ROWID""",
        """CREATE TABLE cells(
            commit_id TEXT PRIMARY KEY, folder TEXT NOT NULL, cells TEXT NOT NULL, proof INTEGER NOT NULL
        )""",
        "CREATE TABLE edited(commit_id TEXT PRIMARY KEY) WITHOUT ROWID",
        """CREATE TABLE edits(
            commit_id TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL,
            call TEXT NOT NULL, cell INTEGER NOT NULL, subagent TEXT NOT NULL, time REAL NOT NULL,
            git_branch TEXT NOT NULL, texts BLOB NOT NULL, PRIMARY KEY(commit_id, number)
        )""",
        "CREATE INDEX edits_name ON edits(name)",
    ),
)
"""`branches` has each branch with its state as of its tip, `noted` what other systems say of sessions, and the texts of
scratchpads, `holdings` the turns that each branch holds, `merges` the sessions with a merge that added no turn, also an
undone one. By a turn's last commit, `recorded` has what its commits say, `gists` what it contains, `touched` the files
that it read or changed, `cells` its cells, with a checksum, and `edits` what its calls wrote once it is in `edited`."""

_ORIGIN = re.compile(r"([^@]+)@(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_COLUMNS = "branch, turn, commits, prompt, time, message, compacted"
_BRANCHES = "SELECT name, tip, state, archived FROM branches"
_OUTLINES = f"SELECT {', '.join(Outline._fields)} FROM branches"
_REMOTES = "SELECT DISTINCT project, remote FROM branches WHERE remote > '' ORDER BY project"
_LAST = 1 << 31
_TOKENS_TRAILER = re.compile(r"\nTokens-([A-Za-z-]+): ([0-9]{1,15})(?=\n)")
Tips = Mapping[str, tuple[str, bool]]
"""The tip of each branch, and whether it is archived."""


class CachedTurn(NamedTuple):
    """What is stored of a turn: the object id of its folder, and its cells in a form that the caller knows.

    A branch may hold a turn with another folder than its last commit has, for example in a fork by the agent whose file
    has other bytes. The caller compares the folders, and reads the lines if they differ.
    """

    folder: str
    cells: str


class CachedEdit(NamedTuple):
    """What a call of a turn wrote to a file: the turn's last commit, the number of the edit in the turn, the last part
    of the path and the whole, the agent's id of the call, its cell or 0, the subagent that made it or ``""``, the time
    in seconds since 1970, the project's git branch, and the texts in a form that the caller knows."""

    commit: str
    number: int
    name: str
    path: str
    call: str
    cell: int
    subagent: str
    time: float
    git_branch: str
    texts: bytes


class Row(NamedTuple):
    """A turn as its commits describe it; `time` is in seconds since 1970, `commits` are oldest first, `text` is the
    message of the last one. `compacted` says that a compaction came before this turn's prompt."""

    branch: str
    turn: int
    commits: tuple[str, ...]
    prompt: str
    time: int
    text: str
    compacted: bool = False

    def trailer(self, key: str) -> str:
        """Return the value of the last trailer of that key, or ``""``."""
        return messages.trailer(self.text, key)

    @property
    def commit(self) -> str:
        """The turn's last commit."""
        return self.commits[-1]

    @property
    def tokens(self) -> Tokens:
        """The counts in the trailers of the last commit; missing ones are 0."""
        counts = dict(_TOKENS_TRAILER.findall(self.text))
        return Tokens(*[int(counts.get(kind, 0)) for kind in ("In", "Out", "Cache-Read", "Cache-Write")])

    @property
    def title(self) -> str:
        """The first line of the prompt."""
        return self.text.partition("\n")[0].partition(": ")[2]


class ForkPlace(NamedTuple):
    """Where a session leaves another one now: the branch, the last shared turn, and the cell as `7.3` or ``""``.

    After a rewind of either this is earlier than the fork point. If the original was rewound, `branch` is the branch
    that has the shared turns since.
    """

    branch: str
    turn: int
    cell: str

    @property
    def at(self) -> str:
        """The part of the address after ``@``."""
        return self.cell or str(self.turn)


@frozen
class Branch:
    """A branch with its state as of its tip."""

    name: str
    tip: str
    state: Session
    archived: bool = False

    @property
    def session(self) -> str:
        """The session that it belongs to."""
        return layout.session_of(self.name)

    @property
    def short(self) -> str:
        """Its name with a short session id."""
        return layout.short_name(self.name)


class Index:
    """The index of the store at `path`; `open_store` is called only if refs have moved since the last use."""

    def __init__(self, path: Path, open_store: Callable[[], Store]) -> None:
        self.path = path
        self.damaged: dict[str, SessgitError] = {}
        """The branches that could not be read by the last `sync`, with the reasons."""
        self.open_store = open_store
        self.tips, self.tags = partial(refs.branches, path), partial(refs.tags, path)
        """The branches that the index shows, and each tag with the object that it leads to."""
        self.local_path: Callable[[str], str] = str
        """Maps a project's folder to the one on this machine, which all answers name."""
        self._db = self._open_file()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # Catching up with the refs

    def sync(self, session: str | None = None) -> None:
        """Catch up with the refs of all branches, or of one session's."""
        tips = self.tips(session)
        where, arguments = _session_condition(session) if session is not None else ("", ())
        query = f"SELECT name, tip, archived FROM branches {where}"
        try:
            known = {name: (tip, bool(archived)) for name, tip, archived in self._db.execute(query, arguments)}
        except sqlite3.Error as error:
            self._renew(error)
            known = {}
        if known.keys() - tips.keys():  # a branch that is being archived or unarchived may look deleted
            tips |= self.tips(session)
        for branch in [name for name in self.damaged if session in (None, layout.session_of(name))]:
            del self.damaged[branch]
        if tips == known:
            return
        archived = [(at[1], name) for name, at in tips.items() if name in known and known[name] == (at[0], not at[1])]
        changed = {name for name in tips if known.get(name) != tips[name]}.difference(name for _, name in archived)
        try:
            self._db.execute("BEGIN IMMEDIATE")  # a transaction that begins with reading may not write after another
            with self._db:
                for branch in known.keys() - tips.keys():
                    self._drop(branch)
                self._db.executemany("UPDATE branches SET archived = ? WHERE name = ?", archived)
                store = self.open_store() if changed else None
                for branch in sorted(changed, key=lambda name: (layout.is_side_branch(name), name)):
                    assert store is not None
                    try:
                        self._update(store, branch, *tips[branch])
                    except (DamageError, NewerStoreError, StoreError) as damage:
                        self._drop(branch)
                        self.damaged[branch] = damage
        except sqlite3.Error as error:
            self._renew(error)
            self.sync(session)

    def _drop(self, branch: str) -> None:
        self._db.execute("DELETE FROM branches WHERE name = ?", (branch,))
        self._db.execute("DELETE FROM noted WHERE name = ?", (branch,))
        self._db.execute("DELETE FROM holdings WHERE branch = ?", (branch,))

    def _update(self, store: Store, branch: str, tip: str, archived: bool) -> None:
        state = store.state(tip)
        rows, (holder, last) = self._new_rows(store, branch, tip)
        values = _sqlite_values((*_outline(branch, tip, state, archived=archived), sessions.dumps(state)))
        self._db.execute(f"INSERT OR REPLACE INTO branches VALUES ({','.join('?' * len(values))})", values)
        self._db.execute("DELETE FROM noted WHERE name = ?", (branch,))
        if any(noted := _noted(store, branch, tip)):
            self._db.execute("INSERT INTO noted VALUES (?,?,?,?)", _sqlite_values((branch, *noted)))
        kept = last if holder == branch else 0
        self._db.execute("DELETE FROM holdings WHERE branch = ? AND turn > ?", (branch, kept))
        if holder not in ("", branch):
            copy = "INSERT INTO holdings SELECT ?, turn, record FROM holdings WHERE branch = ? AND turn <= ?"
            self._db.execute(copy, (branch, holder, last))
        self._db.executemany(
            "INSERT INTO recorded VALUES (NULL,?,?,?,?,?,?,?) ON CONFLICT(commit_id) DO NOTHING", rows.values()
        )
        held = [(branch, turn, commit) for turn, (commit, *_) in rows.items()]
        hold = "INSERT OR REPLACE INTO holdings SELECT ?, ?, id FROM recorded WHERE commit_id = ?"
        self._db.executemany(hold, held)

    def _new_rows(self, store: Store, branch: str, tip: str) -> tuple[dict[int, tuple[Any, ...]], tuple[str, int]]:
        """Return what is recorded of each turn from the tip back to the first known commit, and the branch and turn of
        that one."""
        rows, size, compacted, last = dict[int, tuple[list[str], str, int, str]](), Counter[int](), set[int](), 0
        holder = ("", 0)
        last_turn = "SELECT ifnull(max(turn), 0) FROM holdings WHERE branch = name"
        query = f"SELECT tip, ({last_turn}) FROM branches WHERE name = ?"
        known = self._db.execute(query, (branch,)).fetchone() or ("", 0)
        for commit in store.repo.first_parents(tip):
            if commit.id == known[0] and not rows:  # only edits, of which a program may make many
                return {}, (branch, known[1])
            message = messages.parse_message(commit.message)
            turn, prompt = message.number("Turn"), message.get("Prompt")
            if not turn or not prompt:
                compacted |= {last} if message.get("Event") == "compact" else set()
                if message.get("Event") == "merge" and "@" not in message.get("Origin"):
                    self._db.execute("INSERT OR IGNORE INTO merges VALUES (?)", (message.get("Session"),))
                continue
            if turn not in rows and (holder := self._holder(branch, commit.id))[0]:
                break
            last = turn
            size[turn] += sum(extent.length for extent in message.extents)
            rows.setdefault(turn, ([], prompt, commit.time, commit.message))[0].insert(0, commit.id)
        return {
            turn: (commits[-1], " ".join(commits), *said, turn in compacted, size[turn])
            for turn, (commits, *said) in sorted(rows.items())
        }, holder

    def _holder(self, branch: str, commit: str) -> tuple[str, int]:
        """Return the branch, preferably this one, with a turn that ends with the commit, and the turn's number."""
        query = "SELECT branch, turn FROM turns WHERE commit_id = ? ORDER BY branch != ?, branch, turn LIMIT 1"
        return self._db.execute(query, (commit, branch)).fetchone() or ("", 0)

    def add_rows(self, other: Path) -> None:
        """Add all rows of the index of another store, whose branches have just come into this one. Without them `sync`
        would read the branches."""
        with suppress(sqlite3.Error):
            self._db.execute("ATTACH ? AS other", (str(layout.StorePaths(other).index),))
            try:
                with self._db:
                    self._db.execute("BEGIN IMMEDIATE")
                    for table in (name for name in SCHEMA.tables if name not in ("holdings", "recorded")):
                        self._db.execute(f"INSERT OR REPLACE INTO main.{table} SELECT * FROM other.{table}")
                    self._db.execute(f"INSERT OR IGNORE INTO recorded SELECT NULL, {_RECORD} FROM other.recorded")
                    rows = "SELECT branch, turn, id FROM other.turns JOIN main.recorded USING (commit_id)"
                    self._db.execute(f"INSERT OR REPLACE INTO holdings {rows}")
            finally:
                self._db.execute("DETACH other")

    # Branches

    def branches(self, session: str | None = None) -> list[Branch]:
        """Return all branches, or those of one session, each session's head before its side branches."""
        where, arguments = _session_condition(session) if session else ("", ())
        return self._branches(f"{where} ORDER BY name", arguments)

    def branch(self, name: str) -> Branch | None:
        """Return the branch of this name, also a side branch, or None."""
        return next(iter(self.branches_named([name])), None)

    def branches_named(self, names: Sequence[str]) -> list[Branch]:
        """Return the branches with these names that exist, by name."""
        return self._branches(
            "WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name", (json.dumps(list(names)),)
        )

    def forks_of(self, session: str) -> list[Branch]:
        """Return the sessions that were forked from this one or one of its side branches, by name."""
        return self._branches("WHERE parent = ? AND name = session ORDER BY name", (session,))

    def children_of(self, session: str) -> list[Branch]:
        """Return the sessions that are children of this one, by name."""
        return self._branches("WHERE child_of = ? AND name = session ORDER BY name", (session,))

    def outlines(self) -> list[Outline]:
        """Return the outline of every session, the most recently updated first."""
        return self._outlines("WHERE name = session ORDER BY updated DESC, name")

    def branch_outlines(self) -> list[Outline]:
        """Return the outline of every branch, by name."""
        return self._outlines("ORDER BY name")

    def _outlines(self, condition: str) -> list[Outline]:
        every = map(Outline._make, self.query(f"{_OUTLINES} {condition}"))
        return [
            each if (here := self.local_path(each.project)) == each.project else each._replace(project=here)
            for each in every
        ]

    def remotes(self) -> list[tuple[str, str]]:
        """Return the folder of each project that has a remote, as recorded, with that."""
        return [(folder, remote) for folder, remote in self.query(_REMOTES)]

    def noted(self) -> dict[str, tuple[str, str]]:
        """Return for each session that has one the id in the system from which it was imported, and the texts of its
        scratchpad, one per line."""
        return {name: (source, pad) for name, source, pad in self.query("SELECT name, source, pad FROM noted")}

    def imported_facts(self) -> dict[str, dict[str, Any]]:
        """Return for each imported session what its system says that a session has no place for."""
        return {name: json.loads(facts) for name, facts in self.query("SELECT name, facts FROM noted WHERE facts > ''")}

    def sessions_from(self, source: str) -> list[str]:
        """Return the sessions with that id in the system from which they were imported."""
        return [row[0] for row in self.query("SELECT name FROM noted WHERE source = ? ORDER BY name", (source,))]

    def sessions_beginning(self, start: str) -> list[str]:
        """Return the sessions whose id begins with `start`."""
        query = "SELECT name FROM branches WHERE name BETWEEN ? AND ? AND name = session"
        return [row[0] for row in self.query(query, (start, start + "~"))]

    # Turns

    def turns(self, branch: str, first: int = 1, last: int | None = None) -> list[Row]:
        """Return the turns of a branch from the first to the last."""
        arguments = (branch, first, _LAST if last is None else last)
        return self._rows("WHERE branch = ? AND turn BETWEEN ? AND ? ORDER BY turn", arguments)

    def turn(self, branch: str, number: int) -> Row | None:
        """Return the turn of that number, or None."""
        return next(iter(self.turns(branch, number, number)), None)

    def commits_of_blocks(self, branch: str, size: int) -> dict[int, str]:
        """Return the last commit of each turn that ends a block of `size`, and of the last, by the turn's number."""
        ends = "turn % ? = 0 OR turn = (SELECT max(turn) FROM holdings WHERE branch = ?)"
        query = f"SELECT turn, commit_id FROM turns WHERE branch = ? AND ({ends}) ORDER BY turn"
        return dict(self.query(query, (branch, size, branch)))

    def with_prompt(self, prompt: str) -> list[Row]:
        """Return the turns with this prompt uuid in all sessions."""
        return self._rows("WHERE prompt = ? ORDER BY branch", (prompt,))

    def turn_of_commit(self, commit: str) -> tuple[str, int] | None:
        """Return the branch and the number of the turn that a commit belongs to."""
        return self._holders([commit], "instr(commits, value)").get(commit)

    def turns_of_commits(self, commits: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return the same for many last commits of turns at once."""
        return self._holders(commits, "commit_id = value")

    def _holders(self, commits: Sequence[str], where: str) -> dict[str, tuple[str, int]]:
        """A turn that branches share belongs to its own session, and to a head rather than a side branch."""
        own = "instr(message, char(10) || 'Session: ' || substr(branch, 1, instr(branch || '.', '.') - 1) || char(10))"
        order = f"{own} > 0, instr(branch, '.') DESC, branch DESC"  # the best comes last
        query = f"SELECT value, branch, turn FROM json_each(?), turns WHERE {where} ORDER BY {order}"
        return {commit: (branch, turn) for commit, branch, turn in self.query(query, (json.dumps(list(commits)),))}

    def left_behind(self, branch: str, head: str) -> tuple[int, int]:
        """Return the last turn that a branch shares with the head, and the number of turns after it; (0, 0) if the head
        has all of them."""
        first = (
            "SELECT min(turn) AS first FROM turns AS own WHERE branch = ?1 AND NOT EXISTS (SELECT 1 FROM turns"
            " WHERE branch = ?2 AND turn = own.turn AND prompt = own.prompt)"
        )
        query = f"SELECT first, (SELECT count(*) FROM turns WHERE branch = ?1 AND turn >= first) FROM ({first})"
        ((turn, count),) = self.query(query, (branch, head))
        return (int(turn) - 1, int(count)) if count else (0, 0)

    def title(self, row: Row) -> str:
        """Return the first line of a turn's prompt, also of a turn cut by a fork, whose commit describes the fork."""
        if row.trailer("Event") != "fork":
            return row.title
        point = row.trailer("Fork-Point").partition("@")[0]
        originals = [other for other in self.with_prompt(row.prompt) if other.trailer("Event") != "fork"]
        return min(originals, key=lambda other: other.branch != point, default=row).title

    def every_turn(self) -> list[tuple[Row, Gist | None]]:
        """Return each turn with its gist, without files; a shared one once, preferably of a head, else not rewound."""
        gist = "json_remove(gist, '$.files_read', '$.files_changed')"
        turns = "turns LEFT JOIN gists USING (commit_id) GROUP BY commit_id"
        place = "min((instr(branch, '.') > 0) + (instr(branch, '.r-') > 0))"  # the other columns are of that row
        rows = self.query(f"SELECT {gist}, {place}, {_COLUMNS} FROM {turns}")
        values = json.loads(f"[{','.join(row[0] or 'null' for row in rows)}]")
        gists = (Gist.from_json(value) if value else None for value in values)
        return [(_row_from_fields(row[2:]), gist) for row, gist in zip(rows, gists, strict=True)]

    def sessions_holding(self, commits: Collection[str]) -> set[str]:
        """Return the sessions with a turn that ends with one of the commits, on any of their branches."""
        query = "SELECT branch FROM json_each(?), turns WHERE commit_id = value"
        return {layout.session_of(row[0]) for row in self.query(query, (json.dumps(list(commits)),))}

    def raw_size(self) -> int:
        """Return how many bytes of the agents' files are recorded as turns; shared turns count once."""
        ((size,),) = self.query("SELECT total(bytes) FROM recorded WHERE id IN (SELECT record FROM holdings)")
        return int(size)

    def count_sessions(self) -> int:
        """Return the number of sessions."""
        ((number,),) = self.query("SELECT count(DISTINCT session) FROM branches")
        return int(number)

    def prompt_counts(self) -> tuple[int, list[Row]]:
        """Return the number of prompt uuids, and the turns with one that several commits have."""
        ((number,),) = self.query("SELECT count(DISTINCT prompt) FROM turns")
        several = "SELECT prompt FROM turns GROUP BY prompt HAVING count(DISTINCT commit_id) > 1"
        return int(number), self._rows(f"WHERE prompt IN ({several})")

    # Families of sessions: fork points, side branches, merged turns

    def fork_places(self, sessions: Collection[str]) -> dict[str, ForkPlace]:
        """Return the fork places of those of these branches whose sessions are forks."""
        return {name: self._current_fork_place(name, left) for name, left in self.origins(sessions).items()}

    def origins(self, branches: Collection[str] | None = None) -> dict[str, ForkPlace]:
        """Return where each of these branches, or of all, left another session, as their states say."""
        origin = "json_extract(CAST(state AS TEXT), '$.origin.session', '$.origin.turn', '$.origin.cell')"
        query = f"SELECT name, {origin} FROM branches WHERE parent > ''"
        if branches is not None:
            query += " AND name IN (SELECT value FROM json_each(?))"
        places: dict[str, ForkPlace] = {}
        for name, text in self.query(query, () if branches is None else (json.dumps(list(branches)),)):
            branch, turn, cell = json.loads(text)
            places[name] = ForkPlace(branch, plausible_count(turn), cell if isinstance(cell, str) else "")
        return places

    def fork_place(self, branch: Branch) -> ForkPlace | None:
        """Return the fork place of one branch, or None if its session is no fork."""
        origin = branch.state.origin
        if origin is None:
            return None
        return self._current_fork_place(branch.name, ForkPlace(origin.session, origin.turn, origin.cell))

    def _current_fork_place(self, name: str, left: ForkPlace) -> ForkPlace:
        """Return where a branch leaves its original now."""
        own = "instr(message, char(10) || 'Session: ' || ?2 || char(10))"
        held = "EXISTS (SELECT 1 FROM turns WHERE branch = ?3 AND turn = its.turn AND prompt = its.prompt)"
        query = (
            f"SELECT turn, prompt, {held} FROM turns AS its WHERE branch = ?1 AND turn <= ?4 AND NOT {own}"
            " ORDER BY turn DESC LIMIT 1"
        )
        rows = self.query(query, (name, layout.session_of(name), left.branch, left.turn))
        turn, prompt, is_shared = rows[0] if rows else (0, "", True)
        cut = self.turn(name, turn + 1) if left.cell and turn == left.turn else None
        if cut is not None and cut.trailer("Event") == "fork":
            branch = self._branch_with_turn(left.branch, turn + 1, cut.prompt)
            if branch:
                return ForkPlace(branch, turn, left.cell)
        branch = left.branch if is_shared else self._branch_with_turn(left.branch, turn, prompt)
        if branch:
            return ForkPlace(branch, turn, "")
        session = layout.session_of(left.branch)  # the branch with these turns is lost
        return ForkPlace(session, self.left_behind(name, session)[0], "")

    def _branch_with_turn(self, branch: str, number: int, prompt: str) -> str:
        """Return the branch of a session that has this turn, preferably this one, or ``""``; if the session is not in
        the store, this one."""

        def holds(name: str) -> bool:
            row = self.turn(name, number)
            return row is not None and row.prompt == prompt

        session = layout.session_of(branch)
        if holds(branch) or self.branch(session) is None:
            return branch
        return next(filter(holds, (session, *self.side_branches(session))), "")

    def has_forks(self, session: str) -> bool:
        """Return whether the session has forks."""
        return bool(self.query("SELECT 1 FROM branches WHERE parent = ? LIMIT 1", (session,)))

    def side_branches(self, session: str) -> list[str]:
        """Return the side branches of a session, by name."""
        query = "SELECT name FROM branches WHERE name BETWEEN ? AND ? AND session = ? ORDER BY name"
        names = self.query(query, (session, f"{session}~", session))
        return [name for (name,) in names if layout.is_side_branch(name)]

    def sessions_of_other_machines(self) -> set[str]:
        """Return the sessions that another machine continued too."""
        query = "SELECT DISTINCT session FROM branches WHERE instr(name, '.m-')"
        return {name for (name,) in self.query(query)}

    def merged_turns(self, branch: str) -> dict[str, list[range]]:
        """Return the numbers of the turns that were merged into this branch, whole or in a summary, by the branch that
        they come from."""
        query = f"SELECT branch, message FROM turns WHERE branch = ? AND {_HAS_ORIGIN}"
        return {source: turns for source, _, turns in self._merge_origins(query, (branch,))}

    def merged_elsewhere(self) -> dict[str, dict[str, list[range]]]:
        """Return the numbers of all turns that were merged into other branches, by their own branch and the other."""
        merged: dict[str, dict[str, list[range]]] = {}
        for source, into, turns in self._merge_origins(f"SELECT branch, message FROM turns WHERE {_HAS_ORIGIN}", ()):
            merged.setdefault(source, {})[into] = turns
        return merged

    def _merge_origins(self, query: str, arguments: Sequence[str]) -> Iterator[tuple[str, str, list[range]]]:
        """Yield the source branch, the target branch, and the numbers of the turns in the source."""
        ranges: dict[tuple[str, str], list[range]] = {}
        for into, text in self.query(query, arguments):
            origin = _ORIGIN.fullmatch(messages.trailer(text, "Origin"))
            if origin is not None:
                first = int(origin[2])
                ranges.setdefault((origin[1], into), []).append(range(first, int(origin[3] or first) + 1))
        return ((source, into, turns) for (source, into), turns in ranges.items())

    def sessions_with_merges(self, sessions: Collection[str]) -> list[str]:
        """Return those of these sessions into which others, or single turns of others, may have been merged."""
        wanted = "branch IN (SELECT value FROM json_each(?1))"
        query = (
            f"SELECT branch FROM turns WHERE {wanted} AND {_HAS_ORIGIN} UNION SELECT branch FROM merges WHERE {wanted}"
        )
        return [name for (name,) in self.query(f"{query} ORDER BY branch", (json.dumps(list(sessions)),))]

    def has_silent_merges(self, branch: str) -> bool:
        """Return whether a merge into the branch may have added no turn."""
        return bool(self.query("SELECT 1 FROM merges WHERE branch = ?", (branch,)))

    def managing_sessions(self) -> set[str]:
        """Return the sessions that manage others: those with the role manager, and those with children."""
        role = "json_extract(CAST(state AS TEXT), '$.metadata.role')"
        query = f"SELECT name FROM branches WHERE name = session AND {role} = 'manager'"
        return {name for (name,) in self.query(f"{query} UNION SELECT child_of FROM branches WHERE child_of > ''")}

    def session_transcripts(self, sessions: Collection[str]) -> dict[str, str]:
        """Return the path of the transcript of each of these sessions, as its state has it, or ``""``."""
        # With two paths SQLite answers in JSON, which can hold half a character, as text cannot.
        path = "json_extract(CAST(state AS TEXT), '$.metadata.transcript_path', '$.metadata.agent_id')"
        query = f"SELECT name, {path} FROM branches WHERE name IN (SELECT value FROM json_each(?))"
        paths = ((name, json.loads(pair)[0]) for name, pair in self.query(query, (json.dumps(list(sessions)),)))
        return {name: path if isinstance(path, str) else "" for name, path in paths}

    # Caches of what turns hold

    def gists(self, commits: Sequence[str]) -> dict[str, Gist]:
        """Return the stored gists of the turns that end with these commits."""
        query = "SELECT commit_id, gist FROM gists WHERE commit_id IN (SELECT value FROM json_each(?))"
        rows = self.query(query, (json.dumps(list(commits)),))
        values = json.loads(f"[{','.join(text for _, text in rows)}]")  # half the time of one by one
        return {commit: Gist.from_json(value) for (commit, _), value in zip(rows, values, strict=True)}

    def remember(self, gists: Mapping[str, Gist]) -> None:
        """Store the gists of turns by their last commits, so that their lines need not be read again."""
        texts = [(commit, json.dumps(gist.as_json())) for commit, gist in gists.items()]
        touched = [
            (sqlite_text(path), commit, path in gist.files_changed)
            for commit, gist in gists.items()
            for path in gist.files
        ]
        with suppress(sqlite3.Error), self._db:  # a gist that is not stored is made again
            self._db.executemany("INSERT OR REPLACE INTO gists VALUES (?,?)", texts)
            self._db.executemany("INSERT OR REPLACE INTO touched VALUES (?,?,?)", touched)

    def store_cells(self, turns: Mapping[str, CachedTurn]) -> None:
        """Store the cells of turns by their last commits, so that they need not be read from their lines again."""
        rows = [(commit, *turn, crc32("\0".join(turn).encode())) for commit, turn in turns.items()]
        with suppress(sqlite3.Error), self._db:
            self._db.executemany("INSERT OR REPLACE INTO cells VALUES (?,?,?,?)", rows)

    def cached_turns(self, branch: str, first: int, last: int | None) -> list[tuple[int, CachedTurn | None]]:
        """Return the turns of a branch from the first to the last, by number; None if nothing is stored of one, or its
        row is damaged."""
        query = (
            "SELECT turn, folder, cells, proof FROM turns LEFT JOIN cells USING (commit_id)"
            " WHERE branch = ? AND turn BETWEEN ? AND ? ORDER BY turn"
        )
        rows = self.query(query, (branch, first, _LAST if last is None else last))
        # There may be thousands: a function for each takes twice as long.
        return [
            (turn, CachedTurn(folder, cells) if proof == crc32(f"{folder}\0{cells}".encode()) else None)
            for turn, folder, cells, proof in rows
        ]

    def without_gist(self) -> list[Row]:
        """Return the turns without a stored gist; a shared one once."""
        return self._missing("gists")

    def without_edits(self) -> list[Row]:
        """Return the turns whose edits are not stored; a shared one once."""
        return self._missing("edited")

    def _missing(self, table: str) -> list[Row]:
        missing = f"commit_id NOT IN (SELECT commit_id FROM {table}) GROUP BY commit_id"
        return self._rows(f"WHERE {missing} ORDER BY branch, turn", ())

    def store_edits(self, commits: Collection[str], edits: Sequence[CachedEdit]) -> None:
        """Store all edits of turns by their last commits."""
        values = [_sqlite_values(edit) for edit in edits]
        with suppress(sqlite3.Error), self._db:  # a turn that is not stored is read again
            self._db.executemany(f"INSERT OR REPLACE INTO edits VALUES ({','.join('?' * 10)})", values)
            self._db.executemany("INSERT OR REPLACE INTO edited VALUES (?)", [(commit,) for commit in commits])

    def edits_of(self, names: Collection[str]) -> list[CachedEdit]:
        """Return the stored edits of files with these names, without their folders, that a turn still has."""
        held = "commit_id IN (SELECT commit_id FROM turns)"
        query = f"SELECT * FROM edits WHERE name IN (SELECT value FROM json_each(?)) AND {held} ORDER BY time, call"
        return [CachedEdit._make(row) for row in self.query(query, (json.dumps(list(names)),))]

    def commits_touching(self, path: str) -> dict[str, bool]:
        """Return the last commits of the turns that read or changed a file, or one in a folder, and whether they
        changed it. `path` may be a pattern of SQLite's GLOB. Turns in `without_gist` are not included."""
        folder = path.rstrip("/") + "/"
        query = (
            "SELECT commit_id, max(changed) FROM touched WHERE path = ? OR path BETWEEN ? AND ? OR path GLOB ?"
            " GROUP BY commit_id"
        )
        return {
            commit: bool(changed) for commit, changed in self.query(query, (path, folder, folder + "\U0010ffff", path))
        }

    # The file

    def query(self, query: str, arguments: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query; a damaged file is rebuilt first."""
        values = _sqlite_values(arguments)
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            self._renew(error)
        self.sync()
        return self._db.execute(query, values).fetchall()

    def reset(self) -> None:
        """Delete everything in the index."""
        self._renew(_DAMAGE_ERROR)

    def forget_unreachable(self) -> None:
        """Delete what is stored of turns that no branch has; the index has caught up with the refs.

        The file is rewritten, since SQLite leaves deleted bytes in place. Raises StoreError.
        """
        try:
            with self._db:
                self._db.execute("DELETE FROM recorded WHERE id NOT IN (SELECT record FROM holdings)")
                for table in ("gists", "touched", "cells", "edited", "edits"):
                    unreachable = "commit_id NOT IN (SELECT commit_id FROM recorded)"
                    self._db.execute(f"DELETE FROM {table} WHERE {unreachable}")
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise StoreError(f"the index cannot be written: {error}", "Try again in a while.") from error

    def differing_branches(self) -> list[str]:
        """Return the branches whose rows are not what their commits say, by name, except those that move meanwhile."""
        before = refs.branches(self.path)
        self.sync()
        rebuilt = _MemoryIndex(self)
        rebuilt.sync()
        try:
            differing = set[str]()
            for table, key in (("branches", "name"), ("turns", "branch")):
                rows, right = _rows_by_name(self, table, key), _rows_by_name(rebuilt, table, key)
                differing |= {name for name in rows.keys() | right.keys() if rows.get(name) != right.get(name)}
            # A row too many is harmless, and stays after a rewind or an undo of the merge.
            missing = _rows_by_name(rebuilt, "merges", "branch").keys() - _rows_by_name(self, "merges", "branch").keys()
            after = refs.branches(self.path)
            return sorted(name for name in differing | missing if before.get(name) == after.get(name))
        finally:
            rebuilt.close()

    def _rows(self, condition: str, arguments: Sequence[object] = ()) -> list[Row]:
        return [_row_from_fields(row) for row in self.query(f"SELECT {_COLUMNS} FROM turns {condition}", arguments)]

    def _branches(self, condition: str, arguments: Sequence[object]) -> list[Branch]:
        """Return the branches; if a state is damaged, those of a rebuilt index."""
        query = f"{_BRANCHES} {condition}"
        try:
            return [self._branch(*row) for row in self.query(query, arguments)]
        except ValueError:
            self._renew(_DAMAGE_ERROR)
        self.sync()
        return [self._branch(*row) for row in self.query(query, arguments)]

    def _branch(self, name: str, tip: str, text: bytes, archived: int) -> Branch:
        state = sessions.loads(json.loads(text))
        return Branch(name, tip, replace(state, project=self.local_path(state.project)), bool(archived))

    def _renew(self, error: sqlite3.Error) -> None:
        """Replace a damaged file by an empty index; raise any other error as StoreError."""
        if not is_damage(error):
            raise StoreError(f"cannot use the index: {error}", "Delete index.sqlite3: sessgit rebuilds it.") from error
        self._db.close()
        self._db = self._open_empty()

    def _open_empty(self) -> sqlite3.Connection:
        remove_cache(layout.StorePaths(self.path).index)
        return self._open_file()

    def _open_file(self) -> sqlite3.Connection:
        """Open the file, which is closed with the last reference to the index, at the latest when the program ends."""
        db = open_cache(layout.StorePaths(self.path).index, SCHEMA)
        weakref.finalize(self, db.close)
        return db


class _MemoryIndex(Index):
    """An index in memory next to that of the store as it is, whose file it does not touch."""

    def __init__(self, now: Index) -> None:
        vars(self).update(vars(now))
        self.damaged = {}
        self._db = self._open_empty()

    def _open_empty(self) -> sqlite3.Connection:
        db = _open_in_memory(SCHEMA)
        weakref.finalize(self, db.close)
        return db


class PastIndex(_MemoryIndex):
    """The index as it would be if the store had these branches and tags. Only branches that differ now are read."""

    def __init__(self, now: Index, tips: Tips, tags: Mapping[str, str]) -> None:
        super().__init__(now)
        self.tips, self.tags = partial(_tips_of_session, tips), partial(dict[str, str], tags)
        try:
            now._db.backup(self._db)
        except sqlite3.Error as error:
            self._renew(error)
        self.sync()


_MOST_DIFFERENT = 16
"""If a prompt uuid is that of more different turns of relatives, a program numbers its messages alike in all sessions,
and the uuid does not say that a turn was copied."""
_IS_TURN = "instr(message, char(10) || 'Event: turn' || char(10))"
_LINE = "substr(message, 1, instr(message, char(10)) - 1)"
_BEFORE_SECRET = "substr({0}, 1, instr({0} || '[', '[') - 1)"
_SHORTER = "min(length(theirs), length(ours))"
_RELATIVES = f"""WITH first AS (
        SELECT branch, {_IS_TURN} AS is_turn, {_LINE} AS line, {_BEFORE_SECRET.format(_LINE)} AS theirs,
            {_BEFORE_SECRET.format("?2")} AS ours
        FROM turns WHERE prompt = ?1 AND turn = 1
    ),
    relatives AS (
        SELECT branch FROM first WHERE NOT is_turn OR ?2 IN ('', line) OR (
            instr(line || ?2, '[') AND substr(theirs, 1, {_SHORTER}) = substr(ours, 1, {_SHORTER})
        )
    )
"""


@frozen
class Relatives:
    """The sessions whose first turn has a prompt with this uuid, and this subject of its commit unless it is empty.

    Some programs use the same message ids in every conversation: to read all these turns would be quadratic. A subject
    is compared up to the mark of a secret, which is replaced in only one of them.
    """

    index: Index
    root: str
    subject: str

    def are_copies(self, prompt: str, number: int) -> bool:
        """Return whether any has a turn of this number with this prompt, and the turns are copies of a few."""
        turns = "SELECT DISTINCT commit_id FROM turns NATURAL JOIN relatives WHERE prompt = ?3 AND turn = ?4"
        found = self._query(f"{turns} LIMIT {_MOST_DIFFERENT + 1}", prompt, number)
        return 0 < len(found) <= _MOST_DIFFERENT

    def has(self, session: str) -> bool:
        """Return whether this session is one of them."""
        return bool(self._query("SELECT 1 FROM relatives WHERE branch = ?3", session))

    def names(self, prompt: str, number: int, created: str) -> list[str]:
        """Return those with this prompt in the turn of this number that were created by then, forks last."""
        turns = "turns NATURAL JOIN relatives JOIN branches ON name = branch"
        which = "prompt = ?3 AND turn = ?4 AND created <= ?5 AND NOT instr(name, '.')"
        found = self._query(
            f"SELECT name FROM {turns} WHERE {which} ORDER BY parent > '', name", prompt, number, created
        )
        return [name for (name,) in found]

    def unlinked(self, created: str) -> list[str]:
        """Return those that were created later and are no forks, by name."""
        which = "created > ?3 AND parent = '' AND NOT instr(name, '.')"
        found = self._query(
            f"SELECT name FROM relatives JOIN branches ON name = branch WHERE {which} ORDER BY name", created
        )
        return [name for (name,) in found]

    def _query(self, query: str, *arguments: object) -> list[Any]:
        return self.index.query(_RELATIVES + query, (self.root, self.subject, *arguments))


def _outline(branch: str, tip: str, state: Session, *, archived: bool) -> Outline:
    return Outline(
        branch, tip, archived, layout.session_of(branch), state.agent, state.agent_id, state.project, state.title,
        state.name, state.description, state.first_prompt, json.dumps(state.labels), state.created, state.updated,
        "" if state.state == "active" else state.ended, state.turns, state.is_headless, state.state, state.stage,
        layout.session_of(state.origin.session) if state.origin else "",
        state.unified.metadata.parent or "", state.remote,
    )  # fmt: skip


def _noted(store: Store, branch: str, tip: str) -> tuple[str, str, str]:
    """Return the source's id of a session, its facts as JSON, and the texts of its scratchpad; all are empty for a side
    branch."""
    tree, source, facts, lists = store.tree(tip), "", "", dict[str, bytes]()
    if layout.is_side_branch(branch):
        return "", "", ""
    if note := store.repo.entry(tree, f"{layout.KEPT}/source.json"):
        with suppress(ValueError, RecursionError, StoreError):
            said = json.loads(store.repo.blob(note[0]))
            if isinstance(said, dict) and said.get("session") == branch:
                source = str(said.get("id") or "")
                facts = json.dumps(known) if isinstance(known := said.get("facts"), dict) and known else ""
    if folder := store.repo.entry(tree, layout.PAD):
        with suppress(StoreError):
            files = store.repo.files(folder[0]) if folder[1] else {}
            lists = {name.removesuffix(".jsonl"): store.repo.blob(oid) for name, (oid, _) in files.items()}
    return source, facts, _pad_text(lists) if lists else ""


def _pad_text(lists: Mapping[str, bytes]) -> str:
    from sessgit.model import pad as pads

    entries = pads.read_pad(lists).entries
    return "\n".join(" ".join(f"{entry.text} {entry.answer}".split()) for entry in entries if entry.text)


def _rows_by_name(index: Index, table: str, key: str) -> dict[str, set[tuple[object, ...]]]:
    rows = dict[str, set[tuple[object, ...]]]()
    for name, *rest in index.query(f"SELECT {key}, * FROM {table}"):
        rows.setdefault(name, set()).add(tuple(rest))
    return rows


def _tips_of_session(tips: Tips, session: str | None = None) -> dict[str, tuple[str, bool]]:
    return {name: at for name, at in tips.items() if session is None or layout.session_of(name) == session}


def _session_condition(session: str) -> tuple[str, tuple[str, ...]]:
    """Return the condition for the branches of a session: their names begin with its id, so no other rows are read."""
    return "WHERE name BETWEEN ? AND ? AND session = ?", (session, f"{session}~", session)


def _sqlite_values(values: Sequence[object]) -> list[object]:
    return [sqlite_text(value) if isinstance(value, str) else value for value in values]


def _row_from_fields(fields: tuple[str, int, str, str, int, str, int]) -> Row:
    branch, turn, commits, prompt, time, message, compacted = fields
    return Row(branch, turn, tuple(commits.split()), prompt, time, message, bool(compacted))
