"""Cells as lines: what `cells` prints, and the lines of other pages that show cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import turn_pieces
from sessgit.history.cell_graph import KINDS, Graph
from sessgit.history.cells import NO_DETAIL, CellDetail, CellListing, Node
from sessgit.store import layout
from sessgit.store.index import Branch

_ROOMY = 76
"""With fewer columns ids and types are left out: what a cell is about needs the room."""
_ID = len("cell_") + 8
_OPERATION = 14
_TYPE, _LONGEST_TYPE = len("llm_call"), len("verification")


class CellLines:
    """Draws cells one to a line, with columns that fit all of them."""

    def __init__(
        self, here: Invocation, project: str, nodes: Collection[Node], details: Mapping[str, CellDetail]
    ) -> None:
        self.here, self.project, self.details = here, project, details
        self.address = max((len(node.address) for node in nodes), default=0)
        self.type = max([_TYPE, *(min(_LONGEST_TYPE, len(node.cell.type)) for node in nodes)])
        self.operation = max((text.width(short_operation(node)) for node in nodes), default=0)

    def start(self, node: Node, *, with_id: bool = False) -> str:
        """Return the first columns: the address, the id and type if they are asked for, and the tool."""
        kind = ""
        if with_id:
            ident, kind = text.fit(text.clean(node.cell.id, _ID), _ID), text.clean(node.cell.type, 20)
            kind = f"{ident}  {text.fit(kind, self.type)}  "
        paint, tool = self.here.paint, text.fit(short_operation(node), self.operation)
        return f"{paint('yellow', node.address.ljust(self.address))}  {paint('dim', kind)}{paint('cyan', tool)}  "

    def line(self, node: Node, columns: int, *, with_id: bool = False, note: str = "") -> str:
        """Return the cell in so many columns; a note follows what it is about."""
        paint, detail = self.here.paint, self.details.get(node.address, NO_DETAIL)
        start = self.start(node, with_id=with_id)
        end = "  ".join(filter(None, (outcome(node, detail), turn_pieces.duration(detail.seconds))))
        end = paint("dim" if node.cell.ok and not detail.exit_code else "red", end)
        room = text.room(start, end, columns)
        note = text.cut(f"  {note}", room // 2) if note else ""
        room = max(1, room - text.width(note))
        if detail.about:
            about = turn_pieces.subject(self.here, self.project, detail.about, detail.file, room)
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
    cell = node.cell
    if cell.ok is None:
        return "no result"
    if detail.exit_code:
        return f"exit {detail.exit_code}"
    if not cell.ok:
        return "failed"
    return "" if cell.type == "llm_call" and not cell.program else "ok"


def page(here: Invocation, branch: Branch, listing: CellListing, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """Yield a line for each cell, oldest first."""
    lines = CellLines(here, branch.state.project, listing.nodes, details)
    yield from blocks.session_heading(here, branch)
    yield ""
    if listing.earlier:
        shown = f"the last {len(listing.nodes)}" if listing.nodes else "none shown"
        yield here.paint("dim", f"({shown}: -n shows more)")
    for node in listing.nodes:
        yield lines.line(node, here.width, with_id=here.width >= _ROOMY)
    if not listing.nodes and not listing.earlier:
        yield "No matching cells." if branch.state.cells else "No cells yet."


def as_json(branch: Branch, listing: CellListing, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return what `cells --json` prints."""
    return {
        **branch_json(branch),
        "earlier": listing.earlier,
        "cells": [cell_json(node, details) for node in listing.nodes],
        "damage": listing.damage,
    }


def branch_json(branch: Branch) -> dict[str, Any]:
    """Return what documents about cells say of the branch that they are in."""
    return {"session_id": layout.session_of(branch.name), "branch": branch.name}


def cell_json(node: Node, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return a cell as lists of cells have it."""
    detail = details.get(node.address, NO_DETAIL)
    return {
        "id": node.cell.id,
        "address": node.address,
        "turn": node.turn,
        "ordinal": node.ordinal,
        "type": node.cell.type,
        "operation": node.cell.operation,
        "ok": node.cell.ok,
        "about": detail.about,
        "file": detail.file or None,
        "time": detail.time or None,
        "seconds": detail.seconds,
        "exit_code": detail.exit_code,
    }


def edge_json(graph: Graph, address: str, other: str) -> dict[str, Any]:
    """Return the cell at `other`, which depends on the one at `address` or the other way round, and the edges."""
    first, second = sorted((graph.nodes[address], graph.nodes[other]), key=lambda node: node[:2])
    kinds = [kind for kind in KINDS if first.address in graph.edges[kind].get(second.address, ())]
    return {
        "cell_id": graph.nodes[other].cell.id,
        "address": other,
        "kinds": kinds,
        "file": second.use.file if "data" in kinds else None,
    }
