"""Answers questions about a session and its cells, one at a time, for a program that keeps running.

A question is a JSON object with `op`, optionally `args`, and optionally an `id`, which the answer repeats. An answer is
a JSON object, with `error` if the question has none. No question ends the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sessgit.api import documents
from sessgit.errors import SessgitError
from sessgit.history import cell_graph
from sessgit.history.cell_graph import Graph
from sessgit.history.turn_log import read_turn, total_tokens
from sessgit.model import canonical, dependency_graph
from sessgit.store.context import Context
from sessgit.store.index import Branch

LONGEST_REQUEST = 1 << 20
"""Bytes of a question."""
NO_SESSION_ERROR = "No active session"
_SHOWN_LENGTH = 200
_PEEK_LENGTH = 1_000
_MOST_MATCHES = 50
_CONTEXT_PARTS = ("files", "tool_outputs", "working_memory")

Answer = dict[str, Any]


@dataclass(frozen=True)
class BranchView:
    """A branch at the time of a question; what answers need is read once."""

    context: Context
    branch: Branch

    @cached_property
    def graph(self) -> Graph:
        return cell_graph.read_graph(self.context, self.branch)

    @cached_property
    def cells(self) -> Mapping[str, Any]:
        """The index of the cells."""
        return cell_graph.index_document(self.branch.session, self.graph)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """What a program can peek into and search, by name: the conversation, and the parts of the context as JSON."""
        store, branch = self.context.store, self.branch
        context = documents.state_document(self.context, branch, self.context.prices)["context"]
        turns = [read_turn(store, branch.tip, row) for row in self.context.index.turns(branch.name)]
        said = (pair for turn in turns for pair in (("user", turn.prompt), ("assistant", turn.answer)))
        parts = {name: json.dumps(context[name], ensure_ascii=False, indent=1) for name in _CONTEXT_PARTS}
        return {"conversation": "\n\n".join(f"{role}: {words}" for role, words in said if words), **parts}

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """The address of each cell by its id; of several cells with one id, of the first."""
        return {node.cell.id: address for address, node in reversed([*self.graph.nodes.items()])}


class Bridge:
    """Answers questions about the branch that `find` returns, None if there is none; keeps what it has read until the
    branch changes."""

    def __init__(self, context: Context | None, find: Callable[[], Branch | None]) -> None:
        self._context, self._find = context, find
        self._view: BranchView | None = None

    def answer(self, line: bytes) -> Answer:
        """Return the answer to a line of JSON; errors that a user could act on are answers too."""
        try:
            question = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            return {"error": f"a question is one line of JSON: {reason[:_SHOWN_LENGTH]}"}
        if not isinstance(question, dict):
            return {"error": "a question is a JSON object with op and args"}
        answer = self.ask(question.get("op"), question.get("args"))
        return {**answer, "id": canonical.bounded(question["id"])} if "id" in question else answer

    def ask(self, operation: object, args: object) -> Answer:
        """Return the answer to one operation with its arguments, None for none."""
        function = _OPERATIONS.get(operation) if isinstance(operation, str) else None
        if function is None:
            return {"error": f"unknown operation: {_shown(operation)[:_SHOWN_LENGTH]}"}
        if args is not None and not isinstance(args, dict):
            return {"error": "args must be an object"}
        arguments: Mapping[str, Any] = args or {}
        if function in _CELL_OPERATIONS and not arguments.get("cell_id"):
            return {"error": "cell_id required"}
        try:
            branch = self._find()
            if branch is None or self._context is None:
                self._view = None
                return {"error": NO_SESSION_ERROR}
            if self._view is None or self._view.branch != branch:
                self._view = BranchView(self._context, branch)
            return function(self._view, arguments)
        except (SessgitError, OSError) as error:
            self._view = None
            return {"error": getattr(error, "strerror", "") or str(error)}


def answer_session(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Return the session's id, its activation and depth of recursion, and the tokens that it used."""
    state = view.branch.state
    activation = state.unified.activation
    return {
        "session_id": view.branch.session,
        "rlm_active": activation.rlm_active is True,
        "current_depth": activation.current_depth or 0,
        "tokens_used": total_tokens(state).total,
    }


def answer_cells(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Return all cells, or those of a type, and the order of all."""
    kind = args.get("type")
    cells = [{"cell_id": id, **cell} for id, cell in view.cells["cells"].items() if not kind or cell["type"] == kind]
    return {"cells": cells, "count": len(cells), "execution_order": view.cells["execution_order"]}


def answer_cell(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Return the document of one cell."""
    address = view.addresses.get(args["cell_id"]) if isinstance(args["cell_id"], str) else None
    if address is None:
        return _no_cell_answer(args)
    return next(documents.cell_documents(view.context, view.branch, view.graph, [view.graph.nodes[address]]))


def answer_dependency_chain(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Return the ids of all cells that a cell depends on, directly or not, the nearest first."""
    needs, start = {id: cell["dependencies"] for id, cell in view.cells["cells"].items()}, args["cell_id"]
    if not isinstance(start, str) or start not in needs:
        return _no_cell_answer(args)
    chain = list(dependency_graph.reachable(needs, start))
    return {"chain": chain, "depth": len(chain)}


def answer_peek(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Return a part of the conversation, or of the files, tool outputs or memory as JSON: the characters from `start`
    to `end`, by default the first 1,000."""
    name, start = args.get("of", "conversation"), args.get("start", 0)
    end = args.get("end", start + _PEEK_LENGTH if _is_place(start) else 0)
    if name not in view.texts:
        return {"error": f"of must be one of {', '.join(view.texts)}"}
    if not _is_place(start) or not _is_place(end):
        return {"error": "start and end must be numbers of characters"}
    text = view.texts[name]
    return {"content": text[start:end], "start": start, "end": min(end, len(text)), "length": len(text)}


def answer_search(view: BranchView, args: Mapping[str, Any]) -> Answer:
    """Return the lines that contain a text, whatever its case, of everything that `peek` shows, or of one part, with
    the places where they begin; at most 50, and the count of all."""
    query, name = args.get("query"), args.get("of")
    if not isinstance(query, str) or not query:
        return {"error": "query required"}
    if name is not None and name not in view.texts:
        return {"error": f"of must be one of {', '.join(view.texts)}"}
    matches = []
    for part, text in view.texts.items():
        start = 0
        for line in text.split("\n") if name in (None, part) else ():
            if query.casefold() in line.casefold():
                matches.append({"of": part, "start": start, "text": line[:_PEEK_LENGTH]})
            start += len(line) + 1
    return {"matches": matches[:_MOST_MATCHES], "count": len(matches)}


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _no_cell_answer(args: Mapping[str, Any]) -> Answer:
    return {"error": f"Cell not found: {_shown(args['cell_id'])}"[: 5 * _SHOWN_LENGTH]}


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(canonical.bounded(value))


_OPERATIONS: Mapping[str, Callable[[BranchView, Mapping[str, Any]], Answer]] = {
    "session": answer_session,
    "cells": answer_cells,
    "cell": answer_cell,
    "dependency_chain": answer_dependency_chain,
    "peek": answer_peek,
    "search": answer_search,
}
_CELL_OPERATIONS = (answer_cell, answer_dependency_chain)
