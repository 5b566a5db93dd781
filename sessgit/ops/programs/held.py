"""A session that a program holds: turns and cells written to its transcript, and recorded.

The transcript is the log that is written ahead: a cell is in the file when it begins, so that a crash leaves it there
as a pending one, and the store is brought level when a turn ends, or a cell outside of turns. One turn is open at a
time, whoever writes: another process or thread that wants to open one waits.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from sessgit.agents.claude import home, written
from sessgit.agents.claude.lines import opens_turn
from sessgit.agents.claude.written import Chain
from sessgit.errors import ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.model import graph, program
from sessgit.model.program import GivenTurn, Outcome, Part, Task
from sessgit.ops.code import git
from sessgit.ops.finding import places, project
from sessgit.ops.programs import known
from sessgit.ops.programs.end import End
from sessgit.ops.programs.world import World
from sessgit.ops.recording.record import Aside, record
from sessgit.ops.recording.source import Source
from sessgit.ops.restore import restore
from sessgit.store import layout, locks, refs
from sessgit.store.index import Branch

WAIT = 10.0
"""Seconds that a write waits for a recorder or another writer."""
_POLL = 0.01
_TRIES = 5
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

Write = Callable[[Chain], Sequence[bytes]]
Lives = Literal["running", "interrupted"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A cell without a result: `running` where somebody holds its turn, else `interrupted`."""

    task: Task
    state: Lives


@dataclass
class _Turn:
    """A turn that this process has open; `loose` is one that cells outside of turns made for themselves."""

    handle: int
    key: str
    loose: bool
    thread: int
    cells: set[str] = field(default_factory=set)


class Held:
    """Writes one session. Several threads may call it at once; so may other processes with one of their own.

    `lock` is held while the world's store and index are used; whoever uses them elsewhere holds it too.
    """

    def __init__(self, world: World, branch: Branch, lock: threading.RLock) -> None:
        self.world = world
        self.id, self.agent_id = branch.name, branch.state.agent_id
        self.project = branch.state.project
        place = places.place_of(world.config, branch.state, world.store.beside)
        if place is None:
            raise ConflictError(
                f"it is not known where the file of {self.id[:8]} belongs", "Its project's folder is not noted."
            )
        self._end = End(place, Chain(self.agent_id, {"cwd": self.project} if self.project else {}))
        self._lock = lock
        self._turn: _Turn | None = None
        self._known: set[str] | None = None
        self.beside_changed = False
        """Whether plans or todos were written since the last recording."""

    # Turns

    def begin_turn(self, prompt: str, *, loose: bool = False, timeout: float = WAIT) -> str:
        """Opens a turn, and returns its prompt's uuid. Whoever has one open elsewhere is waited for.

        Raises UsageError where the same thread has one open, ConflictError after `timeout` seconds or where a client
        has the session open.
        """
        _check_prompt(prompt)
        handle = self._wait(timeout)
        try:
            with self._lock:
                self._check_open()
                self._append(lambda chain: [*self._gone(chain), chain.prompt(prompt, self.world.now())])
                self._turn = _Turn(handle, self._end.key, loose, threading.get_ident())
                return self._end.key
        except BaseException:
            locks.release(handle)
            raise

    def end_turn(self, answer: str = "", model: str = "", tokens: Mapping[str, int] | None = None) -> int:
        """Closes the open turn, with an answer where there is one, and records it; returns its number."""
        with self._lock:
            turn = self._opened()
            try:
                if answer:
                    self._append(lambda chain: [chain.words(answer, self.world.now(), model, tokens)])
                self.record()
                return self._number(turn.key)
            finally:
                self._turn = None
                locks.release(turn.handle)

    @property
    def has_turn(self) -> bool:
        """Whether this process has a turn open that it opened itself, rather than for a cell."""
        with self._lock:
            return self._turn is not None and not self._turn.loose

    def add(self, parts: Sequence[Part], model: str = "") -> None:
        """Adds what was said and done to the open turn."""
        with self._lock:
            self._opened()
            now = self.world.now()
            self._append(lambda chain: [line for part in parts for line in chain.part(part, model, now)])

    def whole(self, given: GivenTurn) -> int:
        """A turn that is given as a whole, recorded; returns its number."""
        _check_prompt(given.prompt)
        handle = self._wait(WAIT)
        try:
            with self._lock:
                self._check_open()
                at = given if given.time is not None else replace(given, time=self.world.now())
                self._append(lambda chain: [*self._gone(chain), *written.turn_lines(chain, at)])
                self.record()
                return self._number(self._end.key)
        finally:
            locks.release(handle)

    # Cells

    def begin(self, tasks: Sequence[Task]) -> list[Task]:
        """Begins cells, each after those that it depends on, and returns them with their ids, in the order given.

        Outside of a turn they make one for themselves, which ends with the last of them. Raises UsageError, with
        nothing begun, where one is no cell, where an id is taken, where one depends on a cell that is not there, or
        where they depend on each other in a cycle; its message has the path.
        """
        with self._lock:
            ready = self._checked([program.check(task) for task in tasks])
            opened = self._turn is None
            if opened:
                title = ", ".join(f"{task.source or task.type}: {task.operation}" for task in ready[:3])
        if opened:
            self.begin_turn(title if len(ready) <= 3 else f"{title} and {len(ready) - 3} more", loose=True)
        try:
            with self._lock:
                now = self.world.now()
                order = graph.order({task.id: task.dependencies for task in ready})
                by_id = {task.id: task for task in ready}
                self._append(lambda chain: [chain.call(by_id[i], now) for i in order])
                turn = self._opened()
                turn.cells |= set(by_id)
                if self._known is not None:
                    self._known |= set(by_id)
        except BaseException:
            if opened:
                self._close_loose()
            raise
        return ready

    def complete(self, outcomes: Mapping[str, Outcome]) -> int:
        """Ends cells that were begun; returns the number of the turn where that was recorded, else 0.

        Raises NotFoundError where one is no cell of the last turn, ConflictError where it has a result already, or
        where another process has its turn open.
        """
        handle = 0
        with self._lock:
            if self._turn is None:  # cells that a crash left pending
                handle = locks.turn(self.world.store.beside, self.id)
                if not handle:
                    raise _busy(self.id)
        try:
            with self._lock:
                self._append(lambda chain: self._ended(chain, outcomes))
                turn = self._turn
                if turn is None:
                    self.record()
                    return self._number(self._end.key)
                turn.cells -= set(outcomes)
                if turn.loose and not turn.cells:
                    return self._close_loose()
                if self.world.rules.granularity == "cell":
                    self.record()
                return 0
        finally:
            if handle:
                locks.release(handle)

    def pending(self) -> list[Pending]:
        """The cells of the last turn that have no result."""
        with self._lock, self._alone():
            self._end.read()
            tasks = list(self._end.pending.values())
            running = self._turn is not None
        if tasks and not running:
            handle = locks.turn(self.world.store.beside, self.id)
            running = not handle
            if handle:
                locks.release(handle)
        return [Pending(task, "running" if running else "interrupted") for task in tasks]

    # The transcript

    def record(self, *, final: bool = False) -> None:
        """Brings the store level with the transcript; with `final` the session has ended.

        Raises ConflictError where it was archived or deleted meanwhile: then what was written is in the file alone.
        """
        with self._lock, self._alone():
            if not self._end.read():
                return
            head = git.head(self.project, self.world.env) if self._has_repository() and not final else ""
            source = Source(
                self._end.path, self.agent_id, self.world.config, final=final, live=self.beside_changed, head=head
            )
            done = record(self.world.store, self.world.index, source, self.world.rules)
            self.beside_changed = False
        if done.aside:
            raise _aside(self.id, done.aside)

    def slug(self, word: str) -> None:
        """From now on every line names the plan of that name, as the client's lines do."""
        with self._lock:
            self._end.chain.common = {**self._end.chain.common, "slug": word}

    def _append(self, write: Write) -> None:
        """Writes lines behind the last one, whoever else wrote meanwhile."""
        for attempt in range(_TRIES):
            self._restore()
            with self._alone():
                self._end.read()
                before = replace(self._end.chain)
                try:
                    self._end.append(write(self._end.chain), durable=False)
                except ConflictError:
                    if attempt + 1 == _TRIES:
                        raise
                    continue
                except BaseException:
                    self._end.chain.leaf, self._end.chain.latest = before.leaf, before.latest
                    raise
                return

    def _restore(self) -> None:
        """Writes the file again where it is gone, as the client deletes those that are old."""
        if not home.is_there(self._end.path) and self._branch().state.turns:
            self._end.path = restore(self.world.store, self.id, self.world.config, now=self.world.now()).path

    def _branch(self) -> Branch:
        self.world.index.sync(self.id)
        branch = self.world.index.branch(self.id)
        if branch is None:
            raise NotFoundError(f"{self.id[:8]} is there no more", "sessgit ls --all shows all conversations.")
        return branch

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with locks.session(self.world.store.beside, self.id, WAIT) as held:
            if not held:
                raise ConflictError(f"someone else has been writing {self.id[:8]} for {WAIT:g} seconds", "Try again.")
            yield

    def _wait(self, timeout: float) -> int:
        """The descriptor that holds the session's turn; the lock of threads is not held meanwhile."""
        with self._lock:
            if self._turn is not None and self._turn.thread == threading.get_ident() and not self._turn.loose:
                raise UsageError("a turn is open already", "It ends with its block, or with end_turn.")
        deadline = time.monotonic() + timeout
        while not (handle := locks.turn(self.world.store.beside, self.id)):
            if time.monotonic() >= deadline:
                raise _busy(self.id)
            time.sleep(_POLL)
        return handle

    def _opened(self) -> _Turn:
        if self._turn is None:
            raise UsageError("no turn is open", "with session.turn(PROMPT): opens one.")
        return self._turn

    def _close_loose(self) -> int:
        turn = self._opened()
        self._turn = None
        try:
            self.record()
            return self._number(turn.key)
        finally:
            locks.release(turn.handle)

    def _number(self, key: str) -> int:
        """The number of the turn that a prompt opened, 0 where it is not recorded."""
        return next((row.turn for row in self.world.index.with_prompt(key) if row.branch == self.id), 0)

    def _check_open(self) -> None:
        """Raises ConflictError where nothing may be written: the session is out of the way, or a client has it."""
        if refs.read(self.world.store.path, layout.head(self.id)) is None:
            raise _aside(self.id, "archived" if self._branch().archived else "deleted")
        if any(client.agent_id == self.agent_id for client in home.live_clients(self.world.config)):
            raise ConflictError(
                f"{self.id[:8]} is open in a client, which would not see what is written to its file",
                "Close it first, or go on in a fork.",
            )

    def _has_repository(self) -> bool:
        return bool(self.project) and project.key(self.project) != self.project

    # Cells

    def _gone(self, chain: Chain) -> list[bytes]:
        """The ends of cells that the last turn left pending: whoever opens the next turn holds the lock of theirs."""
        error = Outcome(error=written.GONE)
        return [chain.outcome(cell, error, self.world.now()) for cell in self._end.pending]

    def _ended(self, chain: Chain, outcomes: Mapping[str, Outcome]) -> list[bytes]:
        for cell in outcomes:
            if cell in self._end.pending:
                continue
            if cell in self._end.begun:
                raise ConflictError(f"{cell} has a result already", "A result is never written over.")
            raise NotFoundError(
                f"{cell} is no cell of the last turn of {self.id[:8]}", "A turn that is over gets no more results."
            )
        return [chain.outcome(cell, outcome, self.world.now()) for cell, outcome in outcomes.items()]

    def _checked(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks with ids; raises UsageError where they cannot be."""
        given = [task.id for task in tasks if task.id]
        wanted = {other: task for task in tasks for other in task.dependencies if other not in given}
        taken = self._taken() if given or wanted else set[str]()
        if twice := next((one for n, one in enumerate(given) if one in taken or one in given[:n]), ""):
            raise UsageError(f"there is a cell {twice} already", "An id stands for one cell of a session.")
        if lost := next((other for other in wanted if other not in taken), ""):
            raise UsageError(f"{wanted[lost].operation} depends on {lost}, which is no cell of {self.id[:8]}", _UNKNOWN)
        named = [task if task.id else replace(task, id=_new_id()) for task in tasks]
        if way := graph.cycle({task.id: task.dependencies for task in named}):
            raise UsageError(f"the cells depend on each other in a circle: {' → '.join(way)}", "Nothing was begun.")
        return named

    def _taken(self) -> set[str]:
        """The ids of all cells of the session."""
        if self._known is None or not self._known.issuperset(self._end.begun):
            with self._alone():
                self._end.read()
            self._known = known.cells(self.world, self._branch()) | set(self._end.begun)
        return self._known


_UNKNOWN = "Nothing was begun. A cell depends on cells that were begun before it, or with it."
_BACK: dict[Aside, str] = {
    "archived": "sessgit unarchive brings it back.",
    "deleted": "sessgit undo takes that back, as long as it is kept.",
}


def _check_prompt(prompt: str) -> None:
    if not prompt.strip() or not opens_turn(prompt):
        what = "opens no turn for the client" if prompt.strip() else "is empty"
        raise UsageError(f"the prompt of a turn {what}", "It says what the turn is for, as a person would.")


def _new_id() -> str:
    return "cell_" + "".join(secrets.choice(_LETTERS) for _ in range(8))


def _aside(session: str, why: Aside) -> SessgitError:
    return ConflictError(f"{session[:8]} is {why}: nothing of it is recorded", _BACK[why])


def _busy(session: str) -> SessgitError:
    return ConflictError(f"another program has a turn of {session[:8]} open", "Wait for it, or go on in a fork.")
