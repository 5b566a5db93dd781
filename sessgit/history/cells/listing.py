"""The cells of a session that somebody wants to see, in the order in which they happened."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field

from sessgit import agents
from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.history.cells import turns
from sessgit.history.cells.details import cell_details
from sessgit.history.cells.graph import Node, node_at
from sessgit.model import humanize
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class CellFilter:
    """Which cells are wanted: of a type, of an operation (whatever its case), of one turn, calls that failed and
    commands that ended otherwise than with 0; of all turns up to `last`, and the last `limit` of them. What is None or
    empty chooses nothing."""

    type: str = ""
    operation: str = ""
    turn: int | None = None
    failed: bool = False
    last: int | None = None
    limit: int | None = None

    def fits(self, node: Node, shells: Collection[str]) -> bool:
        """Whether the cell is wanted, or may be: how a command ended only its lines tell."""
        cell = node.cell
        return (
            (not self.type or cell.type == self.type)
            and (not self.operation or cell.operation.lower() == self.operation.lower())
            and (not self.failed or cell.ok is False or cell.operation in shells)
        )


@dataclass(frozen=True, slots=True)
class CellListing:
    """The cells, oldest first, and the turns that they are in; `earlier` says that more of them fit."""

    nodes: list[Node]
    rows: list[Row]
    earlier: bool = False
    damage: list[str] = field(default_factory=list)


def list_cells(
    store: Store, index: Index, branch: Branch, choice: CellFilter, progress: Progress = no_progress
) -> CellListing:
    """The cells that are wanted. Turns are read from the last one back, until enough are found, and of each its cells
    alone, but where commands that failed are wanted too."""
    rows = {row.turn: row for row in index.turns(branch.name, 1, choice.last) if choice.turn in (None, row.turn)}
    shells = agents.of(branch.state).cells.SHELLS
    found: list[Node] = []
    seen: list[Row] = []
    damage: list[str] = []
    for turn in turns.read_backwards(store, index, branch, list(rows), progress):
        if choice.limit is not None and len(found) > choice.limit:
            break
        row = rows[turn.number]
        damage += reversed(turn.damage)
        nodes = [node_at(turn, ordinal) for ordinal in range(1, turn.count + 1)]
        fitting = [node for node in nodes if choice.fits(node, shells)]
        if choice.failed and fitting:
            known = cell_details(store, branch, [row], fitting)
            codes = {address: one.exit_code for address, one in known.items()}
            fitting = [node for node in fitting if node.cell.ok is False or codes.get(node.address)]
        found += reversed(fitting)
        seen += [row] if fitting else []
    shown = found[: choice.limit]
    return CellListing(shown[::-1], seen[::-1], len(shown) < len(found), damage[::-1])


def find_by_id(store: Store, index: Index, branch: Branch, cell_id: str) -> Node:
    """The cell with that id; raises NotFoundError where the branch has none, AmbiguousError where it has several."""
    short, quoted = layout.short_name(branch.name), json.dumps(cell_id)
    found = [
        node_at(turn, ordinal)
        for turn in turns.read_turns(store, index, branch)
        if quoted in turn.text
        for ordinal, own in enumerate(turn.ids, start=1)
        if own == cell_id
    ]
    if not found:
        raise NotFoundError(f"{short} has no cell {cell_id}", f"`sessgit cells {short}` lists its cells.")
    if len(found) > 1:
        places = ", ".join(f"{short}@{node.address}" for node in found[:5])
        raise AmbiguousError(f"{short} has {len(found)} cells {cell_id}", f"Name one by its address: {places}.")
    return found[0]


def cell_at(store: Store, index: Index, branch: Branch, turn: int, name: str) -> Node:
    """The cell of a turn that has that ordinal or id; raises NotFoundError where the turn has none."""
    found = turns.read_turns(store, index, branch, turn, turn)
    wanted, own = name.lstrip("0") if name.isdecimal() else name, found[0].ids if found else []
    for ordinal, cell_id in enumerate(own, start=1):
        if wanted in (cell_id, str(ordinal)):
            return node_at(found[0], ordinal)
    short = layout.short_name(branch.name)
    raise NotFoundError(
        f"turn {turn} has no cell {name}; it has {humanize.format_count(len(own), 'cell')}",
        f"`sessgit cells {short} --turn {turn}` lists them.",
    )
