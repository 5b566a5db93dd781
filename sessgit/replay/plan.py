"""Plans a replay: which cells run again, in which order and by what, or the reason why a cell does not."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.values import FILE_KINDS, ToolKind
from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import cell_graph
from sessgit.history.cell_graph import Graph
from sessgit.history.cells import Node
from sessgit.history.turn_log import body_of
from sessgit.model import canonical, dependency_graph
from sessgit.model.conversation.content import Call
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.replay.sandbox.processes import is_below
from sessgit.store.context import Context
from sessgit.store.index import Branch

Kind = ToolKind | Literal["repl", "model", "command"]

CODE_ARGUMENTS = ("code", "source", "expression")
"""The arguments of a REPL's cell that can hold its code."""
_MESSAGE_REASON = "a message of the model"
_REDACTION_MARK = "[redacted:"


@frozen
class PlanItem:
    """A cell and what runs it, or in `why` the reason why it does not run.

    `call` is the recorded call; None for a message of the model and in a damaged turn. `cwd` is the folder in which it
    ran, as recorded.
    """

    node: Node
    call: Call | None = None
    kind: Kind | None = None
    why: str = ""
    cwd: str = ""
    paths: tuple[str, ...] = ()
    """The files that the call is about, as absolute paths in the conversation."""

    @property
    def is_message(self) -> bool:
        """Whether it is a message of the model, which is no call of anything."""
        return self.why == _MESSAGE_REASON


@frozen
class ReplayPlan:
    """The cells in execution order; `asked` are the addresses of those that were asked for, the others are those that
    these depend on."""

    branch: Branch
    items: tuple[PlanItem, ...]
    asked: frozenset[str]
    damage: tuple[str, ...]

    @property
    def first(self) -> int:
        """The turn of the first cell that runs, 0 if none does."""
        return min((item.node.turn for item in self.items if item.kind), default=0)

    @property
    def place(self) -> str:
        """`@7.3`, `@7` or nothing: the part of the conversation that was asked for, as in an address."""
        turns = {address.partition(".")[0] for address in self.asked}
        return f"@{min(self.asked if len(self.asked) == 1 else turns)}" if len(turns) == 1 else ""

    @property
    def last(self) -> int:
        """The turn of the last cell, 0 if there is none."""
        return max((item.node.turn for item in self.items), default=0)


@frozen
class ReplayChoice:
    """What to run: the cells of a turn, or of all turns, or those in `cells`, named by the ordinal in `turn`, by `7.3`,
    or by the id. With `chain` also all that they depend on. `root` is the recorded folder that the sandbox replaces;
    `model` says whether there is a command that asks a model; `commands` are the operations that a command of the user
    runs."""

    turn: int | None
    cells: Sequence[str]
    chain: bool
    root: str = "/"
    model: bool = False
    commands: Collection[str] = ()


def plan_replay(context: Context, branch: Branch, choice: ReplayChoice, progress: Progress = no_progress) -> ReplayPlan:
    """Return the plan for a choice. Raises NotFoundError for a cell that does not exist."""
    graph = cell_graph.read_graph(context, branch, progress=progress)
    asked = [_cell_address(graph, branch, choice.turn, name) for name in choice.cells] or [
        address for address, node in graph.nodes.items() if choice.turn in (None, node.turn)
    ]
    needs = graph.needs()
    chosen = set(asked)
    if choice.chain:
        for address in asked:
            chosen |= dependency_graph.reachable(needs, address)
    nodes = [node for address, node in graph.nodes.items() if address in chosen]
    turns = _read_calls(context, branch, {node.turn for node in nodes})
    items = tuple(_make_item(branch, node, turns, choice) for node in nodes)
    return ReplayPlan(branch, items, frozenset(asked), tuple(graph.damage))


def cell_code(call: Call) -> str | None:
    """Return the code that a REPL's cell ran."""
    return next((call.input[key] for key in CODE_ARGUMENTS if isinstance(call.input.get(key), str)), None)


@frozen
class _TurnCalls:
    """The calls of a turn by the ids of their cells, and the folder that each line names."""

    calls: Mapping[str, Call] = field(default_factory=dict)
    folders: Sequence[str] = ()
    problem: str = ""


def _cell_address(graph: Graph, branch: Branch, turn: int | None, name: str) -> str:
    if name.isdecimal() and turn is not None:
        name = f"{turn}.{name}"
    if name in graph.nodes:
        return name
    for address, node in graph.nodes.items():
        if node.cell.id == name:
            return address
    short = branch.name[:8]
    raise NotFoundError(
        f"{short} has no cell “{canonical.one_line(name, 40)}”",
        f"`sessgit cells {short}` lists them. --cell takes 7.3, an id, or a number if the address names a turn.",
    )


def _read_calls(context: Context, branch: Branch, numbers: Collection[int]) -> dict[int, _TurnCalls]:
    turns: dict[int, _TurnCalls] = {}
    for row in context.index.turns(branch.name):
        if row.turn in numbers:
            try:
                body = body_of(context.store, branch.tip, row)
                pieces = agents.of(branch.state).content.parse_turn(body)[1]
            except SessgitError as error:
                turns[row.turn] = _TurnCalls(problem=f"its turn is damaged: {error}")
                continue
            calls = {piece.cell.id: piece for piece in pieces if isinstance(piece, Call)}
            folders = list[str]()
            for line in body:
                folders.append(line.cwd or (folders[-1] if folders else ""))
            turns[row.turn] = _TurnCalls(calls, folders)
    return turns


def _make_item(branch: Branch, node: Node, turns: Mapping[int, _TurnCalls], choice: ReplayChoice) -> PlanItem:
    agent, turn = agents.of(branch.state), turns.get(node.turn, _TurnCalls())
    call = turn.calls.get(node.cell.id)
    if call is None:
        is_message = node.cell.type == "llm_call"
        reason = _MESSAGE_REASON if is_message else "its lines do not describe the call"
        return PlanItem(node, why=turn.problem or reason)
    cwd = turn.folders[call.line - 1] if 0 < call.line <= len(turn.folders) else ""
    cwd = cwd or branch.state.project
    paths = tuple(os.path.normpath(os.path.join(cwd, file)) for file in call.files)  # noqa: PTH118 - as the agent has it
    kind: Kind | None = "command" if node.cell.operation in choice.commands else _cell_kind(agent, node)
    item = PlanItem(node, call, kind, cwd=cwd, paths=paths)
    why = skip_reason(agent, call) or _kind_reason(item, call, choice)
    return replace(item, kind=None, why=why) if why else item


def _cell_kind(agent: Agent, node: Node) -> Kind | None:
    if node.cell.type == "repl":
        return "repl"
    if node.cell.type in ("llm_call", "map_reduce"):
        return "model"
    kind = agent.cells.kind(node.cell.operation) if agent.has("tools") and node.cell.type == "tool" else None
    return None if kind in ("search", "subagent") else kind


def skip_reason(agent: Agent, call: Call) -> str:
    """Return why a call is skipped, whatever would run it, or ``""``."""
    if call.cell.ok is None:
        return "no result is recorded: there is nothing to compare with"
    if why := agent.tools.why_not(call) if agent.has("tools") else "":
        return why
    if any(_REDACTION_MARK in text for text in canonical.strings(call.input)):
        return "a secret in its arguments is redacted"
    return "its result is an image" if call.images and not call.output.strip() else ""


def _kind_reason(item: PlanItem, call: Call, choice: ReplayChoice) -> str:
    """Return why its kind of cell cannot run here, or ``""``."""
    cell = item.node.cell
    if item.kind is None:
        operation = canonical.one_line(cell.operation, 60)
        if cell.program:
            return f"only a function registered by a program can run {operation}, or --exec {operation}=COMMAND"
        return f"{operation if cell.type == 'tool' else f'a {cell.type}'} cannot be run here"
    if item.kind in FILE_KINDS and not item.paths:
        return "its arguments name no file"
    outside = [path for path in item.paths if not is_below(path, choice.root)]
    if item.kind in FILE_KINDS and outside:
        refused = "refused: " if item.kind == "write" else ""
        return f"{refused}{canonical.one_line(outside[0], 200)} is outside of the project"
    if item.kind == "repl" and cell_code(call) is None:
        return f"none of its arguments is code: {', '.join(CODE_ARGUMENTS)}"
    if item.kind == "model" and not choice.model:
        return "a model wrote it: ask one with --llm COMMAND"
    return ""
