"""A session, as a program holds it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Literal, Self

from sessgit.api.opened import OpenStore
from sessgit.api.pad import Pad
from sessgit.api.recorded import RecordedSession
from sessgit.api.state import plans, reasons
from sessgit.api.state import session_state as states
from sessgit.api.transcript_log import LOCK_TIMEOUT
from sessgit.api.turn import OpenCell, OpenTurn
from sessgit.api.values import Cell, check_several
from sessgit.api.writer import Writer
from sessgit.branch import edit as edits
from sessgit.branch import fork as forks
from sessgit.errors import SessgitError, UsageError
from sessgit.history import fork_point
from sessgit.model.address import check_name
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Reason, Task, ToolCall

Stage = Literal["", "gathering", "shaping", "critiquing", "synthesized"]


class Session(RecordedSession):
    """One conversation. Made by `Store.create_session`, `load_session` and `fork_session`.

    What is written stands in the session's transcript at once, so that a crash loses nothing, and is committed when a
    turn ends, or a cell outside of turns. Any thread or process may write; one turn is open at a time, and who wants to
    open another one waits.
    """

    def __init__(self, store: OpenStore, id: str) -> None:
        super().__init__(store, id)
        self._held: Writer | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends the session, if this object wrote to it."""
        if self._held is None or not self._held.log.wrote or self._pid != os.getpid():
            return
        try:
            self.end()
        except SessgitError:
            if error is None:
                raise

    # Turns

    @contextmanager
    def turn(self, prompt: str, *, timeout: float = LOCK_TIMEOUT) -> Iterator[OpenTurn]:
        """Opens a turn: cells that are begun in the block belong to it, and it is committed when the block ends.

        An exception is noted as the turn's last words, and goes on.

        Raises ConflictError where another program keeps a turn open for `timeout` seconds, or a client has the session
        open; UsageError where this thread has one open.
        """
        opened = OpenTurn(self._writer, self._writer().begin_turn(prompt, timeout=timeout))
        try:
            yield opened
        except BaseException as error:
            opened.fail(error)
            raise
        opened.end()

    def record_turn(
        self, prompt: str, response: str = "", tool_calls: Sequence[ToolCall] = (), *, model: str = "",
        tokens: Mapping[str, int] | None = None,
    ) -> int:  # fmt: skip
        """A whole turn, in the client's own form; returns its number. `tokens` are what the answer took of `model`, by
        kind: `input`, `output`, `cache_read`, `cache_write`."""
        return self._writer().whole(GivenTurn(prompt, tuple(tool_calls), response, model, tokens=tokens or {}))

    # Cells

    def begin_cell(  # noqa: PLR0913 - what a cell is
        self, *, type: str, operation: str, args: Mapping[str, Any] | None = None, source: str = "",
        dependencies: Collection[Cell | str] = (), id: str = "", depth: int = 0, model: str = "",
    ) -> Cell:  # fmt: skip
        """Begins a cell; outside of a turn it is a turn of its own.

        Raises UsageError, with nothing begun, where a dependency is no cell of the session, where the id is taken, or
        where the arguments cannot be written as JSON.
        """
        needs = tuple(dict.fromkeys(str(one) for one in check_several("dependencies", dependencies)))
        return self.begin_cells([Task(type, operation, args or {}, source, needs, id, None, Metadata(depth, model))])[0]

    def begin_cells(self, tasks: Sequence[Task]) -> list[Cell]:
        """Begins several cells at once, which may depend on each other by ids that the tasks name.

        Raises UsageError, with nothing begun, where they depend on each other in a cycle; its message has the path.
        """
        begun = self._writer().begin(tasks)
        return [Cell(one.id, one.type, one.operation, one.dependencies, "running") for one in begun]

    def complete_cell(
        self, cell: Cell | str, result: Any = None, *, error: str | None = None, execution_time_ms: float | None = None,
        model: str = "", tokens: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Ends a cell with any JSON value, or with an error. A cell that a crash left pending can be ended too, as long
        as no other turn began.

        Raises NotFoundError where there is no such cell in the last turn, ConflictError where it has a result.
        """
        self.complete_cells({cell: Outcome(result, error, execution_time_ms, model, tokens or {})})

    def complete_cells(self, outcomes: Mapping[Cell | str, Outcome]) -> None:
        """Ends several cells in one step, in one commit outside of turns."""
        self._writer().complete({str(cell): outcome for cell, outcome in outcomes.items()})

    @contextmanager
    def cell(self, operation: str, *, type: str = "repl", **said: Any) -> Iterator[OpenCell]:
        """A cell that ends with its block: with what `OpenCell.result` was set to and the time that it took, or with
        the exception, which goes on. A result that cannot be written as JSON is such an exception. For the rest as
        `begin_cell`."""
        begun = self.begin_cell(type=type, operation=operation, **said)
        opened, started = OpenCell(begun.id), time.perf_counter()
        try:
            yield opened
        except BaseException as error:
            taken = (time.perf_counter() - started) * 1000
            with suppress(SessgitError):  # the block may have ended it itself
                failed = f"{error.__class__.__name__}: {error}"
                self.complete_cell(begun, error=failed, execution_time_ms=round(taken, 3))
            raise
        taken = round((time.perf_counter() - started) * 1000, 3)
        try:
            self.complete_cells({begun: opened.outcome(taken)})
        except UsageError as error:  # what it came to is nothing that can be written
            with suppress(SessgitError):
                self.complete_cell(begun, error=f"{error.__class__.__name__}: {error}", execution_time_ms=taken)
            raise

    def pending(self) -> list[Cell]:
        """The cells without a result: `running` ones, and those whose program is gone, which are `interrupted`."""
        return [
            Cell(one.task.id, one.task.type, one.task.operation, one.task.dependencies, one.state)
            for one in self._writer().pending()
        ]

    # What the client keeps beside a transcript

    def write_todos(self, todos: Sequence[Mapping[str, Any]]) -> None:
        """The todo list, in the client's form: each with `content`, `status` (pending, in_progress or completed) and
        `activeForm`, which is made of the content where it is missing. It is recorded with the turn.

        Raises UsageError for anything else.
        """
        plans.write_todos(self._writer(), todos)

    def create_plan(self, content: str) -> str:
        """A plan in Markdown, in a file of the client's; returns its name, three words and `.md`. It is recorded with
        the turn."""
        return plans.create_plan(self._writer(), content)

    def record_reasoning(
        self, text: str, *, kind: Literal["trace", "decision"] = "trace", evidence: Collection[Cell | str] = (),
        options: Collection[str] = (), chosen: str = "", confidence: float | None = None,
    ) -> None:  # fmt: skip
        """A step of reasoning, or a decision among options with the evidence for it: cells, or words. Outside of a turn
        it is a turn of its own."""
        known, choices = check_several("evidence", evidence), check_several("options", options)
        said = Reason(kind, text, tuple(map(str, known)), tuple(choices), chosen, confidence)
        reasons.record_reason(self._writer(), said)

    # What is said of it

    @property
    def pad(self) -> Pad:
        """Its scratchpad."""
        return Pad(self)

    def edit(
        self, *, name: str | None = None, description: str | None = None, add_labels: Collection[str] = (),
        remove_labels: Collection[str] = (), stage: Stage | None = None, confidence: float | None = None,
    ) -> None:  # fmt: skip
        """Changes what is said of it, in one commit; None leaves a thing as it is, ``""`` takes name, description or
        stage away.

        Raises UsageError for what cannot be, ConflictError where the name is another session's.
        """
        added, removed = check_several("add_labels", add_labels), check_several("remove_labels", remove_labels)
        labels = edits.parse_labels([f"+{one}" for one in added] + [f"-{one}" for one in removed])
        changes = edits.EditChanges(
            name,
            None if description is None else edits.parse_description(description),
            *labels,
            None if stage is None else edits.parse_stage(stage or "none"),
            None if confidence is None else edits.parse_confidence(f"{confidence!r}"),
        )
        with self.store.lock:
            world = self.store.world
            edits.edit_session(world.store, world.index, self.id, changes, world.now())

    def update_state(  # noqa: PLR0913 - the parts of a state
        self, *, activation: Mapping[str, Any] | None = None, budget: Mapping[str, Any] | None = None,
        trajectory: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None,
        working_memory: Mapping[str, Any] | None = None, remember: Mapping[str, Any] | None = None,
        forget: Collection[str] = (), more: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Changes the parts of its state that are for programs, in one commit, which `sessgit undo` takes back.

        Of `activation`, `budget`, `trajectory` and `metadata` the keys that are named are set, as docs/format.md has
        them, and None takes one away. `working_memory` is the whole memory; `remember` sets single keys of it after
        that, and `forget` takes some away. `more` is added to `total_recursive_calls` and `cost_usd` of the budget,
        whoever else adds to them.

        Raises UsageError, with nothing changed, where a key or a value is wrong, or the memory would be too large.
        """
        said = {"activation": activation, "budget": budget, "trajectory": trajectory, "metadata": metadata}
        parts: dict[str, Any] = {key: dict(given) for key, given in said.items() if given is not None}
        if working_memory is not None:
            parts["context"] = {"working_memory": working_memory}
        with self.store.lock:
            world = self.store.world
            wanted = states.StateRequest(parts, remember or {}, tuple(check_several("forget", forget)), more or {})
            states.change_state(world.store, world.index, self.id, wanted, world.now())

    # Others

    def fork(self, at: int | str | None = None, name: str = "") -> Session:
        """A new session with its turns up to `at`, as `Store.fork` makes it."""
        return fork_session(self.store, self.id, at, name)

    def end(self) -> None:
        """Records that the session has ended; whoever writes it again goes on with it. Cells that are running outside
        of turns are interrupted.

        Raises UsageError where a turn is open.
        """
        self._writer().finish()

    # Beneath

    def _is_open(self) -> bool:
        return self._writer().is_open()

    def _writer(self) -> Writer:
        with self.store.lock:
            if self._held is None or self._pid != os.getpid():
                self._held, self._pid = Writer(self.store.world, self._branch(), self.store.lock), os.getpid()
            self._held.world = self.store.world  # another one where the settings changed, or the store was closed
            return self._held


def fork_session(store: OpenStore, address: str, at: int | str | None = None, name: str = "") -> Session:
    """A new session with the turns of an address up to `at`, as `Store.fork` says."""
    with store.lock:
        found = store.target(address, None if at is None else str(at))
        if name:
            edits.check_name_free(store.world.index, check_name(name), "", found.state.project)
        point = fork_point.fork_point(store.world.store, store.world.index, found)
        plan = forks.ForkPlan(str(uuid.uuid4()), name, store.world.now(), store.config)
        made = forks.fork_session(store.world.store, found.state, point, plan)
        store.world.index.sync(made.state.id)
    return Session(store, made.state.id)
