"""A session, as a program holds it."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from sessgit.api.pad import Pad
from sessgit.api.turn import OpenCell, OpenTurn
from sessgit.api.values import Cell, Turn
from sessgit.errors import NotFoundError
from sessgit.model import graph
from sessgit.model.program import GivenTurn, Metadata, Outcome, Reason, Task, ToolCall
from sessgit.model.session import Session as State
from sessgit.ops import edit as edits
from sessgit.ops import fork as forks
from sessgit.ops import show
from sessgit.ops.cells import graph as cell_graph
from sessgit.ops.cells import listing
from sessgit.ops.programs import beside, reasons
from sessgit.ops.programs.held import WAIT, Held
from sessgit.ops.reading import documents
from sessgit.ops.reading.views import read_turn
from sessgit.store.index import Branch

if TYPE_CHECKING:
    from sessgit.api.store import Store


class Session:
    """One conversation. Made by `Store.create_session`, `load_session` and `fork`.

    What is written stands in the session's transcript at once, so that a crash loses nothing, and is committed when a
    turn ends, or a cell outside of turns. Any thread or process may write; one turn is open at a time, and who wants to
    open another one waits.
    """

    def __init__(self, store: Store, id: str) -> None:
        self.store, self.id = store, id
        self._held: Held | None = None
        self._pid = 0
        self._known: tuple[str, cell_graph.Graph] | None = None

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    # What it is

    @property
    def state(self) -> State:
        """What session.json says of it: name, labels, counts, tokens by model, state, stage and the rest."""
        return self._branch().state

    @property
    def tip(self) -> str:
        """Its last commit."""
        return self._branch().tip

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def resume_command(self) -> str:
        """The command that continues it in the client."""
        return forks.resume_command(self.state, "")

    def turns(self) -> list[Turn]:
        """All recorded turns, oldest first."""
        branch = self._branch()
        with self.store.lock:
            rows = self.store.world.index.turns(branch.name)
            return [self._turn(branch, row) for row in rows]

    def __iter__(self) -> Iterator[Turn]:
        """The recorded turns, oldest first, each read when it is asked for."""
        branch = self._branch()
        with self.store.lock:
            rows = self.store.world.index.turns(branch.name)
        for row in rows:
            with self.store.lock:
                found = self._turn(branch, row)
            yield found

    # Turns

    @contextmanager
    def turn(self, prompt: str, *, timeout: float = WAIT) -> Iterator[OpenTurn]:
        """Opens a turn: cells that are begun in the block belong to it, and it is committed when the block ends.

        An exception is noted as the turn's last words, and goes on.

        Raises ConflictError where another program keeps a turn open for `timeout` seconds, or a client has the session
        open; UsageError where this thread has one open.
        """
        held = self._writer()
        opened = OpenTurn(held, held.begin_turn(prompt, timeout=timeout))
        try:
            yield opened
        except BaseException as error:
            opened.say(f"Ended by {type(error).__name__}: {error}")
            raise
        finally:
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
        needs = tuple(dict.fromkeys(str(one) for one in dependencies))
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
        the exception, which goes on. For the rest as `begin_cell`."""
        begun = self.begin_cell(type=type, operation=operation, **said)
        opened, started = OpenCell(begun.id), time.perf_counter()
        try:
            yield opened
        except BaseException as error:
            taken = (time.perf_counter() - started) * 1000
            self.complete_cell(begun, error=f"{error.__class__.__name__}: {error}", execution_time_ms=round(taken, 3))
            raise
        taken = (time.perf_counter() - started) * 1000
        self.complete_cells({begun: opened.outcome(round(taken, 3))})

    def pending(self) -> list[Cell]:
        """The cells without a result: `running` ones, and those whose program is gone, which are `interrupted`."""
        return [
            Cell(one.task.id, one.task.type, one.task.operation, one.task.dependencies, one.state)
            for one in self._writer().pending()
        ]

    def cells(
        self, *, type: str = "", operation: str = "", turn: int | None = None, failed: bool = False
    ) -> list[Cell]:
        """The recorded cells, oldest first: of a type, an operation, one turn, or those that failed."""
        wanted = listing.Choice(type, operation, turn, failed)
        return [
            _cell(node.cell, node.turn, node.ordinal)
            for node in self._graph().nodes.values()
            if wanted.fits(node) and (turn is None or node.turn == turn) and (not failed or node.cell.ok is False)
        ]

    def cell_document(self, cell: Cell | str) -> dict[str, Any]:
        """A recorded cell with its input, output and metadata: `sessgit.cell/v1` of docs/json.md."""
        branch = self._branch()
        with self.store.lock:
            world = self.store.world
            node = listing.named(world.store, world.index, branch, str(cell))
            shown = show.cell(world.store, world.index, branch, node.turn, str(node.ordinal))
            return documents.cell(shown, self.store.prices)

    def dependency_chain(self, cell: Cell | str) -> list[str]:
        """The ids of all cells that a cell depends on, directly or not, each after those that it depends on itself.

        Raises NotFoundError for a cell that is not there.
        """
        needs = self._needs()
        if str(cell) not in needs:
            raise NotFoundError(f"{self.id[:8]} has no cell {cell}", f"sessgit cells {self.id[:8]} lists them.")
        return graph.chain(needs, str(cell))

    def execution_order(self) -> list[str]:
        """The ids of all recorded cells, each after those that it depends on."""
        return graph.order(self._needs())

    # What the client keeps beside a transcript

    def write_todos(self, todos: Sequence[Mapping[str, Any]]) -> None:
        """The todo list, in the client's form: each with `content`, `status` (pending, in_progress or completed) and
        `activeForm`, which is made of the content where it is missing. It is recorded with the turn.

        Raises UsageError for anything else.
        """
        beside.write_todos(self._writer(), todos)

    def create_plan(self, content: str) -> str:
        """A plan in Markdown, in a file of the client's; returns its name, three words and `.md`. It is recorded with
        the turn."""
        return beside.create_plan(self._writer(), content)

    def record_reasoning(
        self, text: str, *, kind: Literal["trace", "decision"] = "trace", evidence: Collection[Cell | str] = (),
        options: Collection[str] = (), chosen: str = "", confidence: float | None = None,
    ) -> None:  # fmt: skip
        """A step of reasoning, or a decision among options with the evidence for it: cells, or words. Outside of a turn
        it is a turn of its own."""
        said = Reason(kind, text, tuple(map(str, evidence)), tuple(options), chosen, confidence)
        reasons.record(self._writer(), said)

    def reasoning(self) -> list[tuple[int, Reason]]:
        """All recorded reasons, oldest first, each with the number of its turn."""
        branch = self._branch()
        with self.store.lock:
            return reasons.of(self.store.world.store, self.store.world.index, branch)

    # What is said of it

    @property
    def pad(self) -> Pad:
        """Its scratchpad."""
        return Pad(self)

    def edit(self, changes: edits.Changes) -> None:
        """Changes name, description, labels, stage or confidence."""
        with self.store.lock:
            world = self.store.world
            edits.edit(world.store, world.index, self.id, changes, world.now())

    # Others

    def fork(self, at: int | str | None = None, name: str = "") -> Session:
        """As `Store.fork`."""
        return self.store.fork(self, at, name)

    def end(self) -> None:
        """Records that the session has ended; whoever writes it again goes on with it."""
        self._writer().record(final=True)

    # Beneath

    def _writer(self) -> Held:
        if self._held is None or self._pid != os.getpid():
            branch = self._branch()
            with self.store.lock:
                self._held, self._pid = Held(self.store.world, branch, self.store.lock), os.getpid()
        return self._held

    def _branch(self) -> Branch:
        with self.store.lock:
            index = self.store.world.index
            index.sync(self.id)
            branch = index.branch(self.id)
        if branch is None:
            raise NotFoundError(f"{self.id[:8]} is there no more", "sessgit ls --all shows all conversations.")
        return branch

    def _graph(self) -> cell_graph.Graph:
        """The graph of the cells, read anew where the session has moved on."""
        branch = self._branch()
        known = self._known
        if known is None or known[0] != branch.tip:
            with self.store.lock:
                found = cell_graph.read(self.store.world.store, self.store.world.index, branch)
            known = self._known = (branch.tip, found)
        return known[1]

    def _needs(self) -> dict[str, list[str]]:
        nodes = self._graph().nodes
        return {
            nodes[own].cell.id: [nodes[other].cell.id for other in others]
            for own, others in self._graph().needs("causal").items()
        }

    def _turn(self, branch: Branch, row: Any) -> Turn:
        told = read_turn(self.store.world.store, branch.tip, row).told
        made = tuple(_cell(cell, row.turn, ordinal) for ordinal, cell in enumerate(told.cells, start=1))
        return Turn(
            row.turn, told.prompt, told.answer, told.time, told.model, made, told.files, told.total.as_json(),
            row.prompt, row.commit,
        )  # fmt: skip


def _cell(cell: Any, turn: int, ordinal: int) -> Cell:
    state: Literal["interrupted", "done", "failed"] = (
        "interrupted" if cell.ok is None else "done" if cell.ok else "failed"
    )
    return Cell(cell.id, cell.type, cell.operation, tuple(cell.depends), state, turn, ordinal)
