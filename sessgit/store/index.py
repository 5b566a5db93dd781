"""The index: sessions, turns and prompts in one SQLite file, derived from the refs and never the truth.

It is brought level with the refs whenever someone asks, branch by branch, from the new tip back to the first
commit that it knows. A missing, damaged or older one is made anew; where it cannot be written, it lives in memory.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.errors import DamageError, NewerStoreError, SessgitError, StoreError
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.turn import Gist
from sessgit.store import layout, refs
from sessgit.store.sqlite import cache_file, tables
from sessgit.store.sqlite.rows import Branch, Outline, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store

_COLUMNS = "branch, turn, commits, prompt, time, message, compacted"
_BRANCHES = "SELECT name, tip, state, archived FROM branches"
_OUTLINE = (
    "name, archived, agent_id, project, title, authored_name, created, updated, turns, headless, status, stage, labels,"
    " parent"
)


class Index:
    """The index of the store at `path`; `open_store` is called only if something has changed since."""

    def __init__(self, path: Path, open_store: Callable[[], Store]) -> None:
        self.path = path
        self.damaged: dict[str, SessgitError] = {}
        """The branches that could not be read when they were last looked at, and why."""
        self.open_store = open_store
        self.tips, self.tags = partial(refs.branches, path), partial(refs.tags, path)
        """What the index is level with, and each tag with the object that it leads to: those of the store as it is."""
        self.here: Callable[[str], str] = str
        """The folder here that stands for one of a project: whoever asks is told that one."""
        self._db = self._opened()

    def close(self) -> None:
        """Lets go of the file."""
        self._db.close()

    # Level with the refs

    def sync(self, session: str | None = None) -> None:
        """Brings all branches level with their refs, or those of one session."""
        wanted = self.tips(session)
        where, arguments = _session_condition(session) if session is not None else ("", ())
        query = f"SELECT name, tip, archived FROM branches {where}"
        try:
            known = {name: (tip, bool(archived)) for name, tip, archived in self._db.execute(query, arguments)}
        except sqlite3.Error as error:
            self._renew(error)
            known = {}
        if known.keys() - wanted.keys():  # one that is just being archived, or brought back, may look like gone
            wanted |= self.tips(session)
        for branch in [one for one in self.damaged if session in (None, layout.session_of(one))]:
            del self.damaged[branch]  # it is looked at anew, or is gone
        if wanted == known:
            return
        moved = [(at[1], b) for b, at in wanted.items() if b in known and known[b] != at and known[b][0] == at[0]]
        changed = {b for b in wanted if known.get(b) != wanted[b]}.difference(b for _, b in moved)
        try:
            self._db.execute("BEGIN IMMEDIATE")  # one that reads first may not write after someone else did
            with self._db:
                for branch in known.keys() - wanted.keys():
                    self._drop(branch)
                self._db.executemany("UPDATE branches SET archived = ? WHERE name = ?", moved)
                store = self.open_store() if changed else None
                for branch in sorted(changed, key=lambda branch: (layout.is_side_branch(branch), branch)):
                    assert store is not None
                    try:  # what is damaged, or none of ours, is kept out and asked for again
                        self._update(store, branch, *wanted[branch])
                    except (DamageError, NewerStoreError, StoreError) as damage:
                        self._drop(branch)
                        self.damaged[branch] = damage
        except sqlite3.Error as error:
            self._renew(error)
            self.sync(session)

    def _drop(self, branch: str) -> None:
        self._db.execute("DELETE FROM branches WHERE name = ?", (branch,))
        self._db.execute("DELETE FROM turns WHERE branch = ?", (branch,))

    def _update(self, store: Store, branch: str, tip: str, archived: bool) -> None:
        state = store.state(tip)
        new, found = self._new_rows(store, branch, tip)
        values = _sqlite_values((
            branch, tip, archived, layout.session_of(branch), state.agent_id, state.project, state.title, state.name,
            state.created, state.updated, state.turns, state.is_headless, state.state, state.stage,
            json.dumps(state.labels), layout.session_of(state.origin.session) if state.origin else "",
            state.description, sessions.dumps(state),
        ))  # fmt: skip
        self._db.execute(f"INSERT OR REPLACE INTO branches VALUES ({','.join('?' * len(values))})", values)
        last = found[1] if found else 0
        if found and found[0] == branch:
            self._db.execute("DELETE FROM turns WHERE branch = ? AND turn > ?", (branch, last))
        else:
            self._db.execute("DELETE FROM turns WHERE branch = ?", (branch,))
        if found and found[0] != branch:
            copy = (
                "INSERT INTO turns SELECT ?, turn, commits, prompt, time, message, compacted, bytes FROM turns"
                " WHERE branch = ? AND turn <= ?"
            )
            self._db.execute(copy, (branch, found[0], last))
        self._db.executemany("INSERT OR REPLACE INTO turns VALUES (?,?,?,?,?,?,?,?)", new)

    def _new_rows(self, store: Store, branch: str, tip: str) -> tuple[list[tuple[object, ...]], tuple[str, int] | None]:
        """The rows from the tip back to the first commit that is known, and the branch and turn of that one."""
        rows, size, compacted, last = dict[int, tuple[list[str], str, int, str]](), Counter[int](), set[int](), 0
        found: tuple[str, int] | None = None
        query = "SELECT tip, (SELECT ifnull(max(turn), 0) FROM turns WHERE branch = name) FROM branches WHERE name = ?"
        known = self._db.execute(query, (branch,)).fetchone() or ("", 0)
        for commit in store.repo.first_parents(tip):
            if commit.id == known[0] and not rows:  # edits alone, of which a program may make many
                return [], (branch, known[1])
            message = messages.parse_message(commit.message)
            turn, prompt = message.number("Turn"), message.get("Prompt")
            if not turn or not prompt:
                compacted |= {last} if message.get("Event") == "compact" else set()
                if message.get("Event") == "merge" and "@" not in message.get("Origin"):
                    self._db.execute("INSERT OR IGNORE INTO merges VALUES (?)", (message.get("Session"),))
                continue
            if turn not in rows and (found := self._holder(branch, prompt, commit.id)):
                break
            last = turn
            size[turn] += sum(extent.length for extent in message.extents)
            rows.setdefault(turn, ([], prompt, commit.time, commit.message))[0].insert(0, commit.id)
        new = [(branch, n, " ".join(c), p, t, m, n in compacted, size[n]) for n, (c, p, t, m) in sorted(rows.items())]
        return list(new), found

    def _holder(self, branch: str, prompt: str, commit: str) -> tuple[str, int] | None:
        """The branch, this one first, whose turn ends with the commit, and the turn's number."""
        held = self._db.execute("SELECT branch, turn, commits FROM turns WHERE prompt = ?", (prompt,)).fetchall()
        matches = [(b, n) for b, n, commits in held if commits.endswith(commit)]
        return min(matches, key=lambda match: (match[0] != branch, match), default=None)

    def add_rows(self, other: Path) -> None:
        """Adds all rows of the index of another store, whose branches have just come into this one. Rows that cannot be
        added are made from the branches when they are asked for."""
        with suppress(sqlite3.Error):
            self._db.execute("ATTACH ? AS other", (str(layout.StorePaths(other).index),))
            try:
                with self._db:
                    self._db.execute("BEGIN IMMEDIATE")
                    for table in tables.INDEX.tables:
                        self._db.execute(f"INSERT OR REPLACE INTO main.{table} SELECT * FROM other.{table}")
            finally:
                self._db.execute("DETACH other")

    # Questions

    def branches(self, session: str | None = None) -> list[Branch]:
        """All branches, or those of one session, each session's head before its side branches."""
        where, arguments = _session_condition(session) if session else ("", ())
        return self._branches(f"{_BRANCHES} {where} ORDER BY name", arguments)

    def branch(self, name: str) -> Branch | None:
        """The branch of this name, a side branch too, or None."""
        return next(iter(self._branches(f"{_BRANCHES} WHERE name = ?", (name,))), None)

    def branches_named(self, names: Sequence[str]) -> list[Branch]:
        """The branches of these names that there are, by name."""
        found = (self.branch(name) for name in sorted(names))
        return [branch for branch in found if branch is not None]

    def forks_of(self, session: str) -> list[Branch]:
        """The sessions that left this one or one of its side branches, by name."""
        return self._branches(f"{_BRANCHES} WHERE parent = ? AND name = session ORDER BY name", (session,))

    def turn_of_commit(self, commit: str) -> tuple[str, int] | None:
        """The branch and the number of the turn that a commit belongs to."""
        return self._holders([commit], "instr(commits, value)").get(commit)

    def turns_of_commits(self, commits: Sequence[str]) -> dict[str, tuple[str, int]]:
        """The same of many, of which only the last commits of turns are found, but at once."""
        return self._holders(commits, "substr(commits, -40) = value")

    def _holders(self, commits: Sequence[str], where: str) -> dict[str, tuple[str, int]]:
        """A turn that branches share is its own session's, and a head's before that of a side branch."""
        own = "instr(message, char(10) || 'Session: ' || substr(branch, 1, instr(branch || '.', '.') - 1) || char(10))"
        order = f"{own} > 0, instr(branch, '.') DESC, branch DESC"  # the best one comes last
        query = f"SELECT value, branch, turn FROM json_each(?), turns WHERE {where} ORDER BY {order}"
        return {commit: (branch, turn) for commit, branch, turn in self._ask(query, (json.dumps(list(commits)),))}

    def outlines(self) -> list[Outline]:
        """The outline of every session, the one written last first; side branches are none."""
        query = f"SELECT {_OUTLINE} FROM branches WHERE name = session ORDER BY updated DESC, name"
        found = map(Outline._make, self._ask(query))
        return [one if (here := self.here(one.project)) == one.project else one._replace(project=here) for one in found]

    def names(self) -> list[tuple[str, str, str, str, str]]:
        """Of each branch its name, the agent's id, the authored name, the title and the project."""
        rows = self._ask("SELECT name, agent_id, authored_name, title, project FROM branches")
        return [(*said, self.here(project)) for *said, project in rows]

    def sessions_beginning(self, start: str) -> list[str]:
        """The sessions whose id begins so."""
        query = "SELECT name FROM branches WHERE name BETWEEN ? AND ? AND name = session"
        return [row[0] for row in self._ask(query, (start, start + "~"))]

    def turns(self, branch: str, first: int = 1, last: int | None = None) -> list[Row]:
        """The turns of a branch from the first to the last."""
        query = f"SELECT {_COLUMNS} FROM turns WHERE branch = ? AND turn BETWEEN ? AND ? ORDER BY turn"
        return [
            _row_from_fields(row) for row in self._ask(query, (branch, first, last if last is not None else 1 << 31))
        ]

    def every_turn(self) -> list[tuple[Row, Gist | None]]:
        """Each turn and what is remembered of it but for files; a shared one once, best on a head, else not rewound."""
        told = "json_remove(told, '$.files_read', '$.files_changed')"
        turns = "turns LEFT JOIN gists ON commit_id = substr(commits, -40) GROUP BY substr(commits, -40)"
        place = "min((instr(branch, '.') > 0) + (instr(branch, '.r-') > 0))"  # the other columns are of that row
        rows = self._ask(f"SELECT {told}, {place}, {_COLUMNS} FROM {turns}")
        every = json.loads(f"[{','.join(row[0] or 'null' for row in rows)}]")
        gists = (Gist.from_json(told) if told else None for told in every)
        return [(_row_from_fields(row[2:]), gist) for row, gist in zip(rows, gists, strict=True)]

    def turn(self, branch: str, number: int) -> Row | None:
        """The turn of that number, or None."""
        query = f"SELECT {_COLUMNS} FROM turns WHERE branch = ? AND turn = ?"
        rows = self._ask(query, (branch, number))
        return _row_from_fields(rows[0]) if rows else None

    def with_prompt(self, prompt: str) -> list[Row]:
        """The turns with this prompt uuid, in whatever session."""
        query = f"SELECT {_COLUMNS} FROM turns WHERE prompt = ? ORDER BY branch"
        return [_row_from_fields(row) for row in self._ask(query, (prompt,))]

    def left_behind(self, branch: str, head: str) -> tuple[int, int]:
        """The last turn that a branch has in common with the head from the first one on, and how many turns it has
        after that one: (0, 0) where the head has all of them."""
        first = (
            "SELECT min(turn) AS first FROM turns AS own WHERE branch = ?1 AND NOT EXISTS (SELECT 1 FROM turns"
            " WHERE branch = ?2 AND turn = own.turn AND prompt = own.prompt)"
        )
        query = f"SELECT first, (SELECT count(*) FROM turns WHERE branch = ?1 AND turn >= first) FROM ({first})"
        ((found, count),) = self._ask(query, (branch, head))
        return (int(found) - 1, int(count)) if count else (0, 0)

    def title(self, row: Row) -> str:
        """The first line of a turn's prompt, also of one that a fork cut: that one's commit tells of the fork."""
        if row.message.get("Event") != "fork":
            return row.title
        point = row.message.get("Fork-Point").partition("@")[0]
        held = [other for other in self.with_prompt(row.prompt) if other.message.get("Event") != "fork"]
        return min(held, key=lambda other: other.branch != point, default=row).title

    def gists(self, commits: Sequence[str]) -> dict[str, Gist]:
        """What is remembered of the turns that end with these commits; a commit's content never changes."""
        query = "SELECT commit_id, told FROM gists WHERE commit_id IN (SELECT value FROM json_each(?))"
        rows = self._ask(query, (json.dumps(list(commits)),))
        every = json.loads(f"[{','.join(told for _, told in rows)}]")  # half the time of one by one
        return {commit: Gist.from_json(told) for (commit, _), told in zip(rows, every, strict=True)}

    def remember(self, gists: Mapping[str, Gist]) -> None:
        """Keeps what turns hold, by their last commit, so that it need not be read from their lines again."""
        told = [(commit, json.dumps(gist.as_json())) for commit, gist in gists.items()]
        touched = [
            (cache_file.sqlite_text(p), c, p in gist.files_changed) for c, gist in gists.items() for p in gist.files
        ]
        with suppress(sqlite3.Error), self._db:  # it is only asked for again
            self._db.executemany("INSERT OR REPLACE INTO gists VALUES (?,?)", told)
            self._db.executemany("INSERT OR REPLACE INTO touched VALUES (?,?,?)", touched)

    def without_gist(self, branch: str | None = None) -> list[Row]:
        """The turns of which nothing is remembered, of one branch or of all; a shared one stands once."""
        query = (
            f"SELECT {_COLUMNS} FROM turns WHERE (? IS NULL OR branch = ?) AND substr(commits, -40) NOT IN"
            " (SELECT commit_id FROM gists) GROUP BY substr(commits, -40) ORDER BY branch, turn"
        )
        return [_row_from_fields(row) for row in self._ask(query, (branch, branch))]

    def commits_touching(self, path: str) -> dict[str, bool]:
        """The last commits of the turns that read or changed a file, or one below a folder, and whether they changed
        it. `path` may be a pattern of SQLite's GLOB. Of turns in `without_gist` nothing is known."""
        below = path.rstrip("/") + "/"
        query = "SELECT commit_id, changed FROM touched WHERE path = ? OR path BETWEEN ? AND ? OR path GLOB ?"
        found: dict[str, bool] = {}
        for commit, changed in self._ask(query, (path, below, below + "\U0010ffff", path)):
            found[commit] = found.get(commit, False) or bool(changed)
        return found

    def sessions_holding(self, commits: Collection[str]) -> set[str]:
        """The sessions that have a turn which ends with one of the commits, on whichever of their branches."""
        query = "SELECT branch FROM turns WHERE substr(commits, -40) = ?"
        return {layout.session_of(row[0]) for commit in commits for row in self._ask(query, (commit,))}

    def raw_size(self) -> int:
        """So many bytes of the agents' files are recorded as turns; what conversations share counts once."""
        ((size,),) = self._ask("SELECT total(bytes) FROM (SELECT DISTINCT commits, bytes FROM turns)")
        return int(size)

    def counts(self) -> tuple[int, int]:
        """The number of sessions and of turns, each turn counted once."""
        ((sessions_,),) = self._ask("SELECT count(DISTINCT session) FROM branches")
        ((turns,),) = self._ask("SELECT count(DISTINCT prompt) FROM turns")
        return int(sessions_), int(turns)

    def _branches(self, query: str, arguments: Sequence[object]) -> list[Branch]:
        """The branches; where a state turns out to be damaged, those of an index made anew."""
        try:
            return [self._branch(*row) for row in self._ask(query, arguments)]
        except ValueError:
            self._renew(cache_file.DAMAGE_ERROR)
        self.sync()
        return [self._branch(*row) for row in self._ask(query, arguments)]

    def _branch(self, name: str, tip: str, state: bytes, archived: int) -> Branch:
        found = sessions.loads(json.loads(state))
        return Branch(name, tip, replace(found, project=self.here(found.project)), bool(archived))

    def _ask(self, query: str, arguments: Sequence[object] = ()) -> list[Any]:
        """The rows; where the file turns out to be damaged, those of one made anew."""
        values = _sqlite_values(arguments)
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            self._renew(error)
        self.sync()
        return self._db.execute(query, values).fetchall()

    def _renew(self, error: sqlite3.Error) -> None:
        """Puts an empty index in the place of a damaged file; any other error goes on as one of ours."""
        if not cache_file.is_damage(error):
            raise StoreError(f"cannot use the index: {error}", "Delete index.sqlite3: sessgit rebuilds it.") from error
        self._db.close()
        cache_file.remove_file(layout.StorePaths(self.path).index)
        self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        """The file, which is closed when nobody has the index any more, at the latest when the program ends."""
        db = cache_file.connect(layout.StorePaths(self.path).index, tables.INDEX)
        weakref.finalize(self, db.close)
        return db


def _session_condition(session: str) -> tuple[str, tuple[str, ...]]:
    """Which branches are those of a session. Their names begin with its id: so no other rows are read."""
    return "WHERE name BETWEEN ? AND ? AND session = ?", (session, f"{session}~", session)


def _sqlite_values(values: Sequence[object]) -> list[object]:
    """The values as SQLite takes them."""
    return [cache_file.sqlite_text(value) if isinstance(value, str) else value for value in values]


def _row_from_fields(fields: tuple[str, int, str, str, int, str, int]) -> Row:
    branch, turn, commits, prompt, time, message, compacted = fields
    return Row(branch, turn, tuple(commits.split()), prompt, time, message, bool(compacted))
