"""A session, a turn or a cell with all that the store knows of it, and as JSON: what `show` and `export` print."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.values import FILE_KINDS
from sessgit.errors import NotFoundError
from sessgit.history import client_files, resolve, session_files, turn_log
from sessgit.history.cells import cell_position
from sessgit.history.turn_log import (
    BranchLog,
    Prices,
    body_of,
    read_pieces,
    rounded_cost,
    session_json,
    subagent_files,
    sum_tokens,
    total_tokens,
    turn_gists,
    turn_json,
)
from sessgit.model import canonical, prices
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell, Tokens, Turn
from sessgit.model.frozen import frozen
from sessgit.model.line_list import file_lines
from sessgit.model.program_input import Metadata
from sessgit.model.progress import Progress, counted
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, ForkPlace, Row
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.model.conversation.story import Subagent


@frozen
class SessionCard:
    """A session, its forks and side branches by turn, and its last turn.

    `parent` is the branch that it left, None if there is none in the store; `at` is where, as both are now. `changed`
    and `read` are the files that tools named, the last ones first; one that was changed is not in `read`. `only_here`
    says that the client's file is gone.
    """

    branch: Branch
    parent: Branch | None
    at: ForkPlace | None
    log: BranchLog
    changed: list[str]
    read: list[str]
    last: Turn | None
    only_here: bool
    source: Mapping[str, Any] = field(default_factory=dict)
    """The note of the system that it was imported from: `system`, `id` and `facts`."""
    subagents: Mapping[str, Tokens] = field(default_factory=dict)
    """What its subagents used, by model, as far as the index knows: the state does not count it."""

    @property
    def state(self) -> Session:
        return self.branch.state


@frozen
class ShownTurn:
    """A turn, what its lines say, its pieces in order, and by name the number of lines of each subagent's file that
    was recorded with it.

    `cut` is the address of the cell at which a fork took it over, as `7.3`, or empty.
    """

    branch: Branch
    row: Row
    content: Turn
    pieces: list[Piece]
    subagents: Mapping[str, int]
    cut: str = ""

    @property
    def seconds(self) -> float | None:
        """The time from the prompt to the last line, None if times are missing."""
        return canonical.seconds_between(self.content.time, self.content.ended)


@frozen
class ShownCell:
    """A cell of a turn: a `call`, or a message of the model with its `words` and `tokens`."""

    turn: ShownTurn
    cell: Cell
    ordinal: int
    call: Call | None
    words: list[Words]
    tokens: Tokens

    @property
    def depends(self) -> list[int]:
        """The ordinals of the cells that it depends on."""
        return [n for n, other in enumerate(self.turn.content.cells, start=1) if other.id in self.cell.depends]

    @property
    def dependents(self) -> list[int]:
        """The ordinals of the cells that depend on it."""
        return [n for n, other in enumerate(self.turn.content.cells, start=1) if self.cell.id in other.depends]

    @property
    def time(self) -> str:
        """When it began, RFC 3339 or empty."""
        return self.call.time if self.call else next((words.time for words in self.words), "")

    @property
    def seconds(self) -> float | None:
        """How long the call took, None if that is unknown."""
        return self.call.seconds if self.call else None


@frozen
class SessionStart:
    """The start of a session, before turn 1: the first commit of its history; `at` is where it left another session, as
    both are now."""

    branch: Branch
    at: ForkPlace | None
    commit: str
    time: float


def session_card(context: Context, branch: Branch, progress: Progress) -> SessionCard:
    """Return the card of a session, or of a side branch. Only the last turn is read, and turns whose gists are not in
    the index."""
    index, rows, origin = context.index, context.index.turns(branch.name), branch.state.origin
    gists = turn_gists(context, branch, rows, progress) if rows else []
    changed: dict[str, None] = {}
    read: dict[str, None] = {}
    for gist in reversed(gists):
        changed.update(dict.fromkeys(reversed(gist.files_changed)))
        read.update(dict.fromkeys(reversed(gist.files_read)))
    used = sum_tokens(gist.subagents for gist in gists if gist.subagents)
    is_other = layout.is_other_version(branch.name)
    return SessionCard(
        branch,
        (index.branch(origin.session) or index.branch(layout.session_of(origin.session))) if origin else None,
        index.fork_place(branch),
        turn_log.branch_log(index, branch),
        list(changed),
        [name for name in read if name not in changed],
        read_pieces(context.store, branch, rows[-1])[0] if rows else None,
        not is_other and client_files.is_lost(branch.state, context.homes, context.store.paths),
        session_files.source_note(context.store, branch.tip, branch.state.id),
        used,
    )


def show_turn(context: Context, branch: Branch, number: int) -> ShownTurn:
    """Return a turn of a branch; raises NotFoundError if it has none of that number."""
    row = resolve.row_of(context.index, branch, number)
    content, pieces = read_pieces(context.store, branch, row)
    origin = branch.state.origin
    cut = origin.cell if origin and row.trailer("Event") == "fork" else ""
    files = context.store.entries(branch.tip, f"{layout.turn_folder(number)}/{layout.SUBAGENTS}")
    subagents = {
        name.removeprefix("agent-").removesuffix(".jsonl"): len(file_lines(context.store.objects.lines(oid, 0)))
        for name, (oid, is_tree) in sorted(files.items())
        if name.endswith(".jsonl") and not is_tree
    }
    return ShownTurn(branch, row, content, pieces, subagents, cut)


def show_cell(context: Context, branch: Branch, number: int, name: str) -> ShownCell:
    """Return the cell of a turn with that ordinal or id; raises NotFoundError if the turn has none."""
    if not number:
        raise NotFoundError(
            "there is no cell before the first turn",
            f"`sessgit show {branch.short}@1` shows the first turn.",
        )
    cells = list(shown_cells(context, branch, number))
    return cells[cell_position(branch, number, [shown.cell for shown in cells], name)]


def shown_cells(context: Context, branch: Branch, number: int) -> Iterator[ShownCell]:
    """Yield the cells of a turn; raises NotFoundError if the branch has no turn of that number."""
    turn, agent = show_turn(context, branch, number), agents.of(branch.state)
    body = body_of(context.store, branch.tip, turn.row)
    calls = {piece.ordinal: piece for piece in turn.pieces if isinstance(piece, Call)}
    words: dict[int, list[Words]] = {}
    for piece in turn.pieces:
        if isinstance(piece, Words) and piece.ordinal:
            words.setdefault(piece.ordinal, []).append(piece)
    for ordinal, cell in enumerate(turn.content.cells, start=1):
        tokens = agent.tokens(body, cell) or Tokens()
        yield ShownCell(turn, cell, ordinal, calls.get(ordinal), words.get(ordinal, []), tokens)


def show_start(context: Context, branch: Branch) -> SessionStart:
    """Return the start of a session, before turn 1."""
    row = context.index.turn(branch.name, 1)
    first = (context.store.commit(row.commits[0]).parents or (row.commits[0],))[0] if row else branch.tip
    return SessionStart(branch, context.index.fork_place(branch), first, context.store.commit(first).time)


# Subagents


def read_subagents(store: Store, row: Row, pieces: Iterable[Piece]) -> Iterator[Subagent]:
    """Yield the subagents of a turn with these pieces, each with the call that started it or went on with it."""
    from sessgit.model.conversation.story import Subagent

    agent = agents.of_turn(store, row)
    started = [
        (piece.ordinal, f"{piece.output}{json.dumps(piece.result)}")  # the result names the subagent
        for piece in pieces
        if isinstance(piece, Call) and agent.cells.kind(piece.tool) == "subagent"
    ]
    for file, data in sorted(subagent_files(store, row.commit, row.turn).items()):
        name = file.removeprefix("agent-").removesuffix(".jsonl")
        calls = [ordinal for ordinal, result in started if name in result]
        lines = agent.sidecars.own_lines(data)
        said = agent.content.parse_turn(lines)[1] if lines else []
        yield Subagent(name, calls[-1] if calls else 0, tuple(said))


# The recorded lines


def raw_session(store: Store, branch: Branch) -> Iterator[bytes]:
    """Yield the lines of all turns without their newlines, as the session's own file has them."""
    for number in range(1, branch.state.turns + 1):
        yield from raw_turn(store, branch, number)


def raw_turn(store: Store, branch: Branch, number: int) -> list[bytes]:
    """Return the lines before a turn's prompt and its body."""
    from sessgit.history import reassemble

    return reassemble.turn_lines(store, branch.tip, branch.state, number)


def raw_cell(store: Store, shown: ShownCell) -> list[bytes]:
    """Return the lines of a message, or of a call and its result."""
    branch, row = shown.turn.branch, shown.turn.row
    if turn_log.program_lines(store, branch.tip, row.prompt):
        body = [line.raw for line in body_of(store, branch.tip, row)]
    else:
        body = raw_turn(store, branch, row.turn)[len(store.lines(branch.tip, row.turn).before) :]
    return [body[line - 1] for line in shown.cell.lines]


# JSON


def session_document(context: Context, branch: Branch, overrides: Prices, progress: Progress) -> dict[str, Any]:
    """Return a session with all that is known of it. Every turn is read; `progress` counts them."""
    rows, totals, state = context.index.turns(branch.name), SessionTotals(agents.of(branch.state)), branch.state
    note = session_files.source_note(context.store, branch.tip, state.id)
    for row in counted(rows, progress):
        totals.add(row, *read_pieces(context.store, branch, row))
    return {
        **session_json(branch, overrides),
        "agent_version": state.agent_version,
        "transcript": state.transcript,
        "ended": state.ended or None,
        "confidence": state.confidence,
        "cells": totals.cells,
        "subagent_calls": totals.recursive,
        "models": {
            model: {
                "calls": state.calls.get(model, 0),
                "tokens": (tokens := state.tokens.get(model, Tokens())).as_json(),
                "cost_usd": rounded_cost(prices.token_cost({model: tokens}, overrides)),
            }
            for model in sorted({*state.tokens, *state.calls})
        },
        "files": {path: _file_json(file) for path, file in totals.files.items()},
        "family": _family_json(state, turn_log.branch_log(context.index, branch)),
        "program": _program_json(state),
        "source": {"system": note["system"], "id": note["id"], "facts": canonical.bounded(note.get("facts") or {})}
        if {"system", "id"} <= note.keys()
        else None,
        "kept_files": [
            {"path": path, "bytes": size} for path, size in session_files.file_sizes(context.store, branch.tip).items()
        ],
        "rules": dict(state.rules),
        "redacted": state.redacted,
        "commit": branch.tip,
        "commits": [row.commit for row in rows],
    }


def turn_document(shown: ShownTurn, overrides: Prices) -> dict[str, Any]:
    """Return what `log --json` prints of a turn, and its pieces."""
    content, row = shown.content, shown.row
    return {
        **turn_json(row, content, overrides),
        "session_id": layout.session_of(row.branch),
        "ended": content.ended or None,
        "seconds": shown.seconds,
        "messages": content.messages,
        "interrupted": content.interrupted,
        "compacted": row.compacted,
        "cut": shown.cut or None,
        "files_read": list(content.files_read),
        "files_changed": list(content.files_changed),
        "subagents": [{"name": name, "lines": lines} for name, lines in shown.subagents.items()],
        "pieces": [piece_json(piece) for piece in shown.pieces],
    }


def start_document(shown: SessionStart) -> dict[str, Any]:
    """Return turn 0, the start of a session."""
    origin = shown.branch.state.origin
    return {
        "turn": 0,
        "branch": shown.branch.name,
        "commit": shown.commit,
        "commits": [shown.commit],
        "event": "start",
        "time": canonical.rfc3339(shown.time),
        "session_id": shown.branch.session,
        "parent": origin.session if origin else None,
        "fork_turn": origin.turn if origin else None,
        "fork_cell": (origin.cell or None) if origin else None,
        "fork_point": origin.commit if origin else None,
        "pieces": [],
    }


def cell_document(shown: ShownCell, overrides: Prices) -> dict[str, Any]:
    """Return a cell with its input, its output, and the cells of its turn that it depends on."""
    cell, call, row = shown.cell, shown.call, shown.turn.row
    usage, output = _usage_json(shown), _output_json(shown)
    price = prices.token_cost({usage["model"] or "": shown.tokens}, overrides)
    return {
        "id": cell.id,
        "type": cell.type,
        "operation": cell.operation,
        "session_id": layout.session_of(row.branch),
        "branch": row.branch,
        "commit": row.commit,
        "turn": row.turn,
        "ordinal": shown.ordinal,
        "lines": list(cell.lines),
        "ok": cell.ok,
        "time": shown.time or canonical.rfc3339(row.time),
        "seconds": shown.seconds,
        "model": usage["model"],
        "input": canonical.bounded(call.input) if call else {},
        "output": output["result"],
        "error": output["error"],
        "thinking": "\n".join(words.text for words in shown.words if words.thinking) or None,
        "exit_code": call.exit_code if call else None,
        "file": (call.file or None) if call else None,
        "changes": _changes_json(call) if call else [],
        "images": len(call.images) if call else 0,
        "client_note": canonical.bounded(call.result) if call else None,
        "dependencies": list(cell.depends),
        "dependents": [other.id for other in shown.turn.content.cells if cell.id in other.depends],
        "dependency_ordinals": shown.depends,
        "dependent_ordinals": shown.dependents,
        "tokens": shown.tokens.as_json(),
        "cost_usd": rounded_cost(price) if cell.type == "llm_call" else None,
    }


def unified_cell(shown: ShownCell, overrides: Prices) -> dict[str, Any]:
    """Return a cell in the form of other programs: times are Unix times, unknown numbers are left out."""
    document, task = cell_document(shown, overrides), shown.call.task if shown.call else None
    kept = (
        "branch", "commit", "turn", "ordinal", "dependency_ordinals", "dependent_ordinals", "ok", "lines", "exit_code",
        "file", "changes", "images", "thinking", "tokens", "cost_usd",
    )  # fmt: skip
    created = None if task is None else task.created
    return {
        "cell_id": document["id"],
        "created_at": piece_time(shown.time, shown.turn.row) if created is None else created,
        "type": document["type"],
        "input": {
            "source": (task.source if task else "") or document["type"],
            "operation": document["operation"],
            "args": document["input"],
        },
        "output": _output_json(shown),
        "dependencies": document["dependencies"],
        "dependents": document["dependents"],
        "metadata": _usage_json(shown),
        "session": document["session_id"],
        "noted": document["client_note"],
        **{key: document[key] for key in kept},
    }


def _output_json(shown: ShownCell) -> dict[str, Any]:
    """Return the result of a cell, as a program gave it if it was a program's."""
    cell, call = shown.cell, shown.call
    outcome = call.outcome if call else None
    if outcome is not None:
        output: dict[str, Any] = {"result": canonical.bounded(outcome.result), "error": outcome.error}
    elif call is not None:
        output = {"result": call.output if cell.ok else None, "error": call.output if cell.ok is False else None}
    else:
        output = {"result": "\n".join(words.text for words in shown.words if not words.thinking), "error": None}
    ms = outcome.execution_time_ms if outcome else None
    if ms is None and shown.seconds is not None:
        ms = round(shown.seconds * 1000, 3)
    return output if ms is None else {**output, "execution_time_ms": ms}


def _usage_json(shown: ShownCell) -> dict[str, Any]:
    """Return the depth, the model and the tokens of a cell, as a program gave them, else as its lines tell."""
    call = shown.call
    outcome = call.outcome if call else None
    metadata = call.task.metadata if call and call.task else Metadata()
    own_model = shown.cell.operation if shown.cell.type == "llm_call" and call is None else ""
    return {
        "depth": metadata.depth,
        "model": (outcome.model if outcome else "") or metadata.model or own_model or None,
        "tokens_used": (sum(outcome.tokens.values()) if outcome else 0) or metadata.tokens_used or shown.tokens.total,
    }


def piece_json(piece: Piece) -> dict[str, Any]:
    """Return words, or a call with its result; what the client noted with a call is in the cell's JSON."""
    if isinstance(piece, Words):
        return {
            "kind": "words",
            "by": piece.by,
            "thinking": piece.thinking,
            "ordinal": piece.ordinal or None,
            "time": piece.time or None,
            "text": piece.text,
            "images": len(piece.images),
            "line": piece.line,
        }
    return {
        "kind": "call",
        "cell": piece.cell.id,
        "ordinal": piece.ordinal,
        "tool": piece.tool,
        "ok": piece.cell.ok,
        "time": piece.time or None,
        "ended": piece.ended or None,
        "seconds": piece.seconds,
        "file": piece.file or None,
        "input": canonical.bounded(piece.input),
        "output": piece.output,
        "exit_code": piece.exit_code,
        "changes": _changes_json(piece),
        "images": len(piece.images),
        "line": piece.line,
        "result_line": piece.result_line or None,
    }


def _file_json(file: FileState) -> dict[str, Any]:
    known = file.as_json()
    return {
        "sha256": known.get("hash"),
        "bytes": known.get("size_bytes"),
        "first": canonical.rfc3339(file.first),
        "last": canonical.rfc3339(file.last),
    }


def _program_json(state: Session) -> dict[str, Any]:
    """Return what a program set that drives the session; what it did not set is null."""
    own = state.unified
    return {
        "version": own.metadata.rlm_version or None,
        "active": own.activation.rlm_active,
        "mode": own.activation.activation_mode or None,
        "reason": own.activation.activation_reason,
        "complexity": own.activation.complexity_score,
        "depth": own.activation.current_depth,
        "max_depth": own.activation.max_depth,
        "calls": own.budget.total_recursive_calls,
        "max_calls": own.budget.max_recursive_calls,
        "cost_usd": own.budget.cost_usd,
        "memory": canonical.bounded(dict(own.working_memory)),
        "export_path": own.trajectory.export_path or None,
    }


def _family_json(state: Session, log: BranchLog) -> dict[str, Any]:
    origin = state.origin
    rewound, others = (
        [
            {"branch": side.branch.name, "turn": side.turn, "turns": side.count, "brought_back": side.merged}
            for turn in sorted(log.left)
            for side in log.left[turn]
            if side.rewound == kind
        ]
        for kind in (True, False)
    )
    return {
        "origin": None
        if origin is None
        else {
            "session_id": origin.session,
            "turn": origin.turn,
            "cell": origin.cell or None,
            "commit": origin.commit,
        },
        "forks": [
            {"id": fork.branch.name, "turn": fork.turn, "cell": fork.cell or None}
            for turn in sorted(log.forks)
            for fork in log.forks[turn]
        ],
        "rewound": rewound,
        "other_versions": others,
    }


def _changes_json(call: Call) -> list[dict[str, Any]]:
    return [{"path": change.path, "diff": list(change.diff)} for change in call.changes]


# What the turns of a session amount to, in the shape that other programs use: files, outputs, activation, budget
#
# Nothing of it is stored: files and outputs are computed from the lines, and what programs set is in the state. Of a
# session from RLM, the state that the import stored completes the documents.

_MOST_OUTPUTS = 100
_PREVIEW_LENGTH = 1000


@dataclass
class SessionTotals:
    """What the turns so far amount to: `events` counts their pieces, `recursive` the subagents that were called.

    Of turns up to number `since` only cells are counted.
    """

    agent: Agent
    since: int = 0
    files: dict[str, FileState] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """The last 100 results, as documents have them."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    """The messages of the person and of the model, as documents have them."""
    cells: int = 0
    events: int = 0
    recursive: int = 0

    def add(self, row: Row, turn: Turn, pieces: Sequence[Piece]) -> None:
        """Add the next turn."""
        self.cells += len(turn.cells)
        if row.turn <= self.since:
            return
        for words in (one for one in pieces if isinstance(one, Words) and not one.thinking):
            role = "assistant" if words.by == "model" else "user"
            time = piece_time(words.time, row)
            self.messages.append({"role": role, "content": words.text, "timestamp": time})
        self.events += len(pieces)
        for call in (one for one in pieces if isinstance(one, Call)):
            self.recursive += self.agent.cells.kind(call.tool) == "subagent"
            at = piece_time(call.ended or call.time, row)
            for path in call.files if self.agent.cells.kind(call.tool) in FILE_KINDS else ():
                file = self.files.setdefault(path, FileState(piece_time(call.time, row), at))
                file.last = max(file.last, at)
                file.text = self.agent.content.content_after(call, path, file.text)
            if call.result_line:
                self.outputs.append(
                    {
                        "tool_name": call.tool,
                        "content_preview": call.output[:_PREVIEW_LENGTH],
                        "exit_code": call.exit_code,
                        "timestamp": at,
                        "cell_id": call.cell.id,
                    }
                )
        del self.outputs[:-_MOST_OUTPUTS]


@dataclass
class FileState:
    """A file: its whole text as of the last call, None if the lines do not have it, and when tools first and last named
    it, in seconds since 1970."""

    first: float
    last: float
    text: str | None = None

    def as_json(self) -> dict[str, Any]:
        times = {"first_access": self.first, "last_access": self.last}
        if self.text is None:
            return times
        data = self.text.encode("utf-8", "surrogatepass")
        return {"hash": hashlib.sha256(data).hexdigest(), "size_bytes": len(data), **times}


def activation_json(state: Session) -> dict[str, Any]:
    """Return the activation that a program set, else that of a conversation that no program drives."""
    own = state.unified.activation
    most = {} if own.max_depth is None else {"max_depth": own.max_depth}
    return {
        "rlm_active": own.rlm_active is True,
        "activation_mode": own.activation_mode or "never",
        "activation_reason": own.activation_reason,
        "complexity_score": own.complexity_score,
        "current_depth": own.current_depth or 0,
        **most,
    }


def budget_json(state: Session, recursive: int, overrides: Prices) -> dict[str, Any]:
    """Return what was used, by model: calls and cost as a program set them, else from the lines and the prices."""
    own, models = state.unified.budget, sorted({*state.tokens, *state.calls})
    most = {} if own.max_recursive_calls is None else {"max_recursive_calls": own.max_recursive_calls}
    return {
        "total_tokens_used": total_tokens(state).total,
        "total_recursive_calls": recursive if own.total_recursive_calls is None else own.total_recursive_calls,
        **most,
        **(_cost_json(state.tokens, overrides) if own.cost_usd is None else {"cost_usd": own.cost_usd}),
        "by_model": {
            model: {
                "calls": state.calls.get(model, 0),
                "tokens": (used := {model: state.tokens.get(model, Tokens())})[model].total,
                **_cost_json(used, overrides),
            }
            for model in models
        },
    }


def piece_time(time: str, row: Row) -> float:
    """Return the time of a piece in seconds since 1970; if its line has none, that of its turn."""
    seconds = canonical.seconds(time)
    return float(row.time) if seconds is None else seconds


def _cost_json(tokens: Mapping[str, Tokens], overrides: Prices) -> dict[str, float]:
    price = prices.token_cost(tokens, overrides)
    return {} if price is None else {"cost_usd": round(price, 6)}


# What an import stored

_STATE_PATH = f"{layout.KEPT}/rlm/session.json"
_KEYS_THAT_GROW = ("updated_at", "ended_at", "claude_transcript_path")
"""The keys that change with each turn."""
_PROGRAM_KEYS = (*sessions.SCALARS, *sessions.COUNTERS)


@frozen
class ImportedState:
    """The part of a state that an import stored: `state` has the form of a unified document, without what the session
    itself has; `id` is the session's id in the other system, and `turns` the number of turns that the state covers."""

    id: str
    turns: int
    state: Mapping[str, Any]

    def merge_into(
        self, document: Mapping[str, Any], session: Session, rows: Sequence[Row], later_totals: SessionTotals
    ) -> dict[str, Any]:
        """Return the document completed from the state.

        `later_totals` are of the turns after the state: their files, tool outputs, tokens and events are added to those
        of the state.
        """
        out: dict[str, Any] = {**self.state, **document}
        for part, values in document.items():
            if isinstance(values, dict):
                imported = {key: one for key, one in self._part(part).items() if self._is_current(session, part, key)}
                out[part] = {**values, **imported}
        later = [row for row in rows if row.turn > self.turns]
        outputs, budget = self._part("context").get("tool_outputs"), self._part("budget")
        files = {path: file.as_json() for path, file in later_totals.files.items()}
        out["context"]["files"] = merged_files(self.files, files)
        out["context"]["tool_outputs"] = [*(outputs if isinstance(outputs, list) else []), *later_totals.outputs]
        if "total_tokens_used" in budget:
            out["budget"]["total_tokens_used"] = _add_numbers(
                budget["total_tokens_used"], sum(r.tokens.total for r in later)
            )
        if isinstance(budget.get("by_model"), dict):
            models = dict(budget["by_model"])
            for row in later:
                if isinstance(usage := models.get(model := row.trailer("Model")), dict):
                    models[model] = {**usage, "tokens": _add_numbers(usage.get("tokens", 0), row.tokens.total)}
            out["budget"]["by_model"] = {**document["budget"]["by_model"], **models}
        if "events_count" in self._part("trajectory"):
            out["trajectory"]["events_count"] = _add_numbers(
                self._part("trajectory")["events_count"], later_totals.events
            )
        return out

    @property
    def files(self) -> dict[str, Any]:
        """The files in its context, by their paths."""
        files = self._part("context").get("files")
        return files if isinstance(files, dict) else {}

    def _part(self, name: str) -> Mapping[str, Any]:
        value = self.state.get(name)
        return value if isinstance(value, dict) else {}

    def _is_current(self, session: Session, part: str, key: str) -> bool:
        """Return whether neither a later turn nor a program has set the value since."""
        if part == "metadata" and key in _KEYS_THAT_GROW:
            return session.turns <= self.turns
        path = f"{part}.{key}"
        return path not in _PROGRAM_KEYS or sessions.value_at(session.unified, path) is None


def imported_state(store: Store, branch: Branch) -> ImportedState | None:
    """Return the state that an import stored with a session, or None."""
    entry = store.entry(branch.tip, _STATE_PATH)
    note = session_files.source_note(store, branch.tip, branch.state.id) if entry else {}
    turns, own = note.get("turns"), note.get("id")
    if entry is None or type(turns) is not int or not isinstance(own, str):
        return None
    try:
        state = json.loads(store.objects.blob(entry[0]))
    except (ValueError, RecursionError):
        return None
    return ImportedState(own, turns, state) if isinstance(state, dict) else None


def inherited_files(context: Context, branch: Branch, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the files that a fork of an imported session has from its state: all if the fork has all imported turns,
    else those without a time and those first accessed before the first turn that it lacks."""
    note = session_files.kept_note(context.store, branch.tip)
    source = context.index.branch(str(note.get("session", "")))
    imported = imported_state(context.store, source) if source and source.name != branch.name else None
    if imported is None or source is None:
        return {}
    own = {row.commit for row in rows}
    lacking = (row for row in context.index.turns(source.name)[: imported.turns] if row.commit not in own)
    if (first := next(lacking, None)) is None:
        return imported.files
    times = {path: file.get("first_access") if isinstance(file, dict) else 0 for path, file in imported.files.items()}
    lacking_since = {path for path, time in times.items() if isinstance(time, int | float) and time >= first.time}
    return {path: file for path, file in imported.files.items() if path not in lacking_since}


def merged_files(files: Mapping[str, Any], later: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the files of a state, with those that later turns named."""
    old = {path: one for path, one in files.items() if path in later and isinstance(one, dict)}
    both = {path: {**one, **later[path]} for path, one in old.items()}
    for path, one in old.items():
        both[path]["first_access"] = one.get("first_access", both[path]["first_access"])
    return {**files, **later, **both}


def _add_numbers(value: object, more: int) -> object:
    """Return the sum, or the value as it is if it is no number."""
    return value + more if type(value) in (int, float) and more else value  # type: ignore[operator]
