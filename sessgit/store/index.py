"""The index: sessions, turns and prompts in one SQLite file, derived from the refs and never the truth.

It is brought level with the refs whenever someone asks, branch by branch, from the new tip back to the first
commit that it knows. A missing, damaged or older one is made anew; where it cannot be written, it lives in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.errors import DamageError, SessgitError, StoreError
from sessgit.model import message as messages
from sessgit.model import session as sessions
from sessgit.model.message import Message
from sessgit.model.session import Session
from sessgit.model.turn import Gist, Tokens
from sessgit.store import layout, refs

if TYPE_CHECKING:
    from sessgit.store.store import Store

_VERSION = 3
_SCHEMA = """
CREATE TABLE branches(
    name TEXT PRIMARY KEY, tip TEXT NOT NULL, session TEXT NOT NULL, agent_id TEXT NOT NULL, project TEXT NOT NULL,
    title TEXT NOT NULL, authored_name TEXT NOT NULL, updated TEXT NOT NULL, state BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX branches_project ON branches(project, updated);
CREATE TABLE turns(
    branch TEXT NOT NULL, turn INTEGER NOT NULL, commits TEXT NOT NULL, prompt TEXT NOT NULL, time INTEGER NOT NULL,
    message TEXT NOT NULL, compacted INTEGER NOT NULL, PRIMARY KEY(branch, turn)
) WITHOUT ROWID;
CREATE INDEX turns_prompt ON turns(prompt);
CREATE TABLE gists(
    commit_id TEXT PRIMARY KEY, files_read TEXT NOT NULL, files_changed TEXT NOT NULL, tokens TEXT NOT NULL
) WITHOUT ROWID;
"""
_COLUMNS = "branch, turn, commits, prompt, time, message, compacted"


@dataclass(frozen=True, slots=True)
class Row:
    """A turn as its commits tell it; `time` is in seconds since 1970, `commits` are oldest first.

    `compacted` says that the conversation so far was made a summary before this turn's prompt.
    """

    branch: str
    turn: int
    commits: tuple[str, ...]
    prompt: str
    time: int
    text: str
    """The message of the turn's last commit."""
    compacted: bool = False

    @property
    def message(self) -> Message:
        """The same, parsed; most turns of a long conversation are never asked for theirs."""
        return _parsed(self.text)

    @property
    def commit(self) -> str:
        """The turn's last commit."""
        return self.commits[-1]

    @property
    def tokens(self) -> Tokens:
        said = dict(self.message.trailers)
        kinds = ("Tokens-In", "Tokens-Out", "Tokens-Cache-Read", "Tokens-Cache-Write")
        return Tokens(*(int(v) if (v := said.get(kind, "")).isdecimal() and len(v) < 16 else 0 for kind in kinds))

    @property
    def title(self) -> str:
        """The first line of the prompt."""
        return self.message.subject.partition(": ")[2]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch with its state as of its tip."""

    name: str
    tip: str
    state: Session


class Index:
    """The index of the store at `path`; `open_store` is called only if something has changed since."""

    def __init__(self, path: Path, open_store: Callable[[], Store]) -> None:
        self.path = path
        self.damaged: dict[str, SessgitError] = {}
        """The branches that could not be read when they were last looked at, and why."""
        self._open_store = open_store
        self._db = _open(layout.Beside(path).index)

    def close(self) -> None:
        self._db.close()

    # Level with the refs

    def sync(self, session: str | None = None) -> None:
        """Brings all branches level with their refs, or those of one session."""
        prefix = layout.HEADS + (session or "")
        wanted = {
            name.removeprefix(layout.HEADS): tip
            for name, tip in refs.read_all(self.path, prefix).items()
            if session is None or layout.session_of(name.removeprefix(layout.HEADS)) == session
        }
        query, arguments = "SELECT name, tip FROM branches", ()
        if session is not None:
            query, arguments = f"{query} WHERE session = ?", (session,)  # type: ignore[assignment]
        try:
            known = dict(self._db.execute(query, arguments).fetchall())
        except sqlite3.Error as error:
            self._renew(error)
            known = {}
        if wanted == known:
            return
        changed = sorted((b for b in wanted if known.get(b) != wanted[b]), key=lambda b: (layout.is_rewound(b), b))
        try:
            with self._db:
                for branch in known.keys() - wanted.keys():
                    self._drop(branch)
                store = self._open_store() if changed else None
                for branch in changed:
                    assert store is not None
                    # What is damaged, or none of ours, is kept out and asked for again: all others stay usable.
                    try:
                        self._update(store, branch, wanted[branch])
                    except (DamageError, StoreError) as damage:
                        self._drop(branch)
                        self.damaged[branch] = damage
        except sqlite3.Error as error:
            self._renew(error)
            self.sync(session)

    def _drop(self, branch: str) -> None:
        self._db.execute("DELETE FROM branches WHERE name = ?", (branch,))
        self._db.execute("DELETE FROM turns WHERE branch = ?", (branch,))

    def _update(self, store: Store, branch: str, tip: str) -> None:
        state = store.state(tip)
        new, found = self._new_rows(store, branch, tip)
        values = (
            branch, tip, layout.session_of(branch), state.agent_id, state.project, state.title, state.name,
            state.updated, sessions.dumps(state),
        )  # fmt: skip
        self._db.execute("INSERT OR REPLACE INTO branches VALUES (?,?,?,?,?,?,?,?,?)", values)
        last = found[1] if found else 0
        if found and found[0] == branch:
            self._db.execute("DELETE FROM turns WHERE branch = ? AND turn > ?", (branch, last))
        else:
            self._db.execute("DELETE FROM turns WHERE branch = ?", (branch,))
        if found and found[0] != branch:
            copy = (
                "INSERT INTO turns SELECT ?, turn, commits, prompt, time, message, compacted FROM turns"
                " WHERE branch = ? AND turn <= ?"
            )
            self._db.execute(copy, (branch, found[0], last))
        self._db.executemany("INSERT OR REPLACE INTO turns VALUES (?,?,?,?,?,?,?)", new)

    def _new_rows(self, store: Store, branch: str, tip: str) -> tuple[list[tuple[object, ...]], tuple[str, int] | None]:
        """The rows from the tip back to the first commit that is known, and the branch and turn of that one."""
        rows: dict[int, tuple[list[str], str, int, str]] = {}
        found: tuple[str, int] | None = None
        compacted: set[int] = set()
        last = 0
        for commit in store.repo.first_parents(tip):
            message = messages.loads(commit.message)
            turn, prompt = message.number("Turn"), message.get("Prompt")
            if not turn or not prompt:
                compacted |= {last} if message.get("Event") == "compact" else set()
                continue
            if turn not in rows and (found := self._holder(branch, prompt, commit.id)):
                break
            last = turn
            rows.setdefault(turn, ([], prompt, commit.time, commit.message))[0].insert(0, commit.id)
        new = [(branch, n, " ".join(c), p, t, m, n in compacted) for n, (c, p, t, m) in sorted(rows.items())]
        return list(new), found

    def _holder(self, branch: str, prompt: str, commit: str) -> tuple[str, int] | None:
        """The branch, this one first, whose turn ends with the commit, and the turn's number."""
        held = self._db.execute("SELECT branch, turn, commits FROM turns WHERE prompt = ?", (prompt,)).fetchall()
        matches = [(b, n) for b, n, commits in held if commits.endswith(commit)]
        return min(matches, key=lambda match: (match[0] != branch, match), default=None)

    # Questions

    def branches(self, session: str | None = None) -> list[Branch]:
        """All branches, or those of one session, the sessions' heads before what rewinds left."""
        where, arguments = ("WHERE session = ?", [session]) if session else ("", [])
        query = f"SELECT name, tip, state FROM branches {where} ORDER BY name"
        return [_branch(*row) for row in self._ask(query, arguments)]

    def branch(self, name: str) -> Branch | None:
        rows = self._ask("SELECT name, tip, state FROM branches WHERE name = ?", (name,))
        return _branch(*rows[0]) if rows else None

    def branches_named(self, names: Sequence[str]) -> list[Branch]:
        """The branches of these names that there are, by name."""
        found = (self.branch(name) for name in sorted(names))
        return [branch for branch in found if branch is not None]

    def forks_of(self, session: str) -> list[Branch]:
        """The sessions that left this one or one of its rewound branches, by name."""
        query = "SELECT name, tip, state FROM branches WHERE instr(state, ?) AND name = session ORDER BY name"
        found = (_branch(*row) for row in self._ask(query, (f'"session": "{session}',)))
        return [b for b in found if b.state.origin and layout.session_of(b.state.origin.session) == session]

    def holding(self, commit: str) -> tuple[str, int] | None:
        """The branch and the number of the turn that a commit belongs to, a session's head before others."""
        query = "SELECT branch, turn FROM turns WHERE instr(commits, ?) ORDER BY instr(branch, '.'), branch LIMIT 1"
        rows = self._ask(query, (commit,))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def names(self) -> list[tuple[str, str, str, str, str]]:
        """Of each branch its name, the agent's id, the authored name, the title and the project."""
        return self._ask("SELECT name, agent_id, authored_name, title, project FROM branches")

    def turns(self, branch: str, first: int = 1, last: int | None = None) -> list[Row]:
        """The turns of a branch from the first to the last."""
        query = f"SELECT {_COLUMNS} FROM turns WHERE branch = ? AND turn BETWEEN ? AND ? ORDER BY turn"
        return [_row(row) for row in self._ask(query, (branch, first, last if last is not None else 1 << 31))]

    def turn(self, branch: str, number: int) -> Row | None:
        query = f"SELECT {_COLUMNS} FROM turns WHERE branch = ? AND turn = ?"
        rows = self._ask(query, (branch, number))
        return _row(rows[0]) if rows else None

    def with_prompt(self, prompt: str) -> list[Row]:
        """The turns with this prompt uuid, in whatever session."""
        query = f"SELECT {_COLUMNS} FROM turns WHERE prompt = ? ORDER BY branch"
        return [_row(row) for row in self._ask(query, (prompt,))]

    def left_behind(self, branch: str, head: str) -> tuple[int, int]:
        """The last turn that a branch has in common with the head, and how many turns it has after that one."""
        query = (
            "SELECT min(turn), count(*) FROM turns AS own WHERE branch = ? AND NOT EXISTS (SELECT 1 FROM turns"
            " WHERE branch = ? AND turn = own.turn AND prompt = own.prompt)"
        )
        ((first, count),) = self._ask(query, (branch, head))
        return (int(first) - 1, int(count)) if count else (0, 0)

    def title(self, row: Row) -> str:
        """The first line of a turn's prompt, also of one that a fork cut: that one's commit tells of the fork."""
        if row.message.get("Event") != "fork":
            return row.title
        whole = (other.title for other in self.with_prompt(row.prompt) if other.message.get("Event") != "fork")
        return next(whole, row.title)

    def gists(self, commits: Sequence[str]) -> dict[str, Gist]:
        """What is remembered of the turns that end with these commits; a commit's content never changes."""
        query = "SELECT files_read, files_changed, tokens FROM gists WHERE commit_id = ?"
        found = ((commit, self._ask(query, (commit,))) for commit in commits)
        return {commit: _gist(*rows[0]) for commit, rows in found if rows}

    def remember(self, gists: Mapping[str, Gist]) -> None:
        """Keeps what turns hold, by their last commit, so that it need not be read from their lines again."""
        rows = [
            (commit, *map(json.dumps, (g.files_read, g.files_changed, {m: t.as_json() for m, t in g.tokens.items()})))
            for commit, g in gists.items()
        ]
        with suppress(sqlite3.Error), self._db:  # it is only asked for again
            self._db.executemany("INSERT OR REPLACE INTO gists VALUES (?,?,?,?)", rows)

    def counts(self) -> tuple[int, int]:
        """The number of sessions and of turns, each turn counted once."""
        ((sessions_,),) = self._ask("SELECT count(DISTINCT session) FROM branches")
        ((turns,),) = self._ask("SELECT count(DISTINCT prompt) FROM turns")
        return int(sessions_), int(turns)

    def _ask(self, query: str, arguments: Sequence[object] = ()) -> list[Any]:
        """The rows; where the file turns out to be damaged, those of one made anew."""
        try:
            return self._db.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            self._renew(error)
        self.sync()
        return self._db.execute(query, arguments).fetchall()

    def _renew(self, error: sqlite3.Error) -> None:
        """Puts an empty index in the place of a damaged file; any other error goes on as one of ours."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StoreError(f"the index cannot be used: {error}", "Delete index.sqlite3: it is made anew.") from error
        self._db.close()
        _remove(layout.Beside(self.path).index)
        self._db = _open(layout.Beside(self.path).index)


def _open(path: Path) -> sqlite3.Connection:
    for attempt in (0, 1):
        try:
            return _connect(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) or attempt:
                break
            _remove(path)
    return _prepare(sqlite3.connect(":memory:"))


def _remove(path: Path) -> None:
    for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        name.unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=10)
    try:
        path.chmod(0o600)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        return _prepare(db)
    except (sqlite3.Error, OSError) as error:
        db.close()
        if isinstance(error, OSError):
            raise sqlite3.OperationalError(str(error)) from error
        raise


def _prepare(db: sqlite3.Connection) -> sqlite3.Connection:
    if db.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
        return db
    db.execute("BEGIN IMMEDIATE")
    with db:
        if db.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            for table in ("branches", "turns", "gists"):
                db.execute(f"DROP TABLE IF EXISTS {table}")
            _each(db, _SCHEMA.split(";"))
            db.execute(f"PRAGMA user_version = {_VERSION}")
    return db


def _each(db: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        if statement.strip():
            db.execute(statement)


def _branch(name: str, tip: str, state: bytes) -> Branch:
    return Branch(name, tip, sessions.loads(json.loads(state)))


def _row(fields: tuple[str, int, str, str, int, str, int]) -> Row:
    branch, turn, commits, prompt, time, message, compacted = fields
    return Row(branch, turn, tuple(commits.split()), prompt, time, message, bool(compacted))


_parsed = lru_cache(maxsize=1024)(messages.loads)


def _gist(read: str, changed: str, tokens: str) -> Gist:
    return Gist(
        tuple(json.loads(read)),
        tuple(json.loads(changed)),
        {model: Tokens.from_json(t) for model, t in json.loads(tokens).items()},
    )
