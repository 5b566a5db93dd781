"""Cells as lines, and the cells that a cell depends on, or that depend on it: as a list, as a drawing, and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from sessgit.cli import frame, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import rails, turn_pieces
from sessgit.history.cell_graph import KINDS, CellChain, Graph
from sessgit.history.cells import NO_DETAIL, CellDetail, CellListing, Node
from sessgit.model.conversation.content import failure
from sessgit.model.frozen import frozen
from sessgit.store.index import Branch

_ROOMY = 76
"""With fewer columns ids and types are left out: what a cell is about needs the room."""
_ID = len("cell_") + 8
_OPERATION = 14
_TYPE, _LONGEST_TYPE = len("llm_call"), len("verification")


class CellLines:
    """Draws cells one to a line, with columns that fit all of them."""

    def __init__(
        self, cli: Invocation, project: str, nodes: Collection[Node], details: Mapping[str, CellDetail]
    ) -> None:
        self.cli, self.project, self.details = cli, project, details
        self.address = max((len(node.address) for node in nodes), default=0)
        self.type = max([_TYPE, *(min(_LONGEST_TYPE, len(node.cell.type)) for node in nodes)])
        self.operation = max((text.width(short_operation(node)) for node in nodes), default=0)

    def start(self, node: Node, *, with_id: bool = False) -> str:
        """Return the first columns: the address, the id and type if they are asked for, and the tool."""
        kind = ""
        if with_id:
            ident, kind = text.fit(text.clean(node.cell.id, _ID), _ID), text.clean(node.cell.type, 20)
            kind = f"{ident}  {text.fit(kind, self.type)}  "
        paint, tool = self.cli.paint, text.fit(short_operation(node), self.operation)
        return f"{paint('yellow', node.address.ljust(self.address))}  {paint('dim', kind)}{paint('cyan', tool)}  "

    def line(self, node: Node, columns: int, *, with_id: bool = False, note: str = "") -> str:
        """Return the cell in so many columns; a note follows what it is about."""
        paint, detail = self.cli.paint, self.details.get(node.address, NO_DETAIL)
        start = self.start(node, with_id=with_id)
        end = "  ".join(filter(None, (outcome(node, detail), turn_pieces.duration(detail.seconds))))
        end = paint("dim" if node.cell.ok and not detail.exit_code else "red", end)
        room = text.room(start, end, columns)
        note = text.cut(f"  {note}", room // 2) if note else ""
        room = max(1, room - text.width(note))
        if detail.about:
            about = turn_pieces.subject(self.cli, self.project, detail.about, detail.file, room)
        else:
            tools = text.tools(detail.calls, room - 6) if detail.calls else ""
            about = paint("dim", text.cut(f"calls {tools}", room)) if tools else ""
        return text.spread(start, about + paint("dim", note), end, columns)


def short_operation(node: Node) -> str:
    """Return the tool, of a long path of names the last one, or the model without its maker's name."""
    operation = text.clean(node.cell.operation, 60)
    is_tool = node.cell.type == "tool"
    short = operation.rpartition("__")[2] if is_tool else operation.removeprefix("claude-")
    return text.cut(short or operation, _OPERATION)


def outcome(node: Node, detail: CellDetail) -> str:
    """`ok`, `failed`, `exit 2`, `no result`; nothing for a message of the client, which is always ok."""
    is_message = node.cell.type == "llm_call" and not node.cell.program
    return failure(node.cell.ok, detail.exit_code) or ("" if is_message else "ok")


def cell_lines(
    cli: Invocation, branch: Branch, listing: CellListing, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield a line for each cell, oldest first."""
    lines = CellLines(cli, branch.state.project, listing.nodes, details)
    yield from text.session_heading(cli, branch)
    yield ""
    if listing.earlier:
        shown = f"the last {len(listing.nodes)}" if listing.nodes else "none shown"
        yield cli.paint("dim", f"({shown}: -n shows more)")
    for node in listing.nodes:
        yield lines.line(node, cli.width, with_id=cli.width >= _ROOMY)
    if not listing.nodes and not listing.earlier:
        yield "No matching cells." if branch.state.cells else "No cells yet."


def as_json(
    branch: Branch, listing: CellListing, details: Mapping[str, CellDetail], messages: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Return what `cells --json` prints; `messages` are the places of all messages."""
    numbers = {place: number for number, place in enumerate(messages)}
    return {
        **branch_json(branch),
        "earlier": listing.earlier,
        "cells": [
            {**cell_json(node, details), "message": numbers.get((node.turn, node.ordinal))} for node in listing.nodes
        ],
        "damage": listing.damage,
    }


def branch_json(branch: Branch) -> dict[str, Any]:
    """Return what documents about cells say of the branch that they are in."""
    return {"session_id": branch.session, "branch": branch.name}


def cell_json(node: Node, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return a cell as lists of cells have it."""
    detail = details.get(node.address, NO_DETAIL)
    return {
        **frame.attributes(node, "address", "turn", "ordinal"),
        **frame.attributes(node.cell, "id", "type", "operation", "ok"),
        **frame.attributes(detail, "about", "seconds", "exit_code"),
        "file": detail.file or None,
        "time": detail.time or None,
    }


def edge_json(graph: Graph, address: str, other: str) -> dict[str, Any]:
    """Return the cell at `other`, which depends on the one at `address` or the other way round, and the edges."""
    first, second = sorted((graph.nodes[address], graph.nodes[other]), key=lambda node: node[:2])
    kinds = [kind for kind in KINDS if first.address in graph.edges[kind].get(second.address, ())]
    written = [file for file in second.use.reads if file in first.use.writes]
    return {
        "cell_id": graph.nodes[other].cell.id,
        "address": other,
        "kinds": kinds,
        "file": written[0] if "data" in kinds else None,
    }


_RELATED = 12
_HOW = (
    ("Depends on", {"follows": "came right before it", "data": "wrote the file"}),
    ("Used by", {"follows": "came right after it", "data": "read or changed the file"}),
)


@frozen
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


def chain_lines(cli: Invocation, branch: Branch, shown: ShownChain, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """Yield a line for each cell of the chain; the one that was asked for is last, or first if the chain leads down."""
    chain, folded = shown.chain, set(shown.folded)
    lines = CellLines(cli, branch.state.project, shown.nodes, details)

    def line(address: str, mark: str) -> str:
        cell = lines.line(chain.graph.nodes[address], cli.width - 2, note=_writer(chain.graph, address))
        return f"{cli.paint('green', mark)} {cell}"

    body: list[str] = []
    for is_folded, group in groupby(chain.cells, key=folded.__contains__):
        run = list(group)
        body += [_count(cli, chain, run)] if is_folded else [line(address, " ") for address in run]
    start = line(chain.start.address, "●")
    yield from _header(cli, branch, chain)
    yield ""
    yield from [start, *body] if chain.down else [*body, start]


def chain_drawing(
    cli: Invocation, branch: Branch, shown: ShownChain, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield the same with rails between cells that depend on each other, the last cell first."""
    paint, chain, start = cli.paint, shown.chain, shown.chain.start.address
    lines = CellLines(cli, branch.state.project, shown.nodes, details)
    drawn, folded = {*shown.addresses, start}, shown.folded
    kinds = ("causal", "data") if chain.near.issuperset(shown.addresses) else ()
    needs = {
        address: [other for other in others if other in drawn]
        for address, others in chain.graph.needs(*kinds).items()
        if address in drawn
    }
    yield from _header(cli, branch, chain)
    yield ""
    if chain.down and folded:
        yield _count(cli, chain, folded)
    # If each cell needs just the one before, no line between them would show it.
    is_plain = all(needs[later] == [before] for before, later in pairwise(needs))
    for drawing_of_rails, address, undrawn in rails.draw_cells(needs):
        rail = f"{drawing_of_rails}  "
        room = cli.width - text.width(rail)
        if not address:
            yield paint("green", rail)
        else:
            notes = [_writer(chain.graph, address), f"also after {', '.join(undrawn)}" if undrawn else ""]
            cell = lines.line(chain.graph.nodes[address], room, note="; ".join(filter(None, notes)))
            yield paint("green", rail if address == start else rail.replace("●", "○")) + cell
            if is_plain and needs[address]:
                yield paint("green", "│")
    if not chain.down and folded:
        yield _count(cli, chain, folded)


def chain_json(branch: Branch, chain: CellChain, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return what `deps --json` prints: the whole chain, with the edges inside of it."""
    inside = {*chain.cells, chain.start.address}
    needs = chain.graph.needs()

    def cell(address: str) -> dict[str, Any]:
        edges = [edge_json(chain.graph, address, other) for other in needs[address] if other in inside]
        return {**cell_json(chain.graph.nodes[address], details), "depends_on": edges}

    return {
        **branch_json(branch),
        "direction": "down" if chain.down else "up",
        "cell": cell(chain.start.address),
        "chain": [{**cell(address), "near": address in chain.near} for address in chain.cells],
        "damage": chain.graph.damage,
    }


def related(
    cli: Invocation, branch: Branch, graph: Graph, address: str, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield what a cell depends on, and what depends on it, and how."""
    for (heading, phrases), others in zip(_HOW, _neighbours(graph, address), strict=True):
        yield ""
        yield cli.paint("bold", heading if others else f"{heading} nothing")
        nodes = [graph.nodes[other] for other in others[:_RELATED]]
        lines = CellLines(cli, branch.state.project, nodes, details)
        for node in nodes:
            kinds = edge_json(graph, address, node.address)["kinds"]
            note = ", ".join(phrases[kind] for kind in kinds if kind in phrases)
            yield f"  {lines.line(node, cli.width - 2, note=note)}"
        if len(others) > _RELATED:
            yield cli.paint("dim", f"  … and {text.counted(len(others) - _RELATED, 'more cell')}")


def related_nodes(graph: Graph, address: str) -> list[Node]:
    """Return the cells that `related` shows."""
    return [graph.nodes[other] for others in _neighbours(graph, address) for other in others[:_RELATED]]


def related_json(graph: Graph, address: str) -> dict[str, Any]:
    """Return all cells that the cell depends on directly, and all that depend on it."""
    keys = ("dependencies", "dependents")
    return {
        key: [edge_json(graph, address, other) for other in others]
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


def _header(cli: Invocation, branch: Branch, chain: CellChain) -> Iterator[str]:
    count, own = text.counted(len(chain.cells), "cell"), chain.start.address
    verb = "depends" if len(chain.cells) == 1 else "depend"
    fact = f"{count} {verb} on {own}" if chain.down else f"{own} depends on {count}"
    return text.session_heading(cli, branch, fact)


def _count(cli: Invocation, chain: CellChain, run: Sequence[str]) -> str:
    """Return how many cells are not shown, and of which turns."""
    turns = [int(address.partition(".")[0]) for address in run]
    first, last = min(turns), max(turns)
    where = f"turn {first}" if first == last else f"turns {first}–{last}"
    near = sum(address in chain.near for address in run)
    side = "after" if chain.down else "before"
    count = f"⋮ {text.counted(len(run), 'cell')} of {where} {side} it"
    return cli.paint("dim", f"{count}, {near} of them in the chain" if near else count)
