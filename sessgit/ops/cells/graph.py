"""All cells of a session and what each of them depends on.

There are three kinds of edges. *Causal* ones are stored with a turn's cells. A cell without any *follows* what was last
in the conversation before it: those cells, of its turn or of the turn before, on which nothing depended till then. And
whoever reads or edits a file depends by its *data* on the last cell that wrote it. The latter two are computed here,
whenever somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from sessgit.agents.claude import cells as claude
from sessgit.agents.claude.cells import Use
from sessgit.errors import SessgitError
from sessgit.model import graph
from sessgit.model.turn import Cell
from sessgit.ops.reading.views import Report, read_turn
from sessgit.store import layout
from sessgit.store.index import Branch, Index, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store

Kind = Literal["causal", "follows", "data"]
KINDS: tuple[Kind, ...] = ("causal", "follows", "data")
_NOTHING = Use()


@dataclass(frozen=True, slots=True)
class Node:
    """A cell at its place in the conversation, and what it is about where that is known."""

    turn: int
    ordinal: int
    cell: Cell
    use: Use = _NOTHING

    @property
    def address(self) -> str:
        """`7.3`: the turn, and the cell's place in it."""
        return f"{self.turn}.{self.ordinal}"

    @property
    def reads(self) -> str:
        """The file that it read, or ``""``; a call that failed or has no result read none."""
        return self.use.file if self.use.reads and self.cell.ok else ""

    @property
    def writes(self) -> str:
        """The file that it wrote, or ``""``."""
        return self.use.file if self.use.writes and self.cell.ok else ""


@dataclass(frozen=True, slots=True)
class Graph:
    """The cells by address, in the order in which they happened, and of each address the addresses it depends on, by
    kind. An edge leads to an earlier cell, always: what is stored otherwise is in `damage`."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[Kind, dict[str, list[str]]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    damage: list[str] = field(default_factory=list)

    def needs(self, *kinds: Kind) -> dict[str, list[str]]:
        """For each cell those that it depends on by edges of these kinds, or by any."""
        chosen = [self.edges[kind] for kind in kinds or KINDS]
        return {
            address: list(dict.fromkeys(other for edges in chosen for other in edges.get(address, ())))
            for address in self.nodes
        }


def read(
    store: Store, index: Index, branch: Branch, last: int | None = None, report: Report = lambda done, total: None
) -> Graph:
    """The graph of a branch up to a turn, or of all of it. What a rewind left behind is not in it.

    Of a turn only the lines of calls are read that name a file or a command. A damaged turn is told of in `damage`.
    """
    damage: list[str] = []
    made = build(_turns(store, branch, index.turns(branch.name, 1, last), damage, report))
    return replace(made, damage=[*damage, *made.damage])


def cells_of(store: Store, branch: Branch, row: Row, damage: list[str]) -> Sequence[Cell]:
    """The cells of a turn as they are stored; where these are damaged, as its lines tell them; `damage` is told."""
    try:
        return store.cells(branch.tip, row.turn)
    except SessgitError as error:
        damage.append(f"turn {row.turn}: {error}")
    try:
        return read_turn(store, branch.tip, row).told.cells
    except SessgitError as error:
        damage.append(f"turn {row.turn} is left out: {error}")
        return ()


def build(turns: Iterable[tuple[int, Sequence[Cell], Mapping[int, Use]]]) -> Graph:
    """The graph of turns, each given as its number, its cells, and what these are about by ordinal."""
    builder = _Builder()
    for number, cells, about in turns:
        builder.take(number, cells, about)
    return builder.made


def _turns(
    store: Store, branch: Branch, rows: Sequence[Row], damage: list[str], report: Report
) -> Iterator[tuple[int, Sequence[Cell], Mapping[int, Use]]]:
    for done, row in enumerate(rows):
        report(done, len(rows))
        cells = cells_of(store, branch, row, damage)
        yield row.turn, cells, _uses(store, branch, row, cells)


def _uses(store: Store, branch: Branch, row: Row, cells: Sequence[Cell]) -> Mapping[int, Use]:
    if not any(cell.operation in claude.FILE_TOOLS or cell.operation in claude.SHELLS for cell in cells):
        return {}
    try:
        entry = store.folder(branch.tip, row.turn).get(layout.BODY)
        body = store.repo.blob(entry[0]).split(b"\n")[:-1] if entry else []
    except SessgitError:  # the cells are known all the same, and what they are about is not
        return {}
    return claude.uses(body, cells, row.prompt, branch.state.project)


class _Builder:
    def __init__(self) -> None:
        self.made = Graph()
        self.last: dict[str, None] = {}
        """The cells on which nothing depends yet, but for data."""
        self.writers: dict[str, str] = {}

    def take(self, number: int, cells: Sequence[Cell], about: Mapping[int, Use]) -> None:
        places: dict[str, int] = {}
        for ordinal, cell in enumerate(cells, start=1):
            places.setdefault(cell.id, ordinal)
        wrong = len(places) < len(cells)
        for ordinal, cell in enumerate(cells, start=1):
            stored = [places.get(name, 0) for name in dict.fromkeys(cell.depends)]
            earlier = [other for other in stored if 0 < other < ordinal]
            wrong |= len(earlier) < len(stored)
            self._add(Node(number, ordinal, cell, about.get(ordinal, _NOTHING)), [f"{number}.{n}" for n in earlier])
        if wrong:
            self.made.damage.append(f"turn {number}: {_wrong(number, cells, places)}")

    def _add(self, node: Node, needed: Sequence[str]) -> None:
        own, edges = node.address, self.made.edges
        self.made.nodes[own] = node
        if needed:
            edges["causal"][own] = list(needed)
            for other in needed:
                self.last.pop(other, None)
        elif self.last:
            edges["follows"][own] = list(self.last)
            self.last = {}
        self.last[own] = None
        if node.reads in self.writers:
            edges["data"][own] = [self.writers[node.reads]]
        if node.writes:
            self.writers[node.writes] = own


def _wrong(number: int, cells: Sequence[Cell], places: Mapping[str, int]) -> str:
    """What cannot be of a turn's cells as they are stored."""
    if len(places) < len(cells):
        return "several of its cells have one id"
    needs = {cell.id: cell.depends for cell in cells}
    if lost := graph.unknown(needs):
        return f"{number}.{places[lost[0][0]]} depends on {lost[0][1][:20]}, which is not there"
    way = " → ".join(f"{number}.{places[name]}" for name in graph.cycle(needs))
    return f"its cells depend on each other in a circle: {way}" if way else "some of its cells depend on later ones"
