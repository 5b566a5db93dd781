"""Which cells are run again, in which order and by what; or why one is not."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sessgit import agents
from sessgit.agents.base import Tools
from sessgit.agents.values import ToolKind
from sessgit.errors import NotFoundError, SessgitError
from sessgit.history.cells import graph as graphs
from sessgit.history.cells.graph import Graph, Node
from sessgit.history.views import body_of
from sessgit.model import canonical, dependency_graph
from sessgit.model.conversation.content import Call
from sessgit.model.progress import Progress, no_progress
from sessgit.replay.sandbox.workspace import is_below
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

Kind = ToolKind | Literal["repl", "model", "function"]
Functions = Mapping[str | tuple[str, str], Callable[..., Any]]
"""What a program registered: by operation, or by type and operation, a function that takes the cell's arguments."""

CODE_ARGUMENTS = ("code", "source", "expression")
"""The arguments of a cell of a REPL that hold its code."""
_MESSAGE_REASON = "a message of the model"
_REDACTION_MARK = "[redacted:"


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A cell in its place: by what it is run, or in `why` for what reason it is not.

    `call` is what it was and what came of it; None for a message of the model, and where its turn is damaged. `cwd` is
    the folder in which it was run, as it is recorded.
    """

    node: Node
    call: Call | None = None
    kind: Kind | None = None
    why: str = ""
    cwd: str = ""
    named: str = ""
    """The file or folder that the arguments name, as they do."""

    @property
    def is_message(self) -> bool:
        """Whether it is a message of the model, which is no call of anything."""
        return self.why == _MESSAGE_REASON

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What the call was given; nothing where it is a message."""
        return self.call.input if self.call else {}


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """The cells in execution order; `asked` are the addresses of those that were asked for, the others are there since
    these depend on them."""

    branch: Branch
    items: tuple[PlanItem, ...]
    asked: frozenset[str]
    damage: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        """The turn of the first cell that is run, 0 where none is."""
        return min((item.node.turn for item in self.items if item.kind), default=0)

    @property
    def place(self) -> str:
        """`@7.3`, `@7` or nothing: what of the conversation was asked for, as an address names it."""
        turns = {address.partition(".")[0] for address in self.asked}
        return f"@{min(self.asked if len(self.asked) == 1 else turns)}" if len(turns) == 1 else ""

    @property
    def last(self) -> int:
        """The turn of the last cell, 0 where there is none."""
        return max((item.node.turn for item in self.items), default=0)


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """What to run: the cells of a turn, or of all where none is named, or those in `cells`: each by its ordinal in
    `turn`, by `7.3`, or by its id. With `chain` all that they depend on too. `root` is the
    folder, as it is recorded, for which there is a sandbox, and `model` says whether there is a command for a model."""

    turn: int | None = None
    cells: Sequence[str] = ()
    chain: bool = False
    root: str = "/"
    model: bool = False
    functions: Functions = field(default_factory=dict)


def plan_replay(
    store: Store, index: Index, branch: Branch, choice: ReplayChoice, progress: Progress = no_progress
) -> ReplayPlan:
    """The plan for a choice.

    Raises NotFoundError for a cell that is not there, DamageError where cells depend on each other in a circle.
    """
    found = graphs.read_graph(store, index, branch, progress=progress)
    asked = _requested_addresses(found, branch, choice)
    needs = found.needs()
    taken = set(asked)
    if choice.chain:
        for address in asked:
            taken.update(dependency_graph.all_dependencies(needs, address))
    order = [address for address in dependency_graph.topological_order(needs) if address in taken]
    calls = _calls_by_turn(store, index, branch, {found.nodes[address].turn for address in order})
    tools = agents.of(branch.state).tools
    items = (_make_item(tools, found.nodes[address], calls, branch.state.project, choice) for address in order)
    return ReplayPlan(branch, tuple(items), frozenset(asked), tuple(found.damage))


def cell_code(arguments: Mapping[str, Any]) -> str | None:
    """The code that a cell of a REPL ran."""
    return next((arguments[key] for key in CODE_ARGUMENTS if isinstance(arguments.get(key), str)), None)


def call_path(item: PlanItem) -> str:
    """The file or folder that a call is about, as an absolute path in the conversation."""
    return os.path.normpath(os.path.join(item.cwd, item.named))  # noqa: PTH118 - as the agent has it


def registered_function(functions: Functions, node: Node) -> Callable[..., Any] | None:
    """What a program registered for such a cell."""
    return functions.get((node.cell.type, node.cell.operation)) or functions.get(node.cell.operation)


# Inside


@dataclass(frozen=True, slots=True)
class _TurnCalls:
    """The calls of a turn by the ids of their cells, and the folder that each line names."""

    calls: Mapping[str, Call] = field(default_factory=dict)
    folders: Sequence[str] = ()
    problem: str = ""


def _requested_addresses(found: Graph, branch: Branch, choice: ReplayChoice) -> list[str]:
    if choice.cells:
        return [_address_of_cell(found, branch, choice.turn, name) for name in choice.cells]
    if choice.turn is None:
        return list(found.nodes)
    return [address for address, node in found.nodes.items() if node.turn == choice.turn]


def _address_of_cell(found: Graph, branch: Branch, turn: int | None, name: str) -> str:
    if name.isdecimal() and turn is not None:
        name = f"{turn}.{name}"
    by_id = (address for address, node in found.nodes.items() if node.cell.id == name)
    address = name if name in found.nodes else next(by_id, None)
    if address is None:
        short = branch.name[:8]
        raise NotFoundError(
            f"{short} has no cell “{canonical.one_line(name, 40)}”",
            f"`sessgit cells {short}` lists them. --cell takes 7.3, an id, or a number if the address names a turn.",
        )
    return address


def _calls_by_turn(store: Store, index: Index, branch: Branch, turns: Collection[int]) -> dict[int, _TurnCalls]:
    found: dict[int, _TurnCalls] = {}
    for row in index.turns(branch.name):
        if row.turn in turns:
            try:
                body = body_of(store, branch.tip, row)
                pieces = agents.of(branch.state).content.told(body)[1]
            except SessgitError as error:
                found[row.turn] = _TurnCalls(problem=f"its turn is damaged: {error}")
                continue
            calls = {piece.cell.id: piece for piece in pieces if isinstance(piece, Call)}
            found[row.turn] = _TurnCalls(calls, [line.text("cwd") for line in body])
    return found


def _make_item(
    tools: Tools, node: Node, turns: Mapping[int, _TurnCalls], folder: str, choice: ReplayChoice
) -> PlanItem:
    turn = turns.get(node.turn, _TurnCalls())
    call = turn.calls.get(node.cell.id)
    if call is None:
        return PlanItem(node, why=turn.problem or _no_call_reason(node))
    cwd = turn.folders[call.line - 1] if 0 < call.line <= len(turn.folders) else ""
    item = PlanItem(node, call, cwd=cwd or folder, named=tools.path(call.input))
    why = _skip_reason(tools, call)
    kind = None if why else _cell_kind(tools, node, choice)
    if not why and kind is None:
        why = _no_executor_reason(node)
    if kind in ("read", "search", "write") and not is_below(call_path(item), choice.root):
        refused = "refused: " if kind == "write" else ""
        why = f"{refused}{canonical.one_line(call_path(item), 200)} is outside of the project"
    elif kind == "repl" and cell_code(item.arguments) is None:
        why = f"none of its arguments is code: {', '.join(CODE_ARGUMENTS)}"
    elif kind == "model" and not choice.model:
        why = "a model wrote it: ask one with --llm COMMAND"
    return replace(item, kind=None if why else kind, why=why)


def _no_call_reason(node: Node) -> str:
    return _MESSAGE_REASON if node.cell.type == "llm_call" else "its lines do not describe the call"


def _skip_reason(tools: Tools, call: Call) -> str:
    """Why a cell is not run whatever runs it."""
    if call.cell.ok is None:
        return "no result is recorded: there is nothing to compare with"
    if tools.was_refused(call):
        return "it did not run: the client refused it"
    if any(_REDACTION_MARK in text for text in _nested_strings(call.input)):
        return "a secret in its arguments is redacted"
    if why := tools.why_not(call):
        return why
    if call.images and not call.output.strip():
        return "its result is an image"
    return ""


def _cell_kind(tools: Tools, node: Node, choice: ReplayChoice) -> Kind | None:
    if registered_function(choice.functions, node) is not None:
        return "function"
    if node.cell.type == "repl":
        return "repl"
    if node.cell.type in ("llm_call", "map_reduce"):
        return "model"
    return tools.kind(node.cell.operation) if node.cell.type == "tool" else None


def _no_executor_reason(node: Node) -> str:
    operation = canonical.one_line(node.cell.operation, 60)
    if operation == "PowerShell":
        return "there is no PowerShell here"
    if node.cell.program:
        return f"only a function registered by a program can run {operation}"
    return f"{operation} cannot be run here" if node.cell.type == "tool" else f"a {node.cell.type} cannot be run here"


def _nested_strings(value: Any) -> list[str]:
    """The strings in a value, however deep."""
    waiting, found = [value], list[str]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
