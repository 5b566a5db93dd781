"""A session, as it is recorded: what a program reads of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sessgit.api import replaying
from sessgit.api.opened import OpenStore
from sessgit.api.replaying import Executors, Replayed
from sessgit.api.state import known_cells, reasons, unified
from sessgit.api.values import Cell, State, Turn
from sessgit.api.writer import PendingState
from sessgit.branch import fork as forks
from sessgit.errors import NotFoundError
from sessgit.history import documents, show
from sessgit.history.cells import listing
from sessgit.history.views import read_turn
from sessgit.model import dependency_graph
from sessgit.model.conversation.session import Session as SessionState
from sessgit.model.conversation.turn import Cell as StoredCell
from sessgit.model.program_input import Reason
from sessgit.replay.plan import ReplayChoice
from sessgit.store.sqlite.rows import Branch, Row

AnyCell = StoredCell | known_cells.RecordedCell


class RecordedSession(ABC):
    """What is recorded of a session, as of the moment when it is asked for."""

    def __init__(self, store: OpenStore, id: str) -> None:
        self.store, self.id = store, id
        self._read: _CachedCells | None = None

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    @abstractmethod
    def _is_open(self) -> bool:
        """Whether anybody has a turn of it open."""

    # What it is

    @property
    def state(self) -> SessionState:
        """What session.json says of it: name, labels, counts, tokens by model, state, stage and the rest."""
        return self._branch().state

    @property
    def tip(self) -> str:
        """Its last commit."""
        return self._branch().tip

    @property
    def name(self) -> str:
        """What a person or a program calls it, or ``""``."""
        return self.state.name

    @property
    def resume_command(self) -> str:
        """The command that continues it in the client."""
        return forks.resume_command(self.state, "")

    def turns(self) -> list[Turn]:
        """All recorded turns, oldest first."""
        return list(self)

    def __iter__(self) -> Iterator[Turn]:
        """The recorded turns, oldest first, each read when it is asked for."""
        with self.store.lock:
            branch, lives = self._branch(), self._lives()
            rows = self.store.world.index.turns(branch.name)
        for row in rows:
            with self.store.lock:
                found = self._turn(branch, row, lives)
            yield found

    # Cells

    def cells(
        self, *, type: str = "", operation: str = "", turn: int | None = None, failed: bool = False
    ) -> list[Cell]:
        """The recorded cells, oldest first: of a type, an operation, one turn, or those that failed."""
        wanted = operation.lower()
        with self.store.lock:
            every, lives = self._recorded_cells().cells, self._lives()
        return [
            _make_cell(cell, cell.turn, cell.ordinal, "interrupted" if cell.ok is not None else lives(cell.turn, cell))
            for cell in every
            if turn in (None, cell.turn)
            and type in ("", cell.type)
            and (not wanted or cell.operation.lower() == wanted)
            and not (failed and cell.ok is not False)
        ]

    def cell_document(self, cell: Cell | str) -> dict[str, Any]:
        """A recorded cell with its input, output and metadata: in the shape that other programs keep."""
        with self.store.lock:
            world, branch = self.store.world, self._branch()
            node = listing.find_by_id(world.store, world.index, branch, str(cell))
            shown = show.show_cell(world.store, world.index, branch, node.turn, str(node.ordinal))
            return documents.unified_cell(shown, self.store.prices)

    def dependency_chain(self, cell: Cell | str) -> list[str]:
        """The ids of all cells that a cell depends on, directly or not, each after those that it depends on itself.

        Raises NotFoundError for a cell that is not there.
        """
        needs = self._recorded_cells().needs
        if str(cell) not in needs:
            raise NotFoundError(f"{self.id[:8]} has no cell {cell}", f"`sessgit cells {self.id[:8]}` lists its cells.")
        return dependency_graph.all_dependencies(needs, str(cell))

    def execution_order(self) -> list[str]:
        """The ids of all recorded cells, each after those that it depends on."""
        return dependency_graph.topological_order(self._recorded_cells().needs)

    # Reasons, and the whole

    def reasoning(self) -> list[tuple[int, Reason]]:
        """All recorded reasons, oldest first, each with the number of its turn."""
        with self.store.lock:
            branch = self._branch()
            return reasons.branch_reasons(self.store.world.store, self.store.world.index, branch)

    @property
    def working_memory(self) -> Mapping[str, Any]:
        """What programs keep in mind with it: any JSON object."""
        return self.state.unified.working_memory

    def state_document(self) -> dict[str, Any]:
        """The whole state as one document: metadata, activation, files and outputs, memory, budget, counts of cells. It
        is read from the lines of all turns."""
        with self.store.lock:
            branch = self._branch()
            return unified.unified_document(self.store.world.store, self.store.world.index, branch, self.store.prices)

    # Again

    def replay(
        self, executors: Executors, cells: Sequence[Cell | str] = (), *, turn: int | None = None, chain: bool = False
    ) -> list[Replayed]:
        """Runs cells again with a program's own functions, each after those that it depends on, and compares what
        comes of them with what is recorded. Nothing is changed.

        `executors` are by operation, or by type and operation; a function gets the arguments of the cell by their
        names. All cells are meant, or those of a turn, or `cells`; with `chain` all that they depend on, too. What has
        no function is skipped: `sessgit replay --execute` runs commands, tools for files, and code of a REPL.
        """
        with self.store.lock:
            world, branch = self.store.world, self._branch()
            choice = ReplayChoice(turn, [str(cell) for cell in cells], chain, functions=executors)
            found = replaying.plan_cells(world.store, world.index, branch, choice)
        return replaying.run_cells(found, executors)

    # Beneath

    def _lives(self) -> Callable[[int, AnyCell], PendingState]:
        """What a cell without a result is: one of the last turn runs as long as somebody has that open."""
        last, held = self.state.turns, list[bool]()

        def lives(turn: int, cell: AnyCell) -> PendingState:
            if cell.ok is not None or turn != last:
                return "interrupted"
            if not held:
                held.append(self._is_open())
            return "running" if held[0] else "interrupted"

        return lives

    def _branch(self) -> Branch:
        """Its branch as it is now; whoever reads turns by it holds the lock from before on."""
        with self.store.lock:
            return self.store.world.branch(self.id)

    def _recorded_cells(self) -> _CachedCells:
        """The recorded cells, read anew where the session has moved on."""
        with self.store.lock:
            branch, read = self._branch(), self._read
            if read is None or read.tip != branch.tip:
                read = self._read = _CachedCells(branch.tip, known_cells.read_recorded_cells(self.store.world, branch))
            return read

    def _turn(self, branch: Branch, row: Row, lives: Callable[[int, AnyCell], PendingState]) -> Turn:
        told = read_turn(self.store.world.store, branch.tip, row).told
        made = tuple(
            _make_cell(cell, row.turn, ordinal, lives(row.turn, cell))
            for ordinal, cell in enumerate(told.cells, start=1)
        )
        return Turn(
            row.turn, told.prompt, told.answer, told.time, told.model, made, told.files, told.total.as_json(),
            row.prompt, row.commit,
        )  # fmt: skip


@dataclass(frozen=True)
class _CachedCells:
    """The recorded cells as of a commit."""

    tip: str
    cells: list[known_cells.RecordedCell]

    @cached_property
    def needs(self) -> dict[str, list[str]]:
        return known_cells.dependencies_by_id(self.cells)


def _make_cell(cell: AnyCell, turn: int, ordinal: int, lives: PendingState) -> Cell:
    state: State = lives if cell.ok is None else "done" if cell.ok else "failed"
    return Cell(cell.id, cell.type, cell.operation, tuple(cell.depends), state, turn, ordinal)
