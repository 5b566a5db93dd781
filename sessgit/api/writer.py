"""A session that a program holds: turns and cells written to its transcript, and recorded.

The transcript is the log that is written ahead: a cell is in the file when it begins, so that a crash leaves it there
as a pending one, and the store is brought level when a turn ends, or a cell outside of turns. One turn is open at a
time, whoever writes: another process or thread that wants to open one waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from sessgit.agents.base import Chain
from sessgit.api import validation
from sessgit.api.state import known_cells
from sessgit.api.state.known_cells import KnownCells
from sessgit.api.transcript_log import LOCK_TIMEOUT, Log
from sessgit.errors import ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.model import dependency_graph, program_input
from sessgit.model.program_input import GivenTurn, Outcome, Part, Step, Task, ToolCall
from sessgit.record import open_turns
from sessgit.record.context import RecordContext
from sessgit.record.open_turns import OpenTurnLock
from sessgit.store.sqlite.rows import Branch

_GRACE_SECONDS = 0.5
"""Seconds that the end of a cell waits for whoever only looks whether its turn is open."""
_POLL_SECONDS = 0.01
_MOST_NAMED = 3

PendingState = Literal["running", "interrupted"]


@dataclass(frozen=True, slots=True)
class PendingCell:
    """A cell without a result: `running` where somebody holds its turn, else `interrupted`."""

    task: Task
    state: PendingState


class Writer:
    """Writes one session. Several threads may call it at once; so may other processes with one of their own.

    `lock` is held while the world's store and index are used; whoever uses them elsewhere holds it too.
    """

    def __init__(self, world: RecordContext, branch: Branch, lock: threading.RLock) -> None:
        self.log = Log(world, branch)
        self.id = branch.name
        self._lock = lock
        self._turn: OpenTurnLock | None = None
        self._known = KnownCells()
        self._is_known = False
        """Whether the ids of the cells before the open turn were read: nobody else adds any while it is open."""

    @property
    def world(self) -> RecordContext:
        return self.log.world

    @world.setter
    def world(self, world: RecordContext) -> None:
        self.log.world = world

    # Turns

    def begin_turn(self, prompt: str, *, timeout: float = LOCK_TIMEOUT) -> str:
        """Opens a turn, and returns its prompt's uuid. Whoever has one open elsewhere is waited for.

        Raises UsageError where the same thread has one open, ConflictError after `timeout` seconds or where a client
        has the session open.
        """
        validation.check_prompt(prompt)
        with self._writing(timeout) as turn:
            self.log.append(lambda chain: [*self._gone(chain), *chain.prompt(prompt, self.world.now())])
            turn.key = self.log.end.key
            self._turn = turn
            return turn.key

    def end_turn(self, answer: str = "", model: str = "", tokens: Mapping[str, int] | None = None) -> int:
        """Closes the open turn, with an answer where there is one, and records it; returns its number.

        Where cells in it run that other threads began, it stays open for these, and ends with the last of them.
        """
        with self._lock:
            turn = self._opened()
            try:
                validation.check_words(answer, model, tokens or {})
                if answer.strip():
                    self.log.append(lambda chain: chain.words(answer, self.world.now(), model, tokens), turn.key)
                self.log.record()
                return self.log.number(turn.key)
            finally:
                turn.detach_thread()
                if not turn.cells:
                    self._let_go(turn)

    def add(self, parts: Sequence[Part], model: str = "") -> None:
        """Adds what was said and done to the open turn; raises UsageError, with nothing added, as `begin` does."""
        validation.check_parts(parts)
        with self._lock:
            self._add(self._opened(), parts, model)

    def note(self, given: GivenTurn) -> None:
        """Adds what a turn has to the one that this process has open; where there is none, it is a turn of its own."""
        validation.check_turn(given)
        with self._lock:
            if self._turn is not None:
                self._add(self._turn, given.parts, given.model)
                return
        self.whole(given)

    def whole(self, given: GivenTurn) -> int:
        """A turn that is given as a whole, recorded; returns its number. For the rest as `begin_turn` and `begin`."""
        validation.check_turn(given)
        with self._writing(LOCK_TIMEOUT):
            given = replace(given, parts=self._identified(given.parts))
            at = given if given.time is not None else replace(given, time=self.world.now())
            self.log.append(lambda chain: [*self._gone(chain), *chain.turn(at)])
            self.log.record()
            return self.log.number(self.log.end.key)

    # Cells

    def begin(self, tasks: Sequence[Task]) -> list[Task]:
        """Begins cells, each after those that it depends on, and returns them with their ids, in the order given.

        Outside of a turn they make one for themselves, which ends with the last of them. Raises UsageError, with
        nothing begun, where one is no cell, where an id is taken, where one depends on a cell that is not there, or
        where they depend on each other in a cycle; its message has the path.
        """
        checked = [program_input.check_task(task) for task in tasks]
        if not checked:
            return []
        with self._writing(LOCK_TIMEOUT, joining=True) as turn:
            ready = self._named(checked)
            by_id = {task.id: task for task in ready}
            order = dependency_graph.topological_order({task.id: task.dependencies for task in ready})
            now, prompt = self.world.now(), "" if turn.key else _cells_title(ready)

            def lines(chain: Chain) -> list[bytes]:
                opened = [*self._gone(chain), *chain.prompt(prompt, now)] if prompt else []
                return opened + [line for one in order for line in chain.call(by_id[one], now)]

            self.log.append(lines, turn.key)
            if prompt:
                turn.key, turn.loose = self.log.end.key, True
                self._turn = turn
            turn.begin(by_id)
            return ready

    def complete(self, outcomes: Mapping[str, Outcome]) -> int:
        """Ends cells that were begun; returns the number of the turn where that was recorded, else 0.

        Raises NotFoundError where one is no cell of the last turn, ConflictError where it has a result already, or
        where another process has its turn open.
        """
        for outcome in outcomes.values():
            validation.check_outcome(outcome)
        if not outcomes:
            return 0
        with self._writing(_GRACE_SECONDS, joining=True, closing=True) as turn:
            try:
                self.log.append(lambda chain: self._ended(chain, outcomes))
            except SessgitError:
                if turn.loose and self.log.end.key not in ("", turn.key):
                    self._let_go(turn)  # the session went on without it
                raise
            if not turn.key:  # they are what a crash left
                self.log.record()
                return self.log.number(self.log.end.key)
            for cell in outcomes:
                turn.cells.pop(cell, None)
            if turn.loose and not turn.cells:
                return self.end_turn()
            if self.world.rules.granularity == "cell":
                self.log.record()
            return 0

    def pending(self) -> list[PendingCell]:
        """The cells of the last turn that have no result."""
        with self._lock:
            if self.log.end.read():
                tasks = list(self.log.end.pending.values())
            else:  # the client deletes what is old; it comes back when the session goes on
                tasks = known_cells.pending_tasks(self.world, self.log.branch())
        state: PendingState = "running" if tasks and self.is_open() else "interrupted"
        return [PendingCell(task, state) for task in tasks]

    def is_open(self) -> bool:
        """Whether anybody has a turn of the session open: a program, or a client that has the session."""
        return open_turns.is_open(self.world.store.beside, self.id) or self.log.is_live()

    def finish(self) -> None:
        """Records that the session has ended; cells outside of turns stay pending. Raises UsageError where a turn is
        open in this process."""
        with self._lock:
            if self._turn is not None and not self._turn.loose:
                raise UsageError(f"a turn of {self.id[:8]} is open", "It ends when its `with` block ends.")
            if self._turn is not None:
                self._let_go(self._turn)
            self.log.finish()

    def slug(self, word: str) -> None:
        """From now on every line names the plan of that name, as the client's lines do."""
        with self._lock:
            self.log.end.chain.say_plan(word)

    # Who writes

    @contextmanager
    def _writing(self, timeout: float, *, joining: bool = False, closing: bool = False) -> Iterator[OpenTurnLock]:
        """Holds the session's turn, for a new one that has no key yet, and lets go of it unless that is opened.

        With `joining` the one that this process has open will do, with `closing` even if it is about to end.
        """
        deadline = time.monotonic() + timeout
        while True:
            with self._lock:
                turn = self._turn
                if turn is not None and joining and (closing or not turn.closing or turn.is_mine):
                    yield turn
                    return
                new = open_turns.open_turn(self.world.store.beside, self.id)
                if new is not None:
                    try:
                        self._is_known = False
                        self.log.check_open()
                        self.log.bring_level()
                        yield new
                    finally:
                        if self._turn is not new:
                            open_turns.close_turn(self.world.store.beside, self.id, new)
                    return
                if turn is not None and turn.loose:
                    turn.closing = True  # or cells of others would keep it open for ever
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"another program has a turn of {self.id[:8]} open", "Wait for it, or continue in a fork."
                )
            time.sleep(_POLL_SECONDS)

    def _opened(self) -> OpenTurnLock:
        if self._turn is None:
            raise UsageError("no turn is open", "Open one: `with session.turn(PROMPT):`")
        return self._turn

    def _let_go(self, turn: OpenTurnLock) -> None:
        self._turn = None
        open_turns.close_turn(self.world.store.beside, self.id, turn)

    # Cells

    def _add(self, turn: OpenTurnLock, parts: Sequence[Part], model: str) -> None:
        now, named = self.world.now(), self._identified(parts)
        self.log.append(lambda chain: [line for part in named for line in chain.part(part, model, now)], turn.key)
        turn.begin(part.task.id for part in named if isinstance(part, Step) and part.outcome is None)

    def _identified(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """The parts, of which every cell has an id; for the rest as `_named`. Raises UsageError for the id of a call
        that another one has."""
        if any(isinstance(part, ToolCall) and part.id for part in parts):
            self._load_known_cells()
            validation.check_calls(parts, self._is_called)
        tasks = iter(self._named([part.task for part in parts if isinstance(part, Step)]))
        return tuple(replace(part, task=next(tasks)) if isinstance(part, Step) else part for part in parts)

    def _gone(self, chain: Chain) -> list[bytes]:
        """The ends of cells that the last turn left pending: whoever opens the next turn holds the lock of theirs."""
        return self._ends(chain, dict.fromkeys(self.log.end.pending, Outcome(error=self.log.agent.programs.GONE)))

    def _ended(self, chain: Chain, outcomes: Mapping[str, Outcome]) -> list[bytes]:
        for cell in outcomes:
            if cell in self.log.end.pending:
                continue
            if cell in self.log.end.begun:
                raise ConflictError(f"{cell} already has a result", "A result cannot be overwritten.")
            raise NotFoundError(
                f"{cell} is not a cell of the last turn of {self.id[:8]}", "A closed turn takes no more results."
            )
        return self._ends(chain, outcomes)

    def _ends(self, chain: Chain, outcomes: Mapping[str, Outcome]) -> list[bytes]:
        now, begun = self.world.now(), self.log.end.begun
        return [line for one in outcomes for line in chain.outcome(one, outcomes[one], now, begun[one].operation)]

    def _named(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks with ids; raises UsageError where they cannot be."""
        if any(task.id or task.dependencies for task in tasks):
            self._load_known_cells()
        return validation.check_tasks(tasks, self._is_taken, self.id)

    def _load_known_cells(self) -> None:
        if not self._is_known:
            self._known.read(self.world, self.log.branch())
            self._is_known = True

    def _is_taken(self, cell: str) -> bool:
        """Whether the session has a cell with that id."""
        return cell in self.log.end.begun or cell in self._known.ids

    def _is_called(self, name: str) -> bool:
        """Whether the session has a call with that id."""
        return (
            name in self.log.end.called
            or self._known.has_call(name)
            or self._is_taken(name.removeprefix(self.log.agent.programs.call_id("")))
        )


def _cells_title(tasks: Sequence[Task]) -> str:
    """The prompt of a turn that cells make for themselves."""
    told = ", ".join(f"{task.source or task.type}: {task.operation}" for task in tasks[:_MOST_NAMED])
    return told if len(tasks) <= _MOST_NAMED else f"{told} and {len(tasks) - _MOST_NAMED} more"
