"""Cells as the documents that other programs keep of them, one JSON object each.

A document holds what `sessgit show SESSION@N.C --json` has of that shape, and its edges are those of the whole session,
the same as in the index of its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessgit import agents
from sessgit.errors import NotFoundError
from sessgit.history import documents, show
from sessgit.history.cells.graph import Graph, Node
from sessgit.history.show import ShownCell
from sessgit.model import dependency_graph as graphs
from sessgit.model.conversation.content import Call, Words
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

KEYS = ("cell_id", "created_at", "type", "input", "output", "dependencies", "dependents", "metadata")
"""The keys of a document, in their order."""


def cell_document(store: Store, index: Index, branch: Branch, node: Node, graph: Graph) -> dict[str, Any]:
    """The document of one cell, whoever made it: `graph` is that of the branch, and holds the cell."""
    shown = next(_shown_cells(store, index, branch, node.turn, node.ordinal), None)
    if shown is None:
        raise NotFoundError(
            f"turn {node.turn} has no cell {node.ordinal} in its lines",
            f"sessgit restore {layout.short_name(branch.name)} --verify checks them.",
        )
    needs = graph.needs()
    return _make_document(
        shown, graph, needs[node.address], [a for a, wanted in needs.items() if node.address in wanted]
    )


def all_cell_documents(
    store: Store, index: Index, branch: Branch, graph: Graph, progress: Progress = no_progress
) -> Iterator[dict[str, Any]]:
    """The documents of all cells of a graph in the order in which they happened; each turn is read once, and `progress`
    told of how many of how many. Of several cells with one id the first stands for all."""
    needs = graph.needs()
    dependents = graphs.dependents(needs)
    turns = dict.fromkeys(node.turn for node in graph.nodes.values())
    seen = set[str]()
    for done, number in enumerate(turns):
        progress(done, len(turns))
        for shown in _shown_cells(store, index, branch, number):
            address = f"{number}.{shown.ordinal}"
            if address in graph.nodes and shown.cell.id not in seen:
                seen.add(shown.cell.id)
                yield _make_document(shown, graph, needs[address], dependents[address])


def _shown_cells(
    store: Store, index: Index, branch: Branch, number: int, only: int | None = None
) -> Iterator[ShownCell]:
    """The cells of a turn with what is known of them, or only the one of that ordinal, if there is one."""
    turn = show.show_turn(store, index, branch, number)
    body = agents.of(branch.state).lines.parsed(store.lines(branch.tip, number).body)
    calls: Mapping[int, Call] = {piece.ordinal: piece for piece in turn.pieces if isinstance(piece, Call)}
    said: dict[int, list[Words]] = {}
    for piece in turn.pieces:
        if isinstance(piece, Words) and piece.ordinal:
            said.setdefault(piece.ordinal, []).append(piece)
    for ordinal, cell in enumerate(turn.told.cells, start=1):
        if only in (None, ordinal):
            tokens = agents.of(branch.state).content.tokens(body, cell)
            yield ShownCell(turn, cell, ordinal, calls.get(ordinal), said.get(ordinal, []), tokens)


def _make_document(shown: ShownCell, graph: Graph, needs: Sequence[str], dependents: Sequence[str]) -> dict[str, Any]:
    whole = documents.unified_cell(shown, {})
    whole |= {"dependencies": _cell_ids(graph, needs), "dependents": _cell_ids(graph, dependents)}
    return {key: whole[key] for key in KEYS}


def _cell_ids(graph: Graph, addresses: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(graph.nodes[address].cell.id for address in addresses))
