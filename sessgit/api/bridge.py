"""Questions about a session and its cells, asked one at a time by a program that stays.

A question is a JSON object with `op`, `args` where it has any, and an `id` of the asker's own if it wants one back. An
answer is an object too, and one with `error` where there is none. Nothing that is asked ends the conversation.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sessgit.api.state import cell_document
from sessgit.errors import SessgitError
from sessgit.history.cells import graph as graphs
from sessgit.history.cells import index as cell_index
from sessgit.history.cells.graph import Graph
from sessgit.history.views import total_tokens
from sessgit.model import canonical
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

LONGEST_REQUEST = 1 << 20
"""Bytes of a question."""
NO_SESSION_ERROR = "No active session"
_SHOWN_LENGTH = 200

Answer = dict[str, Any]


@dataclass(frozen=True)
class BranchView:
    """A branch as it was when it was asked about; what it takes to answer is read once, when it is needed."""

    open_store: Callable[[], Store]
    index: Index
    branch: Branch

    @cached_property
    def store(self) -> Store:
        return self.open_store()

    @cached_property
    def graph(self) -> Graph:
        return graphs.read_graph(self.store, self.index, self.branch)

    @cached_property
    def cells(self) -> Mapping[str, Any]:
        """The index of the cells."""
        return cell_index.index_document(layout.session_of(self.branch.name), self.graph)

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """Where each cell stands, by its id; of several with one id the first."""
        found: dict[str, str] = {}
        for address, node in self.graph.nodes.items():
            found.setdefault(node.cell.id, address)
        return found


class Bridge:
    """Answers questions about whatever branch `find` finds at the moment; what was read of it is kept until that has
    gone on. `find` returns None where there is none."""

    def __init__(self, open_store: Callable[[], Store], index: Index, find: Callable[[], Branch | None]) -> None:
        self._open_store, self._index, self._find = open_store, index, find
        self._view: BranchView | None = None

    def answer(self, line: bytes) -> Answer:
        """The answer to a line of JSON; never raises an error that somebody could act on, but tells it."""
        try:
            question = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            return {"error": f"a question is one line of JSON: {said[:_SHOWN_LENGTH]}"}
        if not isinstance(question, dict):
            return {"error": "a question is a JSON object with op and args"}
        found = self.ask(question.get("op"), question.get("args"))
        return {**found, "id": canonical.bounded(question["id"])} if "id" in question else found

    def ask(self, operation: object, args: object) -> Answer:
        """The answer to one operation with its arguments, None for none."""
        known = _OPERATIONS.get(operation) if isinstance(operation, str) else None
        if known is None:
            said = operation if isinstance(operation, str) else json.dumps(canonical.bounded(operation))
            return {"error": f"unknown operation: {said[:_SHOWN_LENGTH]}"}
        if args is not None and not isinstance(args, dict):
            return {"error": "args must be an object"}
        given = args or {}
        if known in _CELL_OPERATIONS and not given.get("cell_id"):
            return {"error": "cell_id required"}
        try:
            view = self._look()
            return known(view, given) if view else {"error": NO_SESSION_ERROR}
        except (SessgitError, OSError) as error:
            self._view = None
            return {"error": getattr(error, "strerror", "") or str(error)}

    def _look(self) -> BranchView | None:
        branch = self._find()
        if branch is None:
            self._view = None
        elif self._view is None or self._view.branch != branch:
            self._view = BranchView(self._open_store, self._index, branch)
        return self._view


def answer_session(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Which session it is, whether a program drives it, how deep that is in a recursion, and the tokens used."""
    state = view.branch.state
    own = state.unified.activation
    return {
        "session_id": layout.session_of(view.branch.name),
        "rlm_active": own.rlm_active is True,
        "current_depth": own.current_depth or 0,
        "tokens_used": total_tokens(state).total,
    }


def answer_cells(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """All cells, or those of a type; the order is that of all."""
    kind, found = args.get("type"), view.cells
    chosen = [{"cell_id": own, **said} for own, said in found["cells"].items() if not kind or said["type"] == kind]
    return {"cells": chosen, "count": len(chosen), "execution_order": found["execution_order"]}


def answer_cell(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """All of one cell."""
    address = view.addresses.get(_cell_id(args))
    if address is None:
        return _no_cell_answer(args)
    return cell_document.cell_document(view.store, view.index, view.branch, view.graph.nodes[address], view.graph)


def answer_dependency_chain(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """The ids of all that a cell depends on, directly or not, the nearest first."""
    needs, start = view.cells["cells"], _cell_id(args)
    if start not in needs:
        return _no_cell_answer(args)
    reached, waiting = {start: None}, deque([start])
    while waiting:
        for other in needs[waiting.popleft()]["dependencies"]:
            if other not in reached:
                reached[other] = None
                waiting.append(other)
    chain = list(reached)[1:]
    return {"chain": chain, "depth": len(chain)}


def _cell_id(args: Mapping[str, Any]) -> str:
    return args["cell_id"] if isinstance(args["cell_id"], str) else ""


def _no_cell_answer(args: Mapping[str, Any]) -> Answer:
    said = args["cell_id"]
    return {
        "error": f"Cell not found: {said if isinstance(said, str) else json.dumps(canonical.bounded(said))}"[
            : 5 * _SHOWN_LENGTH
        ]
    }


_OPERATIONS: Mapping[str, Callable[[BranchView, Mapping[str, Any]], Answer]] = {
    "session": answer_session,
    "cells": answer_cells,
    "cell": answer_cell,
    "dependency_chain": answer_dependency_chain,
}
_CELL_OPERATIONS = (answer_cell, answer_dependency_chain)
OPERATIONS = tuple(_OPERATIONS)
