"""A session, a turn or a cell with all that the store knows of it, and as JSON: what `show` and `export` print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from sessgit import agents
from sessgit.errors import NotFoundError
from sessgit.history import client_files, program_lines, resolve, session_files
from sessgit.history import log as logs
from sessgit.history.cells import cell_ordinal, no_cell_error
from sessgit.history.log import BranchLog
from sessgit.history.session_totals import FileState, SessionTotals, piece_time
from sessgit.history.views import (
    Prices,
    body_of,
    read_pieces,
    rounded_cost,
    session_json,
    subagent_files,
    sum_tokens,
    turn_gists,
    turn_json,
)
from sessgit.model import canonical, prices
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell, Tokens, Turn
from sessgit.model.frozen import frozen
from sessgit.model.line_list import file_lines
from sessgit.model.program_input import Metadata
from sessgit.model.progress import Progress, counted, no_progress
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


def session_card(context: Context, branch: Branch, progress: Progress = no_progress) -> SessionCard:
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
        logs.branch_log(index, branch),
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
    ordinal = cell_ordinal([shown.cell for shown in cells], name)
    if not ordinal:
        raise no_cell_error(branch, number, name, len(cells))
    return cells[ordinal - 1]


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
    if program_lines.lines(store, branch.tip, row.prompt):
        body = [line.raw for line in body_of(store, branch.tip, row)]
    else:
        body = raw_turn(store, branch, row.turn)[len(store.lines(branch.tip, row.turn).before) :]
    return [body[line - 1] for line in shown.cell.lines]


# JSON


def session_document(
    context: Context, branch: Branch, overrides: Prices, progress: Progress = no_progress
) -> dict[str, Any]:
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
        "family": _family_json(state, logs.branch_log(context.index, branch)),
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
