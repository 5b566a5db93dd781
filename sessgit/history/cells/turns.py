"""The cells of turns, out of the index where it knows them, else out of the turns' folders; then it knows them.

The index has three texts for each turn, in JSON, such that the graph of many turns is made of them quickly:

- `cells`: of each cell the id, type, operation, lines, the ids that it depends on, ok, and true if it is a program's;
- `needs`: of each cell those that it depends on, where a number is the ordinal of an earlier cell of the turn, and what
  is none of these is an id; null is a program's cell that depends on nothing. Where the cells depend on each other in a
  way that cannot be the whole is null. Turns have few such texts: most are a message and a call in turn;
- `uses`: of each call the ordinal; where it is known what the call is about the ordinal, the file, what was done to it
  (`r`, `w`, `rw`, or nothing if the call failed) and the command. A path that is not absolute lies in the project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.values import Use
from sessgit.errors import SessgitError
from sessgit.history.views import read_turn
from sessgit.model.conversation.turn import Cell
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import cell_cache
from sessgit.store.sqlite.cell_cache import CachedTurn
from sessgit.store.sqlite.rows import Branch, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store

Needs = Sequence[Sequence[int | str] | None]
NO_USE = Use()
_BATCH_SIZE = 500
"""So many turns are read before what they hold is remembered: an interruption loses no more."""
_FIRST_SLICE = 16
"""So many turns are asked for first by those who go back from the last one until they have enough; then twice as
many."""


@dataclass(frozen=True)
class TurnCells:
    """The cells of a turn, `count` of them, in order.

    `needs` is None where the cells depend on each other in a way that cannot be. `about` has the use of each call by
    its ordinal, None where nothing is known of it. `damage` tells what could not be read.
    """

    number: int
    text: str
    needs: Needs | None
    about: Sequence[Any]
    folder: str
    damage: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self._told) if self.needs is None else len(self.needs)

    @cached_property
    def _told(self) -> list[Any]:
        told: list[Any] = json.loads(self.text)
        return told

    @property
    def cells(self) -> list[Cell]:
        return [_cached_cell(*told) for told in self._told]

    def cell(self, ordinal: int) -> Cell:
        """The cell of that ordinal."""
        return _cached_cell(*self._told[ordinal - 1])

    @property
    def ids(self) -> list[str]:
        return [told[0] for told in self._told]

    @cached_property
    def uses(self) -> dict[int, Use | None]:
        """What calls are about by their ordinals: a file by its absolute path, or a command; None of a call of which
        that is not known, while one for a file whose arguments tell none is left out."""
        return dict(self._use(told) for told in self.about)

    def files(self) -> Iterator[tuple[int, str, str]]:
        """Of the calls that are about a file the ordinal, the file, and what was done: `r`, `w`, `rw` or nothing."""
        for told in self.about:
            if not isinstance(told, int) and told[1]:
                yield told[0], self._path(told[1]), told[2]

    def _use(self, told: Any) -> tuple[int, Use | None]:
        if isinstance(told, int):
            return told, None
        ordinal, file, done, command = told
        return ordinal, Use(self._path(file), "r" in done, "w" in done, command)

    def _path(self, file: str) -> str:
        if not file or file.startswith("/"):
            return file
        return os.path.normpath(os.path.join(self.folder, file))  # noqa: PTH118 - as the agent has it


def read_turns(
    store: Store,
    index: Index,
    branch: Branch,
    first: int = 1,
    last: int | None = None,
    *,
    progress: Progress = no_progress,
) -> list[TurnCells]:
    """The cells of a branch's turns from the first to the last; `progress` is told how many had to be read from their
    folders, and how many are."""
    found = cell_cache.branch_turns(index, branch.name, first, last)
    folders = cell_cache.turn_folders(store, branch.tip, first, last)
    unknown = [number for number, known in found if _is_uncached(known, number, folders)]
    rows = {row.turn: row for row in _turn_rows(index, branch, unknown)}
    reader = _Reader(store, index, branch, folders)
    fresh: dict[int, TurnCells] = {}
    for done, number in enumerate(unknown):
        progress(done, len(unknown))
        if number in rows:
            fresh[number] = reader.read(rows[number])
    reader.remember()
    kept = [(number, known) for number, known in found if known is not None and number not in fresh]
    loaded = zip(kept, _parse_needs_and_uses([known for _, known in kept]), strict=True)
    project = branch.state.project
    made = [TurnCells(number, known.cells, *told, project) for (number, known), told in loaded]
    return sorted([*made, *fresh.values()], key=lambda turn: turn.number) if fresh else made


def read_cached_turns(store: Store, index: Index, branch: Branch, first: int = 1) -> list[tuple[int, list[Any]]]:
    """The numbers of a branch's turns from the first on, and of each turn the cells as the first text has them.

    For whoever wants nothing else of thousands of cells: it takes half the time of `read_turns`.
    """
    found = cell_cache.branch_turns(index, branch.name, first, None)
    folders = cell_cache.turn_folders(store, branch.tip, first, None)
    if any(_is_uncached(known, number, folders) for number, known in found):
        return [(turn.number, turn._told) for turn in read_turns(store, index, branch, first)]
    parsed = json.loads(f"[{','.join([known.cells for _, known in found if known is not None])}]")
    return list(zip([number for number, _ in found], parsed, strict=True))


def read_backwards(
    store: Store, index: Index, branch: Branch, numbers: Sequence[int], progress: Progress = no_progress
) -> Iterator[TurnCells]:
    """The cells of the turns with these numbers, which ascend, the last one first, read as they are asked for."""
    end, size = len(numbers), _FIRST_SLICE
    while end > 0:
        progress(len(numbers) - end, len(numbers))
        part = numbers[max(0, end - size) : end]
        wanted = set(part)
        yield from (
            one for one in reversed(read_turns(store, index, branch, part[0], part[-1])) if one.number in wanted
        )
        end, size = end - size, size * 2


def cached_turn(agent: Agent, folder: str, cells: Sequence[Cell], body: Sequence[bytes], key: str) -> CachedTurn:
    """What the index remembers of a turn: of its folder, its cells, its lines as they are stored, and its key."""
    return _make_cached_turn(
        agent, folder, cells, agent.cells.uses(body, cells, key, "") if _has_uses(agent, cells) else {}
    )


def turn_cells(agent: Agent, number: int, cells: Sequence[Cell], uses: Mapping[int, Use]) -> TurnCells:
    """The cells of a turn that is not read from a store; files are absolute paths."""
    made = _make_cached_turn(agent, "", cells, uses)
    return TurnCells(number, made.cells, *_parse_needs_and_uses([made])[0], "/")


def stored_cells(store: Store, branch: Branch, row: Row, damage: list[str]) -> Sequence[Cell]:
    """The cells of a turn as they are stored; where these are damaged, as its lines tell them; `damage` is told."""
    try:
        return store.cells(branch.tip, row.turn)
    except SessgitError as error:
        damage.append(f"turn {row.turn}: {error}")
    try:
        return read_turn(store, branch.tip, row).told.cells
    except SessgitError as error:
        damage.append(f"turn {row.turn} was skipped: {error}")
        return ()


class _Reader:
    def __init__(self, store: Store, index: Index, branch: Branch, folders: Mapping[str, str]) -> None:
        self.store, self.index, self.branch, self.folders = store, index, branch, folders
        self.agent = agents.of(branch.state)
        self.new: dict[str, CachedTurn] = {}

    def read(self, row: Row) -> TurnCells:
        """The turn out of its folder; what is whole, and the same in the commit that tells of the turn, is remembered
        by that one."""
        damage: list[str] = []
        cells = stored_cells(self.store, self.branch, row, damage)
        uses = self._uses(row, cells)
        folder = self.folders.get(layout.turn_folder(row.turn), "")
        made = _make_cached_turn(self.agent, folder, cells, uses or {})
        if uses is not None and not damage and folder and self._told_by(row) == folder:
            self.new[row.commit] = made
            if len(self.new) == _BATCH_SIZE:
                self.remember()
        return TurnCells(
            row.turn, made.cells, *_parse_needs_and_uses([made])[0], self.branch.state.project, tuple(damage)
        )

    def remember(self) -> None:
        if self.new:
            cell_cache.store_turns(self.index, self.new)
            self.new = {}

    def _uses(self, row: Row, cells: Sequence[Cell]) -> Mapping[int, Use] | None:
        if not _has_uses(self.agent, cells):
            return {}
        try:
            entry = self.store.folder(self.branch.tip, row.turn).get(layout.BODY)
            body = self.store.repo.blob(entry[0]).split(b"\n")[:-1] if entry else []
        except SessgitError:  # the cells are known all the same, and what they are about is not
            return None
        return self.agent.cells.uses(body, cells, row.prompt, "")

    def _told_by(self, row: Row) -> str:
        try:
            entry = self.store.repo.entry(self.store.tree(row.commit), layout.turn_folder(row.turn))
        except SessgitError:
            return ""
        return entry[0] if entry else ""


def _is_uncached(known: CachedTurn | None, number: int, folders: Mapping[str, str]) -> bool:
    return known is None or known.folder != folders.get(layout.turn_folder(number))


def _turn_rows(index: Index, branch: Branch, numbers: Sequence[int]) -> list[Row]:
    return index.turns(branch.name, numbers[0], numbers[-1]) if numbers else []


def _has_uses(agent: Agent, cells: Sequence[Cell]) -> bool:
    return any(cell.operation in agent.cells.FILE_TOOLS or cell.operation in agent.cells.SHELLS for cell in cells)


def _make_cached_turn(agent: Agent, folder: str, cells: Sequence[Cell], uses: Mapping[int, Use]) -> CachedTurn:
    told = [
        [cell.id, cell.type, cell.operation, cell.lines, cell.depends, cell.ok, *([True] if cell.program else [])]
        for cell in cells
    ]
    about = [
        _use_json(ordinal, cell, uses.get(ordinal))
        for ordinal, cell in enumerate(cells, start=1)
        if ordinal in uses or (cell.type != "llm_call" and cell.operation not in agent.cells.FILE_TOOLS)
    ]
    return CachedTurn(folder, _compact_json(told), _compact_json(_need_ordinals(cells)), _compact_json(about))


def _use_json(ordinal: int, cell: Cell, use: Use | None) -> Any:
    if use is None:
        return ordinal
    done = ("r" * use.reads + "w" * use.writes) if cell.ok else ""
    return [ordinal, use.file, done, use.command]


def _need_ordinals(cells: Sequence[Cell]) -> Needs | None:
    places: dict[str, int] = {}
    found: list[list[int | str] | None] = []
    for ordinal, cell in enumerate(cells, start=1):
        needed = [places.get(name, name) for name in dict.fromkeys(cell.depends)]
        found.append(None if cell.program and not needed else needed)
        places[cell.id] = ordinal
    is_late = any(name in places for needed in found for name in needed or ())
    return None if is_late or len(places) < len(cells) else found


def _parse_needs_and_uses(known: Sequence[CachedTurn]) -> list[tuple[Needs | None, Sequence[Any]]]:
    """The needs and the uses of many turns: each text that comes again is parsed once, the others all together."""
    shapes = {text: json.loads(text) for text in {one.needs for one in known}}
    about = json.loads(f"[{','.join(one.uses for one in known)}]")
    return [(shapes[one.needs], said) for one, said in zip(known, about, strict=True)]


def _cached_cell(  # noqa: PLR0913, PLR0917 - what a cell is
    own: str, kind: str, operation: str, lines: list[int], depends: list[str], ok: bool | None, program: bool = False
) -> Cell:
    return Cell(own, kind, operation, tuple(lines), tuple(depends), ok, program)


def _compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
