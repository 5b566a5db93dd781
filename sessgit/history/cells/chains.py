"""What a cell depends on, or what depends on it: all of it, and the part that is more than having come before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessgit.errors import NotFoundError
from sessgit.history.cells.graph import Graph, Node
from sessgit.model import dependency_graph


@dataclass(frozen=True, slots=True)
class CellChain:
    """The cells on the way from a cell, by their addresses, in the order of execution; the cell itself is none of them.

    Causal edges and those of data lead to the ones in `near`. To the others something leads only because it stood in
    the conversation before.
    """

    graph: Graph
    start: Node
    down: bool
    cells: Sequence[str]
    near: frozenset[str]


def cell_chain(found: Graph, address: str, *, down: bool) -> CellChain:
    """The chain of the cell at an address, up to what it depends on, or down to what depends on it."""
    if address not in found.nodes:
        raise NotFoundError(f"the store has no cell {address}", "`sessgit cells` lists the cells.")
    walk, start = (
        dependency_graph.dependents_by_number if down else dependency_graph.dependencies_by_number,
        found.nodes.place(address),
    )
    cells, near = (
        [found.nodes.address(place) for place in walk(needs, start)]
        for needs in (found.places(), found.places("causal", "data"))
    )
    return CellChain(found, found.nodes.at(start), down, cells, frozenset(near))
