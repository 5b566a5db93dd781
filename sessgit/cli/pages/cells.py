"""Cells as lines: what `cells` and `deps` print, and their JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import turn_pieces
from sessgit.cli.render import Paint
from sessgit.history.cells.details import NO_DETAIL, CellDetail
from sessgit.history.cells.graph import KINDS, Graph, Node
from sessgit.history.cells.listing import CellListing
from sessgit.history.resolve import session_title
from sessgit.store import layout
from sessgit.store.sqlite.rows import Branch

_ROOMY = 76
"""Below so many columns ids and types are left out: what a cell is about needs the room."""
_ID = len("cell_") + 8
_OPERATION = 14
_TYPE, _LONGEST_TYPE = len("llm_call"), len("verification")


class Lines:
    """Draws cells one to a line, with columns that fit all of them."""

    def __init__(
        self, here: Invocation, project: str, nodes: Collection[Node], details: Mapping[str, CellDetail]
    ) -> None:
        self.here, self.project, self.details = here, project, details
        self.paint = Paint(here.colour)
        self.address = max((len(node.address) for node in nodes), default=0)
        self.type = max(_TYPE, min(_LONGEST_TYPE, max((len(node.cell.type) for node in nodes), default=0)))
        self.operation = min(_OPERATION, max((text.width(called(node)) for node in nodes), default=0))

    def line(self, node: Node, columns: int, *, whole: bool = False, note: str = "") -> str:
        """The cell in so many columns, `whole` with its id and its type; a note follows what it is about."""
        known = self.details.get(node.address, NO_DETAIL)
        end = "  ".join(part for part in (outcome(node, known), turn_pieces.duration(known.seconds)) if part)
        start = text.fit(node.address, self.address) + "  "
        middle = f"{_safe_id(node)}  {text.fit(text.clean(node.cell.type, 20), self.type)}  " if whole else ""
        operation = text.fit(called(node), self.operation) + "  "
        room = columns - sum(map(text.width, (start, middle, operation)))
        room = max(1, room - text.width(end) - 2 * bool(end))
        note = text.cut(f"  {note}", room // 2) if note else ""
        about = self._about(node, known, max(1, room - text.width(note)))
        gap = " " * (room - text.width(about) - text.width(note) + 2) if end else ""
        style = "dim" if node.cell.ok and not known.exit_code else "red"
        told = about if known.about else self.paint("dim", about)
        return (
            f"{self.paint('yellow', start)}{self.paint('dim', middle)}{self.paint('cyan', operation)}"
            f"{told}{self.paint('dim', note)}{gap}{self.paint(style, end)}"
        )

    def _about(self, node: Node, known: CellDetail, columns: int) -> str:
        if not known.about:
            tools = text.tools(known.calls, columns - 6) if known.calls else ""
            return text.cut(f"calls {tools}", columns) if tools else ""
        if known.file and known.about == known.file:
            return turn_pieces.path(self.here, self.project, known.file, columns)
        return text.cut(text.clean(known.about), columns)


def called(node: Node) -> str:
    """The tool, of a long path of names the last one, or the model without its maker's name."""
    cell = node.cell
    return _called(cell.operation, cell.type)


@lru_cache
def _called(operation: str, kind: str) -> str:
    operation = text.clean(operation, 60)
    short = operation.rpartition("__")[2] if kind == "tool" else operation.removeprefix("claude-")
    return text.cut(short or operation, _OPERATION)


def outcome(node: Node, known: CellDetail) -> str:
    """`ok`, `failed`, `exit 2`, `no result`; nothing of a message of the client's, which is always ok."""
    cell = node.cell
    if cell.ok is None:
        return "no result"
    if known.exit_code:
        return f"exit {known.exit_code}"
    if cell.ok:
        return "" if cell.type == "llm_call" and not cell.program else "ok"
    return "failed"


def header(here: Invocation, branch: Branch, said: str = "") -> str:
    """The conversation's id and what it is called, and what else there is to say of it."""
    paint, name = Paint(here.colour), here.ident(branch.name)
    rest = text.cut(f"  {text.clean(session_title(branch.state), 200)}", here.width - len(name) - text.width(said))
    return f"{paint('yellow', name)}{paint('bold', rest)}{paint('dim', said)}"


def page(here: Invocation, branch: Branch, found: CellListing, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """A line for each cell, oldest first."""
    lines = Lines(here, branch.state.project, found.nodes, details)
    yield header(here, branch)
    yield ""
    if found.earlier:
        shown = f"the last {len(found.nodes)}" if found.nodes else "none shown"
        yield lines.paint("dim", f"({shown}: -n shows more)")
    for node in found.nodes:
        yield lines.line(node, here.width, whole=here.width >= _ROOMY)
    if not found.nodes and not found.earlier:
        yield "No matching cells." if branch.state.cells else "No cells yet."


def as_json(branch: Branch, found: CellListing, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return what `cells --json` prints."""
    return {
        "session_id": layout.session_of(branch.name),
        "branch": branch.name,
        "earlier": found.earlier,
        "cells": [cell_json(node, details.get(node.address, NO_DETAIL)) for node in found.nodes],
        "damage": found.damage,
    }


def cell_json(node: Node, known: CellDetail) -> dict[str, Any]:
    """What lists of cells say of each."""
    return {
        "id": node.cell.id,
        "address": node.address,
        "turn": node.turn,
        "ordinal": node.ordinal,
        "type": node.cell.type,
        "operation": node.cell.operation,
        "ok": node.cell.ok,
        "about": known.about,
        "file": known.file or None,
        "time": known.time or None,
        "seconds": known.seconds,
        "exit_code": known.exit_code,
    }


def edge_json(graph: Graph, address: str, other: str) -> dict[str, Any]:
    """A cell that another one depends on, or that depends on it: `other` is the one that is told of."""
    nodes = graph.nodes
    first, second = sorted((nodes.place(address), nodes.place(other)))
    kinds = [kind for kind in KINDS if first in graph.edges[kind].places.get(second, ())]
    return {
        "cell_id": nodes[other].cell.id,
        "address": other,
        "kinds": kinds,
        "file": nodes.at(second).use.file if "data" in kinds else None,
    }


def _safe_id(node: Node) -> str:
    return text.fit(text.clean(node.cell.id, _ID), _ID)
