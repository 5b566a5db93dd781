"""The cells of a branch: read from the index, or from the turns' folders and then saved there; found and listed.

The index has a text for each turn: a JSON array with a record for each cell, `[id, type, operation, lines, depends,
ok]`, then `true` or `false` if a program made it or it is about something, then what it is about: `[files, command]`,
where `files` has by path `r`, `w`, `rw`, or nothing if the call failed, or null if that is not known. A path that is
not absolute is relative to the project.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.values import FILE_KINDS, Use
from sessgit.errors import AmbiguousError, DamageError, NotFoundError, SessgitError, StoreError
from sessgit.history import turn_log
from sessgit.history.turn_log import body_of, read_pieces, read_turn
from sessgit.model import humanize
from sessgit.model.conversation.content import Call, Change, Piece, Words
from sessgit.model.conversation.turn import Cell
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, counted, no_progress
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, CachedTurn, Row

if TYPE_CHECKING:
    pass

NO_USE = Use()
_FIRST_SLICE = 16
"""Turns that a search from the last one backwards reads first; then twice as many."""
_LONGEST_SUMMARY = 500
USE_FIELD = 7
"""The position of what a cell is about in its record."""


@dataclass(frozen=True)
class TurnCells:
    """The cells of a turn as the index has them; `folder` is that of the project, `damage` says what could not be
    read."""

    number: int
    records: Sequence[Sequence[Any]]
    folder: str
    damage: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[Node]:
        """All cells with their places."""
        return [Node(self.number, n, record, self.folder) for n, record in enumerate(self.records, start=1)]


class Node(NamedTuple):
    """A cell at its place in the conversation, with its record and the project's folder."""

    turn: int
    ordinal: int
    record: Sequence[Any]
    folder: str

    @property
    def address(self) -> str:
        """`7.3`: the turn, and the cell's ordinal in it."""
        return f"{self.turn}.{self.ordinal}"

    @property
    def cell(self) -> Cell:
        own, kind, operation, lines, depends, ok, *more = self.record
        return Cell(own, kind, operation, tuple(lines), tuple(depends), ok, bool(more and more[0]))

    @property
    def is_call(self) -> bool:
        """Whether it can be about something."""
        return len(self.record) > USE_FIELD

    @property
    def traced_use(self) -> Use | None:
        """What a call is about, files by absolute path; None if that is not known."""
        if self.record[USE_FIELD] is None:
            return None
        files, command = self.record[USE_FIELD]
        return Use({absolute_path(file, self.folder): access for file, access in files.items()}, command)

    @property
    def use(self) -> Use:
        """What it is about, if that is known; only the files if the call failed, or has no result."""
        return (self.traced_use if self.is_call else None) or NO_USE


def absolute_path(file: str, folder: str) -> str:
    """Return a file's path as the agent has it; one that is not absolute is relative to the folder."""
    return file if file.startswith("/") else os.path.normpath(os.path.join(folder, file))  # noqa: PTH118


# Reading


def read_turns(
    context: Context, branch: Branch, first: int = 1, last: int | None = None, *, progress: Progress = no_progress
) -> list[TurnCells]:
    """Return the cells of a branch's turns from the first to the last; `progress` counts the turns that are not in the
    index."""
    turns = context.index.cached_turns(branch.name, first, last)
    folders = dict[str, str]()  # the object id of each turn's folder, and that of the file of programs' lines
    with suppress(DamageError, StoreError):  # then each turn is read, and its own error found
        added = turn_log.program_line_files(context.store, branch.tip)
        folders = context.store.turn_folders(branch.tip, first, last)
        for row in context.index.turns(branch.name, first, last) if added else ():
            path, entry = layout.turn_folder(row.turn), added.get(turn_log.program_file_name(row.prompt))
            if entry is not None and path in folders:
                folders[path] += f"+{entry[0]}"
    own = {number: folders.get(layout.turn_folder(number), "") for number, _ in turns}
    stale = [number for number, cached in turns if cached is None or cached.folder != own[number]]
    rows = context.index.turns(branch.name, stale[0], stale[-1]) if stale else []
    rows = [row for row in rows if row.turn in {*stale}]
    read = {row.turn: _read_folder(context, branch, row, own[row.turn]) for row in counted(rows, progress)}
    cached = [(number, text) for number, text in turns if text is not None and number not in read]
    records = json.loads(f"[{','.join(turn.cells for _, turn in cached)}]")
    project = branch.state.project
    known = [TurnCells(number, one, project) for (number, _), one in zip(cached, records, strict=True)]
    return sorted([*known, *read.values()], key=lambda turn: turn.number) if read else known


def cached_turn(agent: Agent, folder: str, cells: Sequence[Cell], body: Sequence[bytes], key: str) -> CachedTurn:
    """Return what the index has of a turn: of its folder, its cells, its lines as they are stored, and its key."""
    uses = agent.cells.uses(body, cells, key) if _have_uses(agent, cells) else {}
    return CachedTurn(folder, _compact_json(cell_records(agent, cells, uses)))


def cell_records(agent: Agent, cells: Sequence[Cell], uses: Mapping[int, Use]) -> list[list[Any]]:
    """Return the records of a turn's cells; `uses` says by ordinal what they are about."""
    records = []
    for ordinal, cell in enumerate(cells, start=1):
        record: list[Any] = [cell.id, cell.type, cell.operation, list(cell.lines), list(cell.depends), cell.ok]
        use = uses.get(ordinal)
        if use is not None:
            files = {file: access if cell.ok else "" for file, access in use.files.items()}
            record += [cell.program, [files, use.command]]
        elif cell.type != "llm_call" and agent.cells.kind(cell.operation) not in FILE_KINDS:
            record += [cell.program, None]
        elif cell.program:
            record.append(True)
        records.append(record)
    return records


def _have_uses(agent: Agent, cells: Sequence[Cell]) -> bool:
    return any(agent.cells.kind(cell.operation) in ("shell", *FILE_KINDS) for cell in cells)


def _compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _read_folder(context: Context, branch: Branch, row: Row, folder: str) -> TurnCells:
    """Return the cells of a turn as they are stored, or as its lines tell them if programs added some, or if those are
    damaged; save them in the index if the turn is whole, and the same in its own commit."""
    store, agent, damage = context.store, agents.of(branch.state), list[str]()
    stored, has_more, _ = folder.partition("+")
    cells: Sequence[Cell] | None = None
    with _noted(damage, f"turn {row.turn}: "):
        cells = None if has_more else store.cells(branch.tip, row.turn)
    if cells is None:
        with _noted(damage, f"turn {row.turn} was skipped: "):
            cells = read_turn(store, branch.tip, row).cells
    uses: Mapping[int, Use] | None = {}
    if cells and _have_uses(agent, cells):
        uses = None
        with suppress(SessgitError):  # the cells are known all the same
            if has_more:
                body = [line.raw for line in body_of(store, branch.tip, row)]
            else:
                entry = store.folder(branch.tip, row.turn).get(layout.BODY)
                body = store.objects.blob(entry[0]).split(b"\n")[:-1] if entry else []
            uses = agent.cells.uses(body, cells, row.prompt)
    records = cell_records(agent, cells or (), uses or {})
    if stored and uses is not None and not damage:
        with suppress(SessgitError):
            if (store.entry(row.commit, layout.turn_folder(row.turn)) or ("",))[0] == stored:
                context.index.store_cells({row.commit: CachedTurn(folder, _compact_json(records))})
    return TurnCells(row.turn, records, branch.state.project, tuple(damage))


@contextmanager
def _noted(damage: list[str], what: str) -> Iterator[None]:
    try:
        yield
    except SessgitError as error:
        damage.append(f"{what}{error}")


# Finding and listing


@frozen
class CellFilter:
    """Which cells to list: of a type, of an operation in whatever case, of one turn, calls that `failed` or ended with
    an exit code other than 0; of all turns up to `last`, and the last `limit` of them. None or empty selects all."""

    type: str = ""
    operation: str = ""
    turn: int | None = None
    failed: bool = False
    last: int | None = None
    limit: int | None = None

    def may_fit(self, cell: Cell, agent: Agent) -> bool:
        """Return whether the cell fits, or may: only its lines tell how a command ended."""
        return (
            (not self.type or cell.type == self.type)
            and (not self.operation or cell.operation.lower() == self.operation.lower())
            and (not self.failed or cell.ok is False or agent.cells.kind(cell.operation) == "shell")
        )


@frozen
class CellListing:
    """The cells, oldest first; `earlier` says that more of them fit."""

    nodes: list[Node]
    earlier: bool = False
    damage: list[str] = field(default_factory=list)


def list_cells(context: Context, branch: Branch, choice: CellFilter, progress: Progress) -> CellListing:
    """Return the cells that fit. Turns are read from the last one backwards, until enough cells are found."""
    rows = context.index.turns(branch.name, 1, choice.last)
    numbers = [row.turn for row in rows if choice.turn in (None, row.turn)]
    agent = agents.of(branch.state)
    nodes: list[Node] = []
    damage: list[str] = []
    for turn in _read_backwards(context, branch, numbers, progress):
        if choice.limit is not None and len(nodes) > choice.limit:
            break
        damage += reversed(turn.damage)
        fitting = [node for node in turn.nodes if choice.may_fit(node.cell, agent)]
        if choice.failed and fitting:
            details = cell_details(context, branch, fitting)
            codes = {address: detail.exit_code for address, detail in details.items()}
            fitting = [node for node in fitting if node.cell.ok is False or codes.get(node.address)]
        nodes += reversed(fitting)
    shown = nodes[: choice.limit]
    return CellListing(shown[::-1], len(shown) < len(nodes), damage[::-1])


def _read_backwards(
    context: Context, branch: Branch, numbers: Sequence[int], progress: Progress
) -> Iterator[TurnCells]:
    """Yield the cells of the turns with these ascending numbers, the last one first, read as they are asked for."""
    end, size = len(numbers), _FIRST_SLICE
    while end > 0:
        progress(len(numbers) - end, len(numbers))
        part = numbers[max(0, end - size) : end]
        wanted = set(part)
        yield from (turn for turn in read_turns(context, branch, part[0], part[-1])[::-1] if turn.number in wanted)
        end, size = end - size, size * 2


def message_places(context: Context, branch: Branch) -> list[tuple[int, int]]:
    """Return the turn and the ordinal of every message: 0 is the prompt with which a turn begins, others are cells of
    the model; an answer that no model gave comes behind the last cell."""
    places = list[tuple[int, int]]()
    for turn in read_turns(context, branch):
        kinds = [node.cell.type for node in turn.nodes]
        places += [(turn.number, 0), *((turn.number, n) for n, kind in enumerate(kinds, 1) if kind == "llm_call")]
        if kinds[-1:] != ["llm_call"]:
            row = context.index.turn(branch.name, turn.number)
            if row is not None and read_turn(context.store, branch.tip, row).answer:
                places.append((turn.number, len(kinds) + 1))
    return places


def find_by_id(context: Context, branch: Branch, cell_id: str) -> Node:
    """Return the cell with that id; raises NotFoundError if the branch has none, AmbiguousError if it has several."""
    short = branch.short
    turns = (turn for turn in read_turns(context, branch) if any(record[0] == cell_id for record in turn.records))
    nodes = [node for turn in turns for node in turn.nodes if node.cell.id == cell_id]
    if not nodes:
        raise NotFoundError(f"{short} has no cell {cell_id}", f"`sessgit cells {short}` lists its cells.")
    if len(nodes) > 1:
        places = ", ".join(f"{short}@{node.address}" for node in nodes[:5])
        raise AmbiguousError(f"{short} has {len(nodes)} cells {cell_id}", f"Name one by its address: {places}.")
    return nodes[0]


def cell_at(context: Context, branch: Branch, turn: int, name: str) -> Node:
    """Return the cell of a turn with that ordinal or id; raises NotFoundError if the turn has none."""
    nodes = [node for read in read_turns(context, branch, turn, turn) for node in read.nodes]
    return nodes[cell_position(branch, turn, [node.cell for node in nodes], name)]


def cell_position(branch: Branch, turn: int, cells: Sequence[Cell], name: str) -> int:
    """Return the position in a turn's list of cells of the one that an ordinal or an id names; raises NotFoundError."""
    wanted = name.lstrip("0") if name.isdecimal() else name
    for position, cell in enumerate(cells):
        if wanted in (cell.id, str(position + 1)):
            return position
    raise NotFoundError(
        f"turn {turn} has no cell {name}; it has {humanize.format_count(len(cells), 'cell')}",
        f"`sessgit cells {branch.short} --turn {turn}` lists them.",
    )


# Details


@frozen
class CellDetail:
    """What the lines of a turn tell of a cell.

    `about` is the main argument of a call, or the first words of a message; `calls` are the tools that a message
    called, by name. `time` is RFC 3339 or empty, `seconds` None if unknown. `prompt` is that of the turn.
    """

    about: str = ""
    file: str = ""
    calls: Mapping[str, int] = field(default_factory=dict)
    time: str = ""
    seconds: float | None = None
    exit_code: int | None = None
    changes: tuple[Change, ...] = ()
    prompt: str = ""


NO_DETAIL = CellDetail()


def cell_details(
    context: Context, branch: Branch, nodes: Sequence[Node], progress: Progress = no_progress
) -> dict[str, CellDetail]:
    """Return the details of cells by address, each turn read once. Cells of damaged turns are left out."""
    by_turn: dict[int, list[Node]] = {}
    for node in nodes:
        by_turn.setdefault(node.turn, []).append(node)
    rows = context.index.turns(branch.name, min(by_turn), max(by_turn)) if by_turn else []
    details: dict[str, CellDetail] = {}
    for row in counted([row for row in rows if row.turn in by_turn], progress):
        try:
            turn, pieces = read_pieces(context.store, branch, row)
        except SessgitError:
            continue
        known = _turn_details(turn.cells, pieces, turn.prompt)
        details |= {node.address: known[node.cell.id] for node in by_turn[row.turn] if node.cell.id in known}
    return details


def _turn_details(cells: Sequence[Cell], pieces: Sequence[Piece], prompt: str) -> dict[str, CellDetail]:
    calls: dict[str, Counter[str]] = {}
    for cell in cells:
        if cell.type == "tool":
            for message in cell.depends:
                calls.setdefault(message, Counter())[cell.operation] += 1
    words: dict[int, Words] = {}
    details: dict[str, CellDetail] = {}
    for piece in pieces:
        if isinstance(piece, Call):
            about = piece.about[:_LONGEST_SUMMARY]
            details[piece.cell.id] = CellDetail(
                about, piece.file, {}, piece.time, piece.seconds, piece.exit_code, piece.changes, prompt
            )
        elif piece.ordinal and (piece.ordinal not in words or words[piece.ordinal].thinking > piece.thinking):
            words[piece.ordinal] = piece
    for ordinal, cell in enumerate(cells, start=1):
        if cell.id not in details:
            text, time = (words[ordinal].text, words[ordinal].time) if ordinal in words else ("", "")
            about = " ".join(text[:_LONGEST_SUMMARY].split())
            details[cell.id] = CellDetail(about, calls=calls.get(cell.id, {}), time=time, prompt=prompt)
    return details
