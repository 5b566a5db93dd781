"""All cells of a session and what each of them depends on.

There are three kinds of edges. *Causal* ones are stored with a turn's cells; they may lead to earlier turns. A cell
without any *follows* what was last in the conversation before it: those cells, of its turn or of turns before, on which
nothing depended till then. And whoever reads or edits a file depends by its *data* on the last cell that wrote it. The
latter two are computed here, whenever somebody asks.

Inside, a cell is its place among all, from 0, and what a question does not need is not made: a session has tens of
thousands of cells, and a person asks for a few.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

from sessgit.agents.base import Agent
from sessgit.agents.values import Use
from sessgit.history.cells import turns as stored
from sessgit.history.cells.turns import NO_USE, TurnCells
from sessgit.model import dependency_graph
from sessgit.model.conversation.turn import Cell
from sessgit.model.progress import Progress, no_progress
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch

if TYPE_CHECKING:
    from sessgit.store.store import Store

Kind = Literal["causal", "follows", "data"]
KINDS: tuple[Kind, ...] = ("causal", "follows", "data")
_LONGEST_ADDRESS = 24
"""No address of a cell that is stored has so many characters."""


@dataclass(frozen=True, slots=True)
class Node:
    """A cell at its place in the conversation, and what it is about where that is known: of a call that failed, or has
    no result, the file alone."""

    turn: int
    ordinal: int
    beside: TurnCells = field(repr=False, compare=False)
    use: Use = NO_USE

    @property
    def cell(self) -> Cell:
        return self.beside.cell(self.ordinal)

    @property
    def address(self) -> str:
        """`7.3`: the turn, and the cell's place in it."""
        return f"{self.turn}.{self.ordinal}"

    @property
    def reads(self) -> str:
        """The file that it read, or ``""``; a call that failed or has no result read none."""
        return self.use.file if self.use.reads else ""

    @property
    def writes(self) -> str:
        """The file that it wrote, or ``""``."""
        return self.use.file if self.use.writes else ""


def node_at(turn: TurnCells, ordinal: int) -> Node:
    """The cell of a turn at its place."""
    return Node(turn.number, ordinal, turn, turn.uses.get(ordinal) or NO_USE)


class Nodes(Mapping[str, Node]):
    """The cells by address, in the order in which they happened, each made when it is asked for."""

    def __init__(self) -> None:
        self.turns: list[TurnCells] = []
        self.starts: list[int] = []
        """For each turn the place of its first cell, or of the one that comes next."""
        self.count = 0
        self._numbers: dict[int, int] = {}
        self._made: dict[int, Node] = {}

    def add(self, turn: TurnCells) -> int:
        """Takes a turn's cells after all others; the place of the first."""
        start = self.count
        self._numbers[turn.number] = len(self.turns)
        self.turns.append(turn)
        self.starts.append(start)
        self.count += turn.count
        return start

    def at(self, place: int) -> Node:
        """The cell at a place."""
        node = self._made.get(place)
        if node is None:
            turn, ordinal = self._of(place)
            node = self._made[place] = node_at(turn, ordinal)
        return node

    def address(self, place: int) -> str:
        turn, ordinal = self._of(place)
        return f"{turn.number}.{ordinal}"

    def place(self, address: str) -> int:
        """Where the cell at an address stands; raises KeyError where there is none."""
        number, _, ordinal = address.partition(".")
        if not (number.isdecimal() and ordinal.isdecimal() and len(address) < _LONGEST_ADDRESS):
            raise KeyError(address)
        index = self._numbers.get(int(number), -1)
        place = self.starts[index] + int(ordinal) - 1 if index >= 0 else self.count
        if place >= self.count or self.address(place) != address:
            raise KeyError(address)
        return place

    def _of(self, place: int) -> tuple[TurnCells, int]:
        index = bisect_right(self.starts, place) - 1
        return self.turns[index], place - self.starts[index] + 1

    def __getitem__(self, address: str) -> Node:
        return self.at(self.place(address))

    def __iter__(self) -> Iterator[str]:
        for turn in self.turns:
            yield from (f"{turn.number}.{ordinal}" for ordinal in range(1, turn.count + 1))

    def __len__(self) -> int:
        return self.count

    def __contains__(self, address: object) -> bool:
        try:
            return isinstance(address, str) and self.place(address) >= 0
        except KeyError:
            return False


class Edges(Mapping[str, list[str]]):
    """The edges of one kind: for each address that has any, those that it depends on."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.places: dict[int, Sequence[int]] = {}

    def __getitem__(self, address: str) -> list[str]:
        return [self.nodes.address(other) for other in self.places[self.nodes.place(address)]]

    def __iter__(self) -> Iterator[str]:
        return map(self.nodes.address, self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class Graph:
    """The cells by address, in the order in which they happened, and of each address the addresses it depends on, by
    kind. An edge leads to an earlier cell, always: what is stored otherwise is in `damage`."""

    nodes: Nodes = field(default_factory=Nodes)
    damage: list[str] = field(default_factory=list)

    @cached_property
    def edges(self) -> dict[Kind, Edges]:
        return {kind: Edges(self.nodes) for kind in KINDS}

    def needs(self, *kinds: Kind) -> dict[str, list[str]]:
        """For each cell those that it depends on by edges of these kinds, or by any."""
        names = list(self.nodes)
        return {
            names[place]: [names[other] for other in dict.fromkeys(wanted)]
            for place, wanted in enumerate(self.places(*kinds))
        }

    def places(self, *kinds: Kind) -> list[Sequence[int]]:
        """The same by places: all of them are lower than the cell's own. One may stand twice."""
        found: list[Sequence[int]] = [()] * len(self.nodes)
        for kind in kinds or KINDS:
            for place, others in self.edges[kind].places.items():
                found[place] = [*found[place], *others] if found[place] else others
        return found

    @cached_property
    def uses(self) -> dict[int, Use | None]:
        """What calls are about by their places, in order; None of a call of which that is not known."""
        return {
            start + ordinal - 1: use
            for turn, start in zip(self.nodes.turns, self.nodes.starts, strict=True)
            for ordinal, use in turn.uses.items()
        }


def read_graph(
    store: Store, index: Index, branch: Branch, last: int | None = None, progress: Progress = no_progress
) -> Graph:
    """The graph of a branch up to a turn, or of all of it. What a rewind left behind is not in it.

    A damaged turn is told of in `damage`. `progress` is told of turns that the index does not know yet.
    """
    return _build_in_order(stored.read_turns(store, index, branch, last=last, progress=progress))


def build_graph(agent: Agent, turns: Iterable[tuple[int, Sequence[Cell], Mapping[int, Use]]]) -> Graph:
    """The graph of turns, each given as its number, its cells, and what these are about by ordinal."""
    return _build_in_order(stored.turn_cells(agent, *turn) for turn in turns)


def _build_in_order(turns: Iterable[TurnCells]) -> Graph:
    builder, unread = _Builder(), list[str]()
    for turn in turns:
        builder.take(turn)
        unread += turn.damage
    builder.made.damage[:0] = unread
    return builder.made


class _Builder:
    def __init__(self) -> None:
        self.made = Graph()
        self.last: dict[int, None] = {}
        """The cells on which nothing depends yet, but for data."""
        self.writers: dict[str, int] = {}
        self.ids: dict[str, int] = {}
        """The last cell with each id, of the first so many turns."""
        self.known = 0

    def take(self, turn: TurnCells) -> None:
        start = self.made.nodes.add(turn)
        self._link(start, _needs_within_turn(turn.needs) or self._resolved(turn))
        data = self.made.edges["data"].places
        for ordinal, file, done in turn.files():
            if "r" in done and file in self.writers:
                data[start + ordinal - 1] = (self.writers[file],)
            if "w" in done:
                self.writers[file] = start + ordinal - 1

    def _link(self, start: int, needs: Sequence[Sequence[int] | None]) -> None:
        """Makes the edges of a turn: ordinals of its own cells count from 1, and what is less is in turns before. What
        a program says depends on nothing follows nothing either."""
        causal, follows, last = self.made.edges["causal"].places, self.made.edges["follows"].places, self.last
        before = start - 1
        for place, needed in enumerate(needs, start=start):
            if needed:
                causal[place] = others = [before + ordinal for ordinal in needed]
                for other in others:
                    last.pop(other, None)
            elif last and needed is not None:
                follows[place] = list(last)
                last.clear()
            last[place] = None

    def _resolved(self, turn: TurnCells) -> list[list[int] | None]:
        """The same of cells that depend on some of earlier turns, or in a way that cannot be; that is told."""
        nodes = self.made.nodes
        for number in range(self.known, len(nodes.turns) - 1):
            self.ids |= {name: nodes.starts[number] + n for n, name in enumerate(nodes.turns[number].ids)}
        self.known = len(nodes.turns)
        start, found, lost = nodes.starts[-1], list[list[int] | None](), list[tuple[int, str]]()
        for ordinal, cell in enumerate(turn.cells, start=1):
            wanted = dict.fromkeys(cell.depends)
            places = dict.fromkeys(self.ids[name] for name in wanted if name in self.ids)
            lost += [(ordinal, name) for name in wanted if name not in self.ids]
            needed = [place - start + 1 for place in places]
            found.append(None if cell.program and not cell.depends else needed)
            self.ids[cell.id] = start + ordinal - 1
        if said := _find_damage(turn, lost):
            self.made.damage.append(f"turn {turn.number}: {said}")
        return found


def _needs_within_turn(needs: stored.Needs | None) -> Sequence[Sequence[int] | None] | None:
    """The needs of a turn's cells where all of them lie in the turn."""
    if needs is None or any(isinstance(other, str) for wanted in needs for other in wanted or ()):
        return None
    return cast("Sequence[Sequence[int] | None]", needs)


def _find_damage(turn: TurnCells, lost: Sequence[tuple[int, str]]) -> str:
    """What cannot be of a turn's cells as they are stored, some of which depend on what is not before them; or
    ``""``."""
    needs = {cell.id: cell.depends for cell in turn.cells}
    if len(needs) < turn.count:
        return "several of its cells have the same id"
    for ordinal, name in lost:
        if name not in needs:
            return f"{turn.number}.{ordinal} depends on {name[:20]}, which is not before it"
    if not lost:
        return ""
    places = {cell.id: ordinal for ordinal, cell in enumerate(turn.cells, start=1)}
    way = " → ".join(f"{turn.number}.{places[name]}" for name in dependency_graph.find_cycle(needs))
    return f"its cells depend on each other in a circle: {way}" if way else "some of its cells depend on later ones"
