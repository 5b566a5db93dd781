"""The dependencies between all cells of a session.

There are three kinds of edges. *Causal* ones are stored with a turn's cells; they may lead to earlier turns. A cell
without any *follows* the last cells before it on which no other depended until then. A cell that reads or edits a file
depends by its *data* on the last cell that wrote it. The latter two are computed here.

A session has tens of thousands of cells and a user asks for a few, so a cell is its number among all, from 0, and a
`Node` is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from sessgit.agents.values import Use
from sessgit.errors import NotFoundError
from sessgit.history import cells
from sessgit.history.cells import USE_FIELD, Node, TurnCells
from sessgit.model import dependency_graph
from sessgit.model.progress import Progress, no_progress
from sessgit.store.context import Context
from sessgit.store.index import Branch

Kind = Literal["causal", "follows", "data"]
KINDS: tuple[Kind, ...] = ("causal", "follows", "data")
INDEX_VERSION = "1.0"


class Nodes(Mapping[str, Node]):
    """The cells by address, in the order in which they happened."""

    def __init__(self, turns: Iterable[TurnCells] = ()) -> None:
        self._turns = {turn.number: turn for turn in turns}
        self.addresses = [
            f"{number}.{ordinal}" for number, turn in self._turns.items() for ordinal in range(1, len(turn.records) + 1)
        ]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {address: place for place, address in enumerate(self.addresses)}

    def place(self, address: str) -> int:
        """Return the number of the cell at an address; raises KeyError if there is none."""
        return self._places[address]

    def at(self, place: int) -> Node:
        """Return the cell with a number."""
        return self[self.addresses[place]]

    def __getitem__(self, address: str) -> Node:
        if address not in self._places:
            raise KeyError(address)
        turn, _, ordinal = address.partition(".")
        return Node(int(turn), int(ordinal), self._turns[int(turn)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.addresses)

    def __len__(self) -> int:
        return len(self.addresses)

    def __contains__(self, address: object) -> bool:
        return address in self._places


@dataclass(frozen=True)
class Graph:
    """The cells of turns, and by kind of edge the numbers of the earlier cells that each depends on. Stored
    dependencies that cannot be are told in `damage`."""

    turns: Sequence[TurnCells]
    nodes: Nodes
    edges: Mapping[Kind, dict[int, Sequence[int]]]
    damage: list[str]

    @cached_property
    def uses(self) -> dict[int, Use | None]:
        """What calls are about by their numbers, in order; None of a call of which that is not known."""
        found = ((turn.use(n), turn.is_call(n)) for turn in self.turns for n in range(1, len(turn.records) + 1))
        return {place: use for place, (use, is_call) in enumerate(found) if is_call}

    def needs(self, *kinds: Kind) -> dict[str, list[str]]:
        """Return by address the cells that each depends on, by edges of these kinds or by any."""
        addresses = self.nodes.addresses
        return {
            addresses[place]: [addresses[other] for other in dict.fromkeys(others)]
            for place, others in enumerate(self.places(*kinds))
        }

    def places(self, *kinds: Kind) -> list[Sequence[int]]:
        """Return the same by the cells' numbers; one may occur twice."""
        found: list[Sequence[int]] = [()] * len(self.nodes)
        for kind in kinds or KINDS:
            for place, others in self.edges[kind].items():
                found[place] = [*found[place], *others] if found[place] else others
        return found


@dataclass(frozen=True, slots=True)
class CellChain:
    """The cells on the way from a cell, by address in the order of execution, without the cell itself.

    Causal and data edges lead to those in `near`; to the others only because they came before in the conversation.
    """

    graph: Graph
    start: Node
    down: bool
    cells: Sequence[str]
    near: frozenset[str]


def read_graph(context: Context, branch: Branch, last: int | None = None, progress: Progress = no_progress) -> Graph:
    """Return the graph of a branch up to a turn, or of all of it, without what a rewind left behind."""
    return build_graph(cells.read_turns(context, branch, last=last, progress=progress))


def build_graph(turns: Sequence[TurnCells]) -> Graph:
    """Return the graph of the turns."""
    causal: dict[int, Sequence[int]] = {}
    follows: dict[int, Sequence[int]] = {}
    data: dict[int, Sequence[int]] = {}
    graph = Graph(
        turns, Nodes(turns), {"causal": causal, "follows": follows, "data": data},
        [damage for turn in turns for damage in turn.damage],
    )  # fmt: skip
    ids: dict[str, int] = {}
    writers: dict[str, int] = {}
    unneeded: dict[int, None] = {}  # the cells on which no other depends yet, except for data
    place = 0
    for turn in turns:
        lost = False
        for record in turn.records:
            depends = record[4]
            needed = [ids[name] for name in dict.fromkeys(depends) if name in ids] if depends else []
            if len(needed) < len(depends):
                lost = lost or any(name not in ids for name in depends)
            if needed:
                causal[place] = needed
                for other in needed:
                    unneeded.pop(other, None)
            elif unneeded and (depends or not any(record[6:7])):  # a program says so if a cell depends on nothing
                follows[place] = list(unneeded)
                unneeded.clear()
            unneeded[place] = None
            ids[record[0]] = place
            if len(record) > USE_FIELD and record[USE_FIELD] and record[USE_FIELD][0]:
                file, access = turn.path(record[USE_FIELD][0]), record[USE_FIELD][1]
                if "r" in access and file in writers:
                    data[place] = (writers[file],)
                if "w" in access:
                    writers[file] = place
            place += 1
        if lost or len({record[0] for record in turn.records}) < len(turn.records):
            graph.damage.extend(_find_damage(turn, ids, place))
    return graph


def cell_chain(graph: Graph, address: str, *, down: bool) -> CellChain:
    """Return the chain of the cell at an address, up to what it depends on or down to what depends on it."""
    if address not in graph.nodes:
        raise NotFoundError(f"the store has no cell {address}", "`sessgit cells` lists the cells.")
    walk = dependency_graph.dependents_by_number if down else dependency_graph.dependencies_by_number
    start, addresses = graph.nodes.place(address), graph.nodes.addresses
    every, near = (
        [addresses[place] for place in walk(needs, start)] for needs in (graph.places(), graph.places("causal", "data"))
    )
    return CellChain(graph, graph.nodes[address], down, every, frozenset(near))


def index_document(session: str, graph: Graph) -> dict[str, Any]:
    """Return the graph in the form of other programs, by cell ids and without kinds of edges: each cell with what it
    depends on and what depends on it, the ends of the graph, and an order of execution. Of several cells with one id
    the first stands for all."""
    needs: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    ids = {address: node.cell.id for address, node in graph.nodes.items()}
    for address, others in graph.needs().items():
        if ids[address] not in needs:
            needs[ids[address]] = list(dict.fromkeys(ids[other] for other in others))
            types[ids[address]] = graph.nodes[address].cell.type
    dependents = dependency_graph.dependents(needs)
    return {
        "version": INDEX_VERSION,
        "session_id": session,
        "cells": {
            own: {"type": types[own], "dependencies": others, "dependents": dependents[own]}
            for own, others in needs.items()
        },
        "roots": dependency_graph.roots(needs),
        "leaves": dependency_graph.leaves(needs),
        "execution_order": dependency_graph.topological_order(needs),
    }


def _find_damage(turn: TurnCells, ids: Mapping[str, int], end: int) -> list[str]:
    """Return what is wrong with a turn's dependencies, if anything is; `ids` are the numbers of the last cells up to
    `end` with each id."""
    needs = {record[0]: record[4] for record in turn.records}
    if len(needs) < len(turn.records):
        return [f"turn {turn.number}: several of its cells have the same id"]
    for ordinal, depends in enumerate(needs.values(), start=1):
        for name in depends:
            if name not in ids:
                return [f"turn {turn.number}: {turn.number}.{ordinal} depends on {name[:20]}, which is not before it"]
    start = end - len(turn.records)
    way = " → ".join(f"{turn.number}.{ids[name] - start + 1}" for name in dependency_graph.find_cycle(needs))
    what = f"its cells depend on each other in a circle: {way}" if way else "some of its cells depend on later ones"
    return [f"turn {turn.number}: {what}"]
