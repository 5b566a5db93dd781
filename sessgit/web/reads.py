"""What the page reads: the documents of the commands, from one thread that has the index open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

from sessgit import agents
from sessgit.environment import Environment
from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import client_files, resolve, tree, turn_log
from sessgit.history.resolve import CallerContext, ResolvedTarget
from sessgit.model import canonical, ids, prices
from sessgit.model.conversation.message import parse_tools
from sessgit.model.frozen import frozen
from sessgit.model.ids import parse_address
from sessgit.store import layout, operations, settings
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row
from sessgit.store.layout import StorePaths
from sessgit.store.settings import Privacy
from sessgit.store.store import Store

T = TypeVar("T")
Json = dict[str, Any]

_BLOCK = 25
"""Turns that the page draws and reads together."""
_MOST_TURNS = 200
"""Turns that are read at once."""
_LONGEST_TITLE = 300
_SHORT = 8


@frozen
class Place:
    """Where the page was started: the environment, its variables for child processes, the working folder, and the
    project that the page shows first, or ""."""

    env: Environment
    variables: Mapping[str, str]
    cwd: str
    project: str = ""


class Reader:
    """Answers the page's questions, one after another: SQLite's connection belongs to one thread.

    Addresses are those of the commands; errors are those of sessgit.errors.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._thread = ThreadPoolExecutor(1, "reader")
        self._forest: tuple[object, Json] | None = None

    async def read(self, question: Callable[..., T], *arguments: object) -> T:
        """Return what a method of this reader returns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question, arguments)

    def _answer(self, question: Callable[..., T], arguments: tuple[object, ...]) -> T:
        self.context.index.sync()
        return question(*arguments)

    def close(self) -> None:
        """Close the index as soon as nothing is being read."""
        if "context" in vars(self):
            self._thread.submit(self.context.index.close)
        self._thread.shutdown(wait=False)

    @cached_property
    def context(self) -> Context:
        env, config = self.place.env, settings.load_settings(StorePaths(self.place.env.store))
        index = Index(env.store, lambda: Store(env.store, fsync=config.record.fsync))
        index.local_path = client_files.local_path_map(config.project.map, str(env.home), index.remotes)
        privacy = Privacy(config.record, str(env.home), env.off)
        return Context(index, env.homes, privacy, self.place.variables, prices=config.prices)

    def forest(self) -> Json:
        """Return what `tree --all --json` prints, and of each session in it what `ls --json` prints."""
        live = agents.open_sessions(self.place.env.homes)
        state = self.context.index.tips(), live
        if self._forest is None or self._forest[0] != state:  # all open tabs ask for it after a change
            self._forest = state, self._read_families(live)
        return {
            **self._forest[1],
            "current": self._current(),
            "project": self.place.project,
            "home": str(self.place.env.home),
        }

    def _read_families(self, live: frozenset[str], session: str = "") -> Json:
        """Return the family of a session, or all, and their sessions."""
        overrides = self.context.prices
        choice = tree.TreeFilter(session, everything=True, live=live, fold=False)
        forest = tree.build_forest(self.context.index, choice, overrides)
        branches = [node.branch for family in forest.families for node in family.nodes]
        sessions = [turn_log.session_json(one, overrides) for one in branches if not layout.is_side_branch(one.name)]
        return {"sessions": sessions, **tree.forest_json(forest, live, overrides)}

    def _current(self) -> str | None:
        env = self.place.env
        where = CallerContext(env.homes, self.place.cwd, os.getpid(), env.session)
        with suppress(SessgitError):
            name = resolve.current_branch(self.context.index, where)[0]
            return name if self.context.index.branch(name) else None
        return None

    def conversation(self, address: str, turn: int) -> Json:
        """Return the session as `log --json` prints it, its family, what left it and came back; number and commit
        of the last turn of each block, which a change in the block would change; and the turns of the block that has
        `turn`, unless that is 0."""
        branch = self.target(address).branch
        index, start = self.context.index, (turn - 1) // _BLOCK * _BLOCK + 1
        log = turn_log.branch_log(index, branch, limit=0)
        parent = index.branch(branch.state.origin.session) if branch.state.origin else None
        return {
            "session": turn_log.session_json(branch, self.context.prices),
            "short": self._short(branch.name),
            "resume": self._resume(branch),
            "origin": self.title(parent) if parent else None,
            **self._read_families(agents.open_sessions(self.place.env.homes), layout.session_of(branch.name)),
            "commits": index.commits_of_blocks(branch.name, _BLOCK),
            "turns": self._turns(branch, start, start + _BLOCK - 1) if turn else [],
            "forks": {
                turn: [{**self.title(fork.branch), "cell": fork.cell} for fork in forks]
                for turn, forks in log.forks.items()
            },
            "left": {
                turn: [{**self.title(side.branch), "rewound": side.rewound, "count": side.count} for side in sides]
                for turn, sides in log.left.items()
            },
            "merged": {
                turn: [self.title(found) for found in index.branches_named(names)] for turn, names in log.merged.items()
            },
        }

    def turns(self, address: str, first: int, last: int) -> Json:
        """Return turns, at most 200, under the keys of `log --json`: what the index knows, the answer, and as `title`
        the beginning of the prompt."""
        return {"turns": self._turns(self.target(address).branch, first, min(last, first + _MOST_TURNS - 1))}

    def _turns(self, branch: Branch, first: int, last: int) -> list[Json]:
        store, index, overrides = self.context.store, self.context.index, self.context.prices
        rows = index.turns(branch.name, first, last)
        return [
            {
                "turn": row.turn,
                "commit": row.commit,
                "event": row.trailer("Event"),
                "time": canonical.rfc3339(row.time),
                **_words(store, branch, row, index.title(row)),
                "tools": dict(parse_tools(row.trailer("Tools"))),
                "files": len(gist.files),
                "tokens": row.tokens.as_json(),
                "cost_usd": turn_log.rounded_cost(prices.token_cost(gist.tokens, overrides)),
                "compacted": row.compacted,
                "from": row.trailer("Origin") if row.trailer("Event") == "graft" else "",
            }
            for row, gist in zip(rows, turn_log.indexed_gists(index, rows), strict=True)
        ]

    def operations(self, limit: int) -> list[Json]:
        """Return the last operations, the newest first."""
        listed = operations.list_operations(self.context.store)[:limit]
        return [
            {
                "id": each.operation.id,
                "time": each.operation.time,
                "command": each.operation.command,
                "summary": each.operation.summary,
                "standing": each.standing,
                "undoes": each.operation.undoes or None,
            }
            for each in listed
        ]

    def short_values(self, values: Mapping[str, object]) -> Json:
        """Return the values of a command with its addresses as short as they can be typed."""
        return {key: self._short_address(value) for key, value in values.items()}

    def _short_address(self, value: object) -> object:
        name, at, turn = value.partition("@") if isinstance(value, str) else ("", "", "")
        return f"{self._short(name)}{at}{turn}" if name and self.context.index.branch(name) else value

    def target(self, address: str) -> ResolvedTarget:
        """Return what an address names; raises NotFoundError if it names nothing."""
        env = self.place.env
        parsed = parse_address(address)
        if not parsed.session:
            raise NotFoundError("the address names no conversation.", "`sessgit ls --all` lists them.")
        where = CallerContext(env.homes, self.place.cwd, os.getpid(), env.session)
        return resolve.resolve_target(self.context.index, parsed, where)

    def title(self, branch: Branch) -> Json:
        """Return the ids, the title and the number of turns of a branch."""
        return {
            "id": branch.name,
            "short": self._short(branch.name),
            "title": branch.state.display_title,
            "turns": branch.state.turns,
        }

    def _short(self, branch: str) -> str:
        session = layout.session_of(branch)
        others = [name for name in self.context.index.sessions_beginning(session[:_SHORT]) if name != session]
        return ids.shortest_unique(session, others, _SHORT) + branch[len(session) :]

    def _resume(self, branch: Branch) -> str | None:
        state = client_files.localize_state(branch.state, self.context.index.local_path)
        gone = layout.is_side_branch(branch.name) or client_files.is_folder_gone(state.project)
        return None if gone else client_files.resume_command(state, "")


def _words(store: Store, branch: Branch, row: Row, title: str) -> Json:
    """Return the answer of a turn and the beginning of its prompt; if it cannot be read, a shorter `title`."""
    with suppress(SessgitError):
        turn = turn_log.read_turn(store, branch.tip, row)
        return {"title": canonical.one_line(turn.prompt, _LONGEST_TITLE) or title, "answer": turn.answer}
    return {"title": title, "answer": ""}
