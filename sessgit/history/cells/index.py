"""The graph of a session as the document that other programs keep of one: by cell ids, without kinds of edges."""

from __future__ import annotations

from typing import Any

from sessgit.history.cells.graph import Graph
from sessgit.model import dependency_graph

VERSION = "1.0"


def index_document(session: str, found: Graph) -> dict[str, Any]:
    """Each cell with what it depends on and what depends on it, where the graph begins and ends, and an order in which
    each cell comes after those that it depends on. Of several cells with one id the first one stands for all."""
    needs: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    for address, wanted in found.needs().items():
        cell = found.nodes[address].cell
        if cell.id not in needs:
            needs[cell.id] = list(dict.fromkeys(found.nodes[other].cell.id for other in wanted))
            types[cell.id] = cell.type
    dependents = dependency_graph.dependents(needs)
    return {
        "version": VERSION,
        "session_id": session,
        "cells": {
            own: {"type": types[own], "dependencies": wanted, "dependents": dependents[own]}
            for own, wanted in needs.items()
        },
        "roots": dependency_graph.roots(needs),
        "leaves": dependency_graph.leaves(needs),
        "execution_order": dependency_graph.topological_order(needs),
    }
