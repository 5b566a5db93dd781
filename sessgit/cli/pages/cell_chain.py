"""The cells that a cell depends on, or that depend on it: as a list, as a drawing, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells, rails
from sessgit.cli.pages.cells import CellLines
from sessgit.history.cell_graph import KINDS, CellChain, Graph
from sessgit.history.cells import CellDetail, Node
from sessgit.model import dependency_graph
from sessgit.store.index import Branch

_RUN, _RUN_ENDS = 6, 2
"""In a drawing, a longer run of cells with one neighbour on each side is folded, except for its ends."""
_RELATED = 12
_HOW = (
    ("Depends on", {"follows": "came right before it", "data": "wrote the file"}),
    ("Used by", {"follows": "came right after it", "data": "read or changed the file"}),
)


@dataclass(frozen=True, slots=True)
class ShownChain:
    """The part of a chain that is shown cell by cell, in the order of execution; the others are only counted."""

    chain: CellChain
    addresses: Sequence[str]

    @property
    def nodes(self) -> list[Node]:
        """The cells that are shown, and the one that was asked for."""
        return [*map(self.chain.graph.nodes.__getitem__, self.addresses), self.chain.start]

    @property
    def folded(self) -> list[str]:
        """The cells that are only counted."""
        shown = set(self.addresses)
        return [address for address in self.chain.cells if address not in shown]


def nearest(chain: CellChain, limit: int | None, *, every: bool) -> ShownChain:
    """Return the cells nearest to the start; `every` includes those that merely came before or after it."""
    addresses = [address for address in chain.cells if every or address in chain.near]
    if limit is not None:
        addresses = addresses[:limit] if chain.down else addresses[max(0, len(addresses) - limit) :]
    return ShownChain(chain, addresses)


def page(here: Invocation, branch: Branch, shown: ShownChain, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """Yield a line for each cell of the chain; the one that was asked for is last, or first if the chain leads down."""
    chain, folded = shown.chain, set(shown.folded)
    lines = CellLines(here, branch.state.project, shown.nodes, details)

    def line(address: str, mark: str) -> str:
        cell = lines.line(chain.graph.nodes[address], here.width - 2, note=_writer(chain.graph, address))
        return f"{here.paint('green', mark)} {cell}"

    body: list[str] = []
    for is_folded, group in groupby(chain.cells, key=folded.__contains__):
        run = list(group)
        body += [_count(here, chain, run)] if is_folded else [line(address, " ") for address in run]
    start = line(chain.start.address, "●")
    yield from _header(here, branch, chain)
    yield ""
    yield from [start, *body] if chain.down else [*body, start]


def drawing(here: Invocation, branch: Branch, shown: ShownChain, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """Yield the same with rails between cells that depend on each other, the last cell first."""
    paint, chain, start = here.paint, shown.chain, shown.chain.start.address
    lines = CellLines(here, branch.state.project, shown.nodes, details)
    drawn, folded = {*shown.addresses, start}, shown.folded
    kinds = ("causal", "data") if chain.near.issuperset(shown.addresses) else ()
    needs, runs = _fold_runs(
        {
            address: [other for other in others if other in drawn]
            for address, others in chain.graph.needs(*kinds).items()
            if address in drawn
        }
    )
    yield from _header(here, branch, chain)
    yield ""
    if chain.down and folded:
        yield _count(here, chain, folded)
    # If each cell needs just the one before, no line between them would show it.
    is_plain = all(needs[later] == [before] for before, later in pairwise(needs))
    for drawing_of_rails, address, undrawn in rails.draw_cells(needs):
        rail = f"{drawing_of_rails}  "
        room = here.width - text.width(rail)
        if not address:
            yield paint("green", rail)
        elif address in runs:
            run = runs[address]
            count = text.cut(f"⋮ {text.counted(len(run), 'cell')}, {run[0]} – {run[-1]}", room)
            yield paint("green", rail.replace("●", "┊")) + paint("dim", count)
        else:
            notes = [_writer(chain.graph, address), f"also after {', '.join(undrawn)}" if undrawn else ""]
            cell = lines.line(chain.graph.nodes[address], room, note="; ".join(filter(None, notes)))
            yield paint("green", rail if address == start else rail.replace("●", "○")) + cell
            if is_plain and needs[address] and runs.keys().isdisjoint(needs[address]):
                yield paint("green", "│")
    if not chain.down and folded:
        yield _count(here, chain, folded)


def as_json(branch: Branch, chain: CellChain, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return what `deps --json` prints: the whole chain, with the edges inside of it."""
    inside = {*chain.cells, chain.start.address}
    needs = chain.graph.needs()

    def cell(address: str) -> dict[str, Any]:
        edges = [cells.edge_json(chain.graph, address, other) for other in needs[address] if other in inside]
        return {**cells.cell_json(chain.graph.nodes[address], details), "depends_on": edges}

    return {
        **cells.branch_json(branch),
        "direction": "down" if chain.down else "up",
        "cell": cell(chain.start.address),
        "chain": [{**cell(address), "near": address in chain.near} for address in chain.cells],
        "damage": chain.graph.damage,
    }


def related(
    here: Invocation, branch: Branch, graph: Graph, address: str, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield what a cell depends on, and what depends on it, and how."""
    for (heading, phrases), others in zip(_HOW, _neighbours(graph, address), strict=True):
        yield ""
        yield here.paint("bold", heading if others else f"{heading} nothing")
        nodes = [graph.nodes[other] for other in others[:_RELATED]]
        lines = CellLines(here, branch.state.project, nodes, details)
        for node in nodes:
            kinds = cells.edge_json(graph, address, node.address)["kinds"]
            note = ", ".join(phrases[kind] for kind in kinds if kind in phrases)
            yield f"  {lines.line(node, here.width - 2, note=note)}"
        if len(others) > _RELATED:
            yield here.paint("dim", f"  … and {text.counted(len(others) - _RELATED, 'more cell')}")


def related_nodes(graph: Graph, address: str) -> list[Node]:
    """Return the cells that `related` shows."""
    return [graph.nodes[other] for others in _neighbours(graph, address) for other in others[:_RELATED]]


def related_json(graph: Graph, address: str) -> dict[str, Any]:
    """Return all cells that the cell depends on directly, and all that depend on it."""
    keys = ("dependencies", "dependents")
    return {
        key: [cells.edge_json(graph, address, other) for other in others]
        for key, others in zip(keys, _neighbours(graph, address), strict=True)
    }


def _neighbours(graph: Graph, address: str) -> tuple[list[str], list[str]]:
    """Return the cells that a cell depends on directly, and those that depend on it; none if it is not stored."""
    if address not in graph.nodes:
        return [], []
    needed = dict.fromkeys(other for kind in KINDS for other in graph.edges[kind].get(address, ()))
    needing = {other for kind in KINDS for other, needs in graph.edges[kind].items() if address in needs}
    return list(needed), [other for other in graph.nodes if other in needing]


def _writer(graph: Graph, address: str) -> str:
    """`as 3.4 wrote it`, if the cell read or edited what another one had written."""
    return "".join(f"as {writer} wrote it" for writer in graph.edges["data"].get(address, ()))


def _header(here: Invocation, branch: Branch, chain: CellChain) -> Iterator[str]:
    count, own = text.counted(len(chain.cells), "cell"), chain.start.address
    verb = "depends" if len(chain.cells) == 1 else "depend"
    fact = f"{count} {verb} on {own}" if chain.down else f"{own} depends on {count}"
    return blocks.session_heading(here, branch, fact)


def _count(here: Invocation, chain: CellChain, run: Sequence[str]) -> str:
    """Return how many cells are not shown, and of which turns."""
    turns = [int(address.partition(".")[0]) for address in run]
    first, last = min(turns), max(turns)
    where = f"turn {first}" if first == last else f"turns {first}–{last}"
    near = sum(address in chain.near for address in run)
    side = "after" if chain.down else "before"
    count = f"⋮ {text.counted(len(run), 'cell')} of {where} {side} it"
    return here.paint("dim", f"{count}, {near} of them in the chain" if near else count)


def _fold_runs(needs: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the graph with the middle of each long run replaced by its first cell, and these middles."""
    after = dependency_graph.dependents(needs)
    single = {key for key in needs if len(needs[key]) == 1 and len(after[key]) == 1}
    replaced: dict[str, str] = {}
    runs: dict[str, list[str]] = {}
    for key in needs:
        run: list[str] = []
        at = key
        while at in single:
            single.remove(at)
            run.append(at)
            at = after[at][0]
        if len(run) > _RUN:
            middle = run[_RUN_ENDS:-_RUN_ENDS]
            runs[middle[0]] = middle
            replaced |= dict.fromkeys(middle, middle[0])
    folded = {
        key: [replaced.get(other, other) for other in others]
        for key, others in needs.items()
        if replaced.get(key, key) == key
    }
    return folded, runs
