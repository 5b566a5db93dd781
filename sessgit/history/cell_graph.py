"""The dependencies between all cells of a session.

There are three kinds of edges. *Causal* ones are stored with a turn's cells; they may lead to earlier turns. A cell
without any *follows* the last cells before it on which no other depended until then. A cell that reads or edits a file
depends by its *data* on the last cell that wrote it. The latter two are computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from sessgit.agents.values import Use
from sessgit.errors import NotFoundError
from sessgit.history import cells
from sessgit.history.cells import Node, TurnCells
from sessgit.model import dependency_graph
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store.context import Context
from sessgit.store.index import Branch

Kind = Literal["causal", "follows", "data"]
KINDS: tuple[Kind, ...] = ("causal", "follows", "data")
INDEX_VERSION = "1.0"


@dataclass(frozen=True)
class Graph:
    """The cells by address, in the order in which they happened, and by kind of edge the earlier cells that each
    depends on. `damage` has the stored dependencies that are impossible."""

    nodes: Mapping[str, Node]
    edges: Mapping[Kind, Mapping[str, Sequence[str]]]
    damage: list[str]

    @cached_property
    def uses(self) -> dict[str, Use | None]:
        """What calls are about by address, in order; None of a call of which that is not known."""
        return {address: node.traced_use for address, node in self.nodes.items() if node.is_call}

    def needs(self, *kinds: Kind) -> dict[str, list[str]]:
        """Return by address the cells that each depends on, by edges of these kinds or by any."""
        needs: dict[str, list[str]] = {address: [] for address in self.nodes}
        for kind in kinds or KINDS:
            for address, others in self.edges[kind].items():
                needs[address] += [other for other in others if other not in needs[address]]
        return needs


@frozen
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
    nodes: dict[str, Node] = {}
    edges: dict[Kind, dict[str, Sequence[str]]] = {kind: {} for kind in KINDS}
    damage = [text for turn in turns for text in turn.damage]
    ids: dict[str, str] = {}
    writers: dict[str, str] = {}
    unneeded: dict[str, None] = {}  # the cells on which no other depends yet, except for data
    for turn in turns:
        is_damaged = len({record[0] for record in turn.records}) < len(turn.records)
        for node in turn.nodes:
            address, cell_id, depends = node.address, node.record[0], node.record[4]
            nodes[address] = node
            needed = [ids[name] for name in dict.fromkeys(depends) if name in ids]
            is_damaged = is_damaged or not all(name in ids for name in depends)
            if needed:
                edges["causal"][address] = needed
                for other in needed:
                    unneeded.pop(other, None)
            elif unneeded and (depends or not any(node.record[6:7])):  # a program says so if a cell depends on nothing
                edges["follows"][address] = list(unneeded)
                unneeded.clear()
            unneeded[address] = None
            ids[cell_id] = address
            use = node.use
            if read := dict.fromkeys(writers[file] for file in use.reads if file in writers):
                edges["data"][address] = tuple(read)
            writers.update(dict.fromkeys(use.writes, address))
        if is_damaged:
            damage += _find_damage(turn, ids)
    return Graph(nodes, edges, damage)


def cell_chain(graph: Graph, address: str, *, down: bool) -> CellChain:
    """Return the chain of the cell at an address, up to what it depends on or down to what depends on it."""
    if address not in graph.nodes:
        raise NotFoundError(f"the store has no cell {address}", "`sessgit cells` lists the cells.")
    every, near = (
        dependency_graph.reachable(dependency_graph.dependents(needs) if down else needs, address)
        for needs in (graph.needs(), graph.needs("causal", "data"))
    )
    in_order = [other for other in graph.nodes if other in every]
    return CellChain(graph, graph.nodes[address], down, in_order, frozenset(near))


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
        "roots": [own for own, others in needs.items() if not others],
        "leaves": [own for own, others in dependents.items() if not others],
        "execution_order": list(needs),
    }


def _find_damage(turn: TurnCells, ids: Mapping[str, str]) -> list[str]:
    """Return what is wrong with a turn's dependencies, if anything is; `ids` are the addresses of the last cells up to
    the end of the turn with each id."""
    needs = {record[0]: record[4] for record in turn.records}
    if len(needs) < len(turn.records):
        return [f"turn {turn.number}: several of its cells have the same id"]
    for name, depends in needs.items():
        for other in depends:
            if other not in ids:
                return [f"turn {turn.number}: {ids[name]} depends on {other[:20]}, which is not before it"]
    way = " → ".join(ids[name] for name in dependency_graph.find_cycle(needs))
    what = f"its cells depend on each other in a circle: {way}" if way else "some of its cells depend on later ones"
    return [f"turn {turn.number}: {what}"]
