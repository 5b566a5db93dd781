"""A session as a program uses it: what is recorded of it, and turns and cells to write."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from sessgit.api.opened import OpenStore
from sessgit.api.values import Cell, Turn, check_several, recorded_cell
from sessgit.api.writer import LOCK_TIMEOUT, Writer
from sessgit.branch import edit as edits
from sessgit.branch import fork as forks
from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import client_files, resolve
from sessgit.history.cells import read_turns
from sessgit.history.turn_log import read_pieces, read_turn
from sessgit.model import dependency_graph, program_input
from sessgit.model.conversation.content import Words
from sessgit.model.conversation.session import Session as SessionState
from sessgit.model.foreign_session import ForeignSession
from sessgit.model.ids import check_name
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Part, Reason, Saying, Task, ToolCall
from sessgit.model.progress import Progress, no_progress
from sessgit.record import catch_up
from sessgit.store.index import Branch, Row

if TYPE_CHECKING:
    from sessgit.api.pad import Pad
    from sessgit.api.replaying import Executors, Replayed
    from sessgit.store.context import Context

Stage = Literal["", "gathering", "shaping", "critiquing", "synthesized"]


class OpenTurn:
    """A turn inside its `with` block. `number` is 0 until the turn has ended and is recorded."""

    def __init__(self, writer: Callable[[], Writer], key: str) -> None:
        self.key = key
        self.number = 0
        self._writer = writer
        self._is_over = False
        self._answer: tuple[str, str, Mapping[str, int]] = ("", "", {})

    def answer(self, text: str, *, model: str = "", tokens: Mapping[str, int] | None = None) -> None:
        """Set the last text of the turn; `tokens` counts what it used of `model`, by kind. The last answer counts.

        Raises UsageError, and keeps the answer before, if an argument is invalid.
        """
        program_input.check(GivenTurn("", (), text, model, tokens=tokens or {}))
        self._answer = (text, model, tokens or {})

    def say(self, text: str, *, model: str = "") -> None:
        """Add text before the answer."""
        self.add(Saying(text, model))

    def add(self, *parts: Part, model: str = "") -> None:
        """Add tool calls, whole cells, reasons and texts: `ToolCall`, `Step`, `Reason`, `Saying`.

        Raises UsageError, and adds nothing, if one of them is invalid.
        """
        self._writer().add(parts, model)

    def end(self) -> None:
        """End the turn and record it. The end of the block does the same."""
        if not self._is_over:
            self._is_over = True
            self.number = self._writer().end_turn(*self._answer)

    def fail(self, error: BaseException) -> None:
        """End the turn with a note of the exception after the answer; errors of that are suppressed."""
        text, model, _ = self._answer
        with suppress(SessgitError):
            if not self._is_over and text.strip():
                self.say(text, model=model)
        self._answer = (f"Ended by {type(error).__name__}: {error}".removesuffix(": "), "", {})
        with suppress(SessgitError):
            self.end()


class OpenCell:
    """A cell inside its `with` block; set `result` to its result."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.result: Any = None
        self.model = ""
        self.tokens: Mapping[str, int] = {}

    def __str__(self) -> str:
        return self.id


class Session:
    """One conversation. `Store.create_session`, `load_session` and `fork` return it.

    Everything is appended to the session's transcript at once, so that a crash loses nothing. It is committed when a
    turn ends, and cells outside turns within 100 ms, or before anything is read. Any thread or process may write. Only
    one turn can be open at a time; another writer waits for it.
    """

    def __init__(self, store: OpenStore, id: str) -> None:
        self.store, self.id = store, id
        self._cells: tuple[str, list[Cell]] = ("", [])
        """The recorded cells as of a commit."""
        self._cached_writer: Writer | None = None
        self._pid = 0

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def __str__(self) -> str:
        return self.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the session, if this object wrote to it."""
        if self._cached_writer is None or not self._cached_writer.wrote or self._pid != os.getpid():
            return
        try:
            self.end()
        except SessgitError:
            if error is None:
                raise

    # What is recorded

    @property
    def state(self) -> SessionState:
        """The content of session.json: name, labels, counts, tokens by model, state, stage and the rest."""
        return self._branch().state

    @property
    def tip(self) -> str:
        """The last commit."""
        return self._branch().tip

    @property
    def name(self) -> str:
        """The name that a person or a program gave it, or ``""``."""
        return self.state.name

    @property
    def resume_command(self) -> str:
        """The command that continues it in the client."""
        return client_files.resume_command(self.state, "")

    def turns(self) -> list[Turn]:
        """Return all recorded turns, oldest first."""
        return list(self)

    def __iter__(self) -> Iterator[Turn]:
        """Yield the recorded turns, oldest first, reading each when it is needed."""
        with self._reading() as (context, branch):
            rows = context.index.turns(branch.name)
        for row in rows:
            with self.store.lock:
                turn = self._turn(branch, row)
            yield turn

    def cells(
        self, *, type: str = "", operation: str = "", turn: int | None = None, failed: bool = False
    ) -> list[Cell]:
        """Return the recorded cells, oldest first: all, or those of a type, an operation or a turn, or failed ones."""
        with self.store.lock:
            last = self.state.turns
            return [
                cell
                for cell in self._with_running(self._recorded_cells(), last)
                if turn in (None, cell.turn)
                and type in ("", cell.type)
                and operation.lower() in ("", cell.operation.lower())
                and not (failed and cell.state != "failed")
            ]

    def cell_document(self, cell: Cell | str) -> dict[str, Any]:
        """Return a recorded cell with its input, output and metadata, in the form that other programs store."""
        from sessgit.history import cells as recorded_cells
        from sessgit.history import show

        with self._reading() as (context, branch):
            node = recorded_cells.find_by_id(context, branch, str(cell))
            shown = show.show_cell(context, branch, node.turn, str(node.ordinal))
            return show.unified_cell(shown, context.prices)

    def dependency_chain(self, cell: Cell | str) -> list[str]:
        """Return the ids of all cells that a cell depends on, directly or not, dependencies first.

        Raises NotFoundError if the session has no such cell.
        """
        dependencies = self._dependencies()
        if str(cell) not in dependencies:
            raise NotFoundError(f"{self.id[:8]} has no cell {cell}", f"`sessgit cells {self.id[:8]}` lists its cells.")
        chain = dependency_graph.reachable(dependencies, str(cell))
        return [other for other in dependencies if other in chain]

    def execution_order(self) -> list[str]:
        """Return the ids of all recorded cells, dependencies first."""
        return list(self._dependencies())

    def reasoning(self) -> list[tuple[int, Reason]]:
        """Return all recorded reasons, oldest first, each with the number of its turn."""
        with self._reading() as (context, branch):
            return [
                (row.turn, piece.reason)
                for row in context.index.turns(branch.name)
                for piece in read_pieces(context.store, branch, row)[1]
                if isinstance(piece, Words) and piece.reason is not None
            ]

    @property
    def working_memory(self) -> Mapping[str, Any]:
        """The JSON object that programs store with the session."""
        return self.state.unified.working_memory

    def state_document(self) -> dict[str, Any]:
        """Return the whole state as one document: metadata, activation, files and outputs, memory, budget, counts of
        cells. Reads the lines of all turns."""
        from sessgit.api import documents

        with self._reading() as (context, branch):
            return documents.state_document(context, branch, context.prices)

    def snapshot(self, system: str = "", progress: Progress = no_progress) -> ForeignSession:
        """Return everything recorded of the session as one value, which `Store.import_sessions` takes, except rewound
        turns; for a session that was imported from `system`, with the ids that it has there."""
        from sessgit.api import foreign_sessions

        with self._reading() as (context, branch):
            return foreign_sessions.session_snapshot(context, branch, system, progress)

    def transcript(self) -> bytes:
        """Return the session in the client's own form."""
        from sessgit.branch import restore

        with self.store.lock:
            return restore.rebuild_file(self.store.context.store, self.id).data

    def cell_documents(self) -> list[dict[str, Any]]:
        """Return all cells in the form that other programs store, each with its dependencies and dependents."""
        from sessgit.api import documents
        from sessgit.history.cell_graph import read_graph

        with self._reading() as (context, branch):
            graph = read_graph(context, branch)
            return list(documents.cell_documents(context, branch, graph, graph.nodes.values()))

    def cell_index(self) -> dict[str, Any]:
        """Return the index of the cells in the form that other programs store: dependencies, dependents and order."""
        from sessgit.history.cell_graph import index_document, read_graph

        with self._reading() as (context, branch):
            return index_document(self.id, read_graph(context, branch))

    def replay(
        self, executors: Executors, cells: Sequence[Cell | str] = (), *, turn: int | None = None, chain: bool = False
    ) -> list[Replayed]:
        """Run cells again with functions of the program, dependencies first, and compare the results with the recorded
        ones. Nothing is changed.

        `executors` maps an operation, or a type and an operation, to a function that takes the cell's arguments by
        name. Runs all cells, or those of a turn, or `cells`; with `chain` also everything that they depend on. A cell
        without a function is skipped: `sessgit replay --execute` runs commands, file tools and REPL code.
        """
        from sessgit.api import replaying
        from sessgit.replay import plan

        with self._reading() as (context, branch):
            choice = plan.ReplayChoice(turn, [str(cell) for cell in cells], chain)
            chosen = plan.plan_replay(context, branch, choice)
        return replaying.run_cells(chosen, executors)

    # Turns

    @contextmanager
    def turn(self, prompt: str, *, timeout: float = LOCK_TIMEOUT) -> Iterator[OpenTurn]:
        """Open a turn for a `with` block: cells begun in the block belong to it, and it is committed at the end.

        An exception is noted as the turn's last text, and raised.

        Raises ConflictError if another program keeps a turn open for `timeout` seconds, or a client has the session
        open; UsageError if this thread has a turn open.
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
        """Record a whole turn in the client's form, and return its number. `tokens` counts what the answer used of
        `model`, by kind: `input`, `output`, `cache_read`, `cache_write`."""
        return self._writer().whole(GivenTurn(prompt, tuple(tool_calls), response, model, tokens=tokens or {}))

    # Cells

    def begin_cell(  # noqa: PLR0913 - what a cell is
        self, *, type: str, operation: str, args: Mapping[str, Any] | None = None, source: str = "",
        dependencies: Collection[Cell | str] = (), id: str = "", depth: int = 0, model: str = "",
    ) -> Cell:  # fmt: skip
        """Begin a cell; outside a turn it becomes a turn.

        Raises UsageError, and begins nothing, if a dependency is not a cell of the session, the id is used, or the
        arguments cannot be written as JSON.
        """
        needs = tuple(dict.fromkeys(str(one) for one in check_several("dependencies", dependencies)))
        return self.begin_cells([Task(type, operation, args or {}, source, needs, id, None, Metadata(depth, model))])[0]

    def begin_cells(self, tasks: Sequence[Task]) -> list[Cell]:
        """Begin several cells at once, which may depend on each other by the ids of the tasks.

        Raises UsageError, and begins nothing, if they depend on each other in a cycle; its message has the path.
        """
        return [
            Cell(task.id, task.type, task.operation, task.dependencies, "running")
            for task in self._writer().begin(tasks)
        ]

    def complete_cell(
        self, cell: Cell | str, result: Any = None, *, error: str | None = None, execution_time_ms: float | None = None,
        model: str = "", tokens: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """End a cell with any JSON value, or an error. A cell that a crash left pending can be ended until another turn
        begins.

        Raises NotFoundError if the last turn has no such cell, ConflictError if the cell has a result.
        """
        self.complete_cells({cell: Outcome(result, error, execution_time_ms, model, tokens or {})})

    def complete_cells(self, outcomes: Mapping[Cell | str, Outcome]) -> None:
        """End several cells at once; outside turns in one commit."""
        self._writer().complete({str(cell): outcome for cell, outcome in outcomes.items()})

    @contextmanager
    def cell(self, operation: str, *, type: str = "repl", **arguments: Any) -> Iterator[OpenCell]:
        """Run a `with` block as a cell. It ends with `OpenCell.result` and the time taken, or with the exception, which
        is raised; a result that cannot be written as JSON raises one too. `arguments` are those of `begin_cell`."""
        begun = self.begin_cell(type=type, operation=operation, **arguments)
        opened, started = OpenCell(begun.id), time.perf_counter()
        try:
            yield opened
            taken = round((time.perf_counter() - started) * 1000, 3)
            self.complete_cell(begun, opened.result, execution_time_ms=taken, model=opened.model, tokens=opened.tokens)
        except BaseException as error:
            taken = round((time.perf_counter() - started) * 1000, 3)
            with suppress(SessgitError):  # the block may have ended it itself
                self.complete_cell(begun, error=f"{error.__class__.__name__}: {error}", execution_time_ms=taken)
            raise

    def pending(self) -> list[Cell]:
        """Return the cells of the last turn without a result: `running`, or `interrupted` if their program is gone."""
        return self._writer().pending()

    def write_todos(self, todos: Sequence[Mapping[str, Any]]) -> None:
        """Write the todo list in the client's form, recorded with the turn. Each todo has a `content`, a `status`
        (pending, in_progress or completed) and an `activeForm`, by default the content.

        Raises UsageError for anything else.
        """
        self._writer().write_todos(todos)

    def create_plan(self, content: str) -> str:
        """Write a plan in Markdown to a file of the client, recorded with the turn; return its name, three words and
        `.md`."""
        return self._writer().create_plan(content)

    def record_reasoning(
        self, text: str, *, kind: Literal["trace", "decision"] = "trace", evidence: Collection[Cell | str] = (),
        options: Collection[str] = (), chosen: str = "", confidence: float | None = None,
    ) -> None:  # fmt: skip
        """Record a step of reasoning, or a decision among options, with cells or texts as evidence. Outside a turn it
        becomes a turn."""
        known, choices = check_several("evidence", evidence), check_several("options", options)
        self._writer().reason(Reason(kind, text, tuple(map(str, known)), tuple(choices), chosen, confidence))

    # State

    @property
    def pad(self) -> Pad:
        """The scratchpad."""
        from sessgit.api.pad import Pad

        return Pad(self.store, self.id)

    def edit(
        self, *, name: str | None = None, description: str | None = None, add_labels: Collection[str] = (),
        remove_labels: Collection[str] = (), stage: Stage | None = None, confidence: float | None = None,
    ) -> None:  # fmt: skip
        """Change authored fields in one commit; None leaves a field unchanged, ``""`` removes name, description or
        stage.

        Raises UsageError for an invalid value, ConflictError if another session has the name.
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
            edits.edit_session(self.store.context, self.id, changes)

    def update_state(  # noqa: PLR0913 - the parts of a state
        self, *, activation: Mapping[str, Any] | None = None, budget: Mapping[str, Any] | None = None,
        trajectory: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None,
        working_memory: Mapping[str, Any] | None = None, remember: Mapping[str, Any] | None = None,
        forget: Collection[str] = (), more: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Change the parts of the state that are for programs, in one commit, which `sessgit undo` reverts.

        Sets the given keys of `activation`, `budget`, `trajectory` and `metadata`, which docs/format.md describes; None
        removes one. `working_memory` replaces the memory; then `remember` sets and `forget` removes single keys of it.
        `more` adds to `total_recursive_calls` and `cost_usd` of the budget, also while other programs do.

        Raises UsageError, and changes nothing, if a key or a value is invalid, or the memory would be too large.
        """
        from sessgit.api import program_state

        named = {"activation": activation, "budget": budget, "trajectory": trajectory, "metadata": metadata}
        parts: dict[str, Any] = {key: dict(values) for key, values in named.items() if values is not None}
        if working_memory is not None:
            parts["context"] = {"working_memory": working_memory}
        request = program_state.StateRequest(parts, remember or {}, tuple(check_several("forget", forget)), more or {})
        with self.store.lock:
            program_state.change_state(self.store.context, self.id, request)

    def fork(self, at: int | str | None = None, name: str = "") -> Session:
        """Return a new session with the turns up to `at`; see `Store.fork`."""
        return fork_session(self.store, self.id, at, name)

    def end(self) -> None:
        """Record that the session has ended; writing continues it. Cells that run outside turns are interrupted.

        Raises UsageError if a turn is open.
        """
        self._writer().finish()

    # Private

    def _branch(self) -> Branch:
        """Return its branch as it is now."""
        with self._reading() as (_, branch):
            return branch

    @contextmanager
    def _reading(self) -> Iterator[tuple[Context, Branch]]:
        """Hold the lock; yield the open store and the session's branch as it is now."""
        with self.store.lock:
            context = self.store.context
            branch = context.branch(self.id)
            if context.store.paths.waiting_cells(self.id).exists():
                catch_up.catch_up(context, branch.state)
                branch = context.branch(self.id)
            yield context, branch

    def _recorded_cells(self) -> list[Cell]:
        """Return the recorded cells, oldest first; reads them again only if the session has changed."""
        branch = self._branch()
        if self._cells[0] != branch.tip:
            context = self.store.context
            nodes = (node for turn in read_turns(context, branch) for node in turn.nodes)
            self._cells = branch.tip, [recorded_cell(node.cell, node.turn, node.ordinal) for node in nodes]
        return self._cells[1]

    def _dependencies(self) -> dict[str, list[str]]:
        """Return by the id of each cell the earlier cells that it depends on."""
        with self.store.lock:
            cells = self._recorded_cells()
        out: dict[str, list[str]] = {}
        for cell in cells:
            out[cell.id] = [other for other in dict.fromkeys(cell.dependencies) if other in out]
        return out

    def _with_running(self, cells: Sequence[Cell], last: int) -> Sequence[Cell]:
        """Return the cells; those of turn `last` without a result are `running` while a turn of the session is open."""
        pending = {cell for cell in cells if cell.turn == last and cell.state == "interrupted"}
        if not pending or not self._writer().is_open():
            return cells
        return [replace(cell, state="running") if cell in pending else cell for cell in cells]

    def _turn(self, branch: Branch, row: Row) -> Turn:
        turn = read_turn(self.store.context.store, branch.tip, row)
        cells = [recorded_cell(cell, row.turn, ordinal) for ordinal, cell in enumerate(turn.cells, start=1)]
        return Turn(
            row.turn, turn.prompt, turn.answer, turn.time, turn.model,
            tuple(self._with_running(cells, branch.state.turns)), turn.files, turn.total.as_json(), row.prompt,
            row.commit,
        )  # fmt: skip

    def _writer(self) -> Writer:
        with self.store.lock:
            if self._cached_writer is None or self._pid != os.getpid():
                self._cached_writer = Writer(self.store, self._branch())
                self._pid = os.getpid()
            # The settings may have changed, or the store was reopened.
            self._cached_writer.context = self.store.current()
            return self._cached_writer


def fork_session(store: OpenStore, address: str, at: int | str | None = None, name: str = "") -> Session:
    """Return a new session with the turns of an address up to `at`; see `Store.fork`."""
    with store.lock:
        target = store.target(address, None if at is None else str(at))
        if name:
            edits.check_name_free(store.context.index, check_name(name), "", target.state.project)
        point = resolve.fork_point(store.context, target)
        plan = forks.ForkPlan(str(uuid.uuid4()), name, store.context.now(), store.homes)
        fork = forks.fork_session(store.context.store, target.state, point, plan)
        store.context.index.sync(fork.state.id)
    return Session(store, fork.state.id)
