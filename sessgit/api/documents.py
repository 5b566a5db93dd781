"""Returns a session's state and cells as documents in the form that other programs store.

Times are seconds since 1970; unknown numbers are left out. Files and tool outputs are computed from the lines of all
turns: they are not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sessgit import agents
from sessgit.history import show
from sessgit.history.cell_graph import Graph
from sessgit.history.cells import Node
from sessgit.history.show import SessionTotals, activation_json, budget_json
from sessgit.history.turn_log import Prices, read_pieces
from sessgit.model import canonical, dependency_graph
from sessgit.store.context import Context
from sessgit.store.index import Branch

CELL_KEYS = ("cell_id", "created_at", "type", "input", "output", "dependencies", "dependents", "metadata")
"""The keys of a cell's document, in their order."""
INDEX_PATH = "cells/index.json"
"""The path of the cells' index, relative to the state's document."""


def state_document(context: Context, branch: Branch, overrides: Prices) -> dict[str, Any]:
    """Return the whole state as one document; reads every turn."""
    state, own = branch.state, branch.state.unified
    rows, kept = context.index.turns(branch.name), show.imported_state(context.store, branch)
    totals = SessionTotals(agents.of(state), kept.turns if kept else 0)
    for row in rows:
        totals.add(row, *read_pieces(context.store, branch, row))
    budget, created = budget_json(state, totals.recursive, overrides), canonical.seconds(state.created) or 0.0
    files = {path: file.as_json() for path, file in totals.files.items()}
    inherited = {} if kept else show.inherited_files(context, branch, rows)
    document: dict[str, Any] = {
        "metadata": {
            "session_id": branch.session,
            "created_at": created,
            "updated_at": canonical.seconds(state.updated) or created,
            "ended_at": canonical.seconds(state.ended),
            "cwd": state.project,
            "claude_transcript_path": state.transcript,
            **({"rlm_version": version} if (version := own.metadata.rlm_version) else {}),
        },
        "activation": activation_json(state),
        "context": {
            "files": show.merged_files(inherited, files),
            "tool_outputs": totals.outputs,
            "working_memory": canonical.bounded(dict(own.working_memory)),
        },
        "budget": budget,
        "cells": {"count": totals.cells, "index_path": INDEX_PATH},
        "trajectory": {"export_path": own.trajectory.export_path or None, "events_count": totals.events},
    }
    if kept is None:
        return document
    document = kept.merge_into(document, state, rows, totals)
    document["metadata"]["session_id"] = kept.id
    if isinstance(document["context"].get("conversation"), list):
        document["context"]["conversation"] = [*document["context"]["conversation"], *totals.messages]
    return document


def cell_documents(context: Context, branch: Branch, graph: Graph, nodes: Iterable[Node]) -> Iterator[dict[str, Any]]:
    """Yield the documents of some cells of the branch's graph, in the order in which they ran; reads each turn once. Of
    several cells with one id, only the first has a document."""
    needs = graph.needs()
    dependents = dependency_graph.dependents(needs)
    wanted, ids = {node.address: node for node in nodes}, set[str]()
    for number in dict.fromkeys(node.turn for node in wanted.values()):
        for shown in show.shown_cells(context, branch, number):
            address = f"{number}.{shown.ordinal}"
            if address in wanted and shown.cell.id not in ids:
                ids.add(shown.cell.id)
                document = show.unified_cell(shown, {})
                for key, others in (("dependencies", needs[address]), ("dependents", dependents[address])):
                    document[key] = list(dict.fromkeys(graph.nodes[other].cell.id for other in others))
                yield {key: document[key] for key in CELL_KEYS}
