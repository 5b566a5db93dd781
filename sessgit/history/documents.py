"""A session, a turn or a cell as one JSON object, as `show --json` and `export json` print it."""

from __future__ import annotations

import hashlib
from typing import Any

from sessgit import agents
from sessgit.history import session_files, show
from sessgit.history.log import ForkEntry, SideBranch
from sessgit.history.session_totals import FileState, SessionTotals, piece_time
from sessgit.history.show import SessionFamily, SessionStart, ShownCell, ShownTurn
from sessgit.history.views import Prices, session_json, turn_json
from sessgit.model import canonical, prices
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens
from sessgit.model.program_input import Metadata, Task
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store


def session_document(
    store: Store, index: Index, branch: Branch, overrides: Prices, progress: Progress = no_progress
) -> dict[str, Any]:
    """Return a session with all that is known of it. Every turn is read; `progress` gets the number read and of all."""
    rows, seen, state = index.turns(branch.name), SessionTotals(agents.of(branch.state)), branch.state
    for done, row in enumerate(rows):
        progress(done, len(rows))
        seen.take(row, *show.read_pieces(store, branch, row))
    return {
        **session_json(branch, overrides),
        "agent_version": state.agent_version,
        "transcript": state.transcript,
        "ended": state.ended or None,
        "confidence": state.confidence,
        "cells": seen.cells,
        "subagent_calls": seen.recursive,
        "models": {model: _model(state, model, overrides) for model in sorted({*state.tokens, *state.calls})},
        "files": {path: _file(file) for path, file in seen.files.items()},
        "family": _family_json(state, show.session_family(index, branch)),
        "program": _program(state),
        "kept_files": [
            {"path": path, "bytes": size} for path, size in session_files.file_sizes(store, branch.tip).items()
        ],
        "rules": dict(state.rules),
        "redacted": state.redacted,
        "commit": branch.tip,
        "commits": [row.commit for row in rows],
    }


def turn_document(shown: ShownTurn, overrides: Prices) -> dict[str, Any]:
    """Return what `log --json` says of the turn, and its pieces."""
    told, row = shown.told, shown.row
    return {
        **turn_json(shown.view, overrides),
        "session_id": layout.session_of(row.branch),
        "ended": told.ended or None,
        "seconds": shown.seconds,
        "messages": told.messages,
        "interrupted": told.interrupted,
        "compacted": row.compacted,
        "cut": shown.cut or None,
        "files_read": list(told.files_read),
        "files_changed": list(told.files_changed),
        "subagents": [{"name": agent.name, "lines": agent.lines} for agent in shown.subagents],
        "pieces": [piece_json(one) for one in shown.pieces],
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
        "session_id": layout.session_of(shown.branch.name),
        "parent": origin.session if origin else None,
        "fork_turn": origin.turn if origin else None,
        "fork_cell": (origin.cell or None) if origin else None,
        "fork_point": origin.commit if origin else None,
        "pieces": [],
    }


def cell_document(shown: ShownCell, overrides: Prices) -> dict[str, Any]:
    """Return a cell with its input, its output, and the cells of its turn that it depends on."""
    own, call, row = shown.cell, shown.call, shown.turn.row
    used = _usage_json(shown, call.task if call else None, is_message=own.type == "llm_call" and call is None)
    price = prices.token_cost({used["model"] or "": shown.tokens}, overrides)
    output = _output_json(shown)
    return {
        "id": own.id,
        "type": own.type,
        "operation": own.operation,
        "session_id": layout.session_of(row.branch),
        "branch": row.branch,
        "commit": row.commit,
        "turn": row.turn,
        "ordinal": shown.ordinal,
        "lines": list(own.lines),
        "ok": own.ok,
        "time": shown.time or canonical.rfc3339(row.time),
        "seconds": shown.seconds,
        "model": used["model"],
        "input": canonical.bounded(call.input) if call else {},
        "output": output["result"],
        "error": output["error"],
        "thinking": "\n".join(w.text for w in shown.said if w.thinking) or None,
        "exit_code": call.exit_code if call else None,
        "file": (call.file or None) if call else None,
        "changes": _changes_json(call) if call else [],
        "images": call.images if call else 0,
        "client_note": canonical.bounded(call.result) if call else None,
        "dependencies": list(own.depends),
        "dependents": [other.id for other in shown.turn.told.cells if own.id in other.depends],
        "dependency_ordinals": shown.depends,
        "dependent_ordinals": shown.dependents,
        "tokens": shown.tokens.as_json(),
        "cost_usd": None if price is None or own.type != "llm_call" else round(price, 6),
    }


def unified_cell(shown: ShownCell, overrides: Prices) -> dict[str, Any]:
    """Return a cell in the shape that other programs keep: times are Unix times, unknown numbers are left out."""
    own, call, row = shown.cell, shown.call, shown.turn.row
    is_message = own.type == "llm_call" and call is None
    task = call.task if call else None
    used = _usage_json(shown, task, is_message=is_message)
    price = prices.token_cost({used["model"] or "": shown.tokens}, overrides)
    return {
        "cell_id": own.id,
        "created_at": piece_time(shown.time, row) if task is None or task.created is None else task.created,
        "type": own.type,
        "input": {
            "source": (task.source if task else "") or own.type,
            "operation": own.operation,
            "args": canonical.bounded(call.input) if call else {},
        },
        "output": _output_json(shown),
        "dependencies": list(own.depends),
        "dependents": [other.id for other in shown.turn.told.cells if own.id in other.depends],
        "metadata": used,
        "session": layout.session_of(row.branch),
        "branch": row.branch,
        "commit": row.commit,
        "turn": row.turn,
        "ordinal": shown.ordinal,
        "dependency_ordinals": shown.depends,
        "dependent_ordinals": shown.dependents,
        "ok": own.ok,
        "lines": list(own.lines),
        "exit_code": call.exit_code if call else None,
        "file": (call.file or None) if call else None,
        "changes": _changes_json(call) if call else [],
        "noted": canonical.bounded(call.result) if call else None,
        "images": call.images if call else 0,
        "thinking": "\n".join(w.text for w in shown.said if w.thinking) or None,
        "tokens": shown.tokens.as_json(),
        "cost_usd": None if price is None or own.type != "llm_call" else round(price, 6),
    }


def _output_json(shown: ShownCell) -> dict[str, Any]:
    """What a cell came to, in the words of who made it where that was a program."""
    own, call = shown.cell, shown.call
    outcome = call.outcome if call else None
    if outcome is not None:
        output: dict[str, Any] = {"result": canonical.bounded(outcome.result), "error": outcome.error}
    elif call is not None:
        output = {"result": call.output if own.ok else None, "error": call.output if own.ok is False else None}
    else:
        output = {"result": "\n".join(w.text for w in shown.said if not w.thinking), "error": None}
    taken = outcome.execution_time_ms if outcome else None
    if taken is None and shown.seconds is not None:
        taken = round(shown.seconds * 1000, 3)
    return output if taken is None else {**output, "execution_time_ms": taken}


def _usage_json(shown: ShownCell, task: Task | None, *, is_message: bool) -> dict[str, Any]:
    outcome = shown.call.outcome if shown.call else None
    said = task.metadata if task else Metadata()
    spent = sum(outcome.tokens.values()) if outcome else 0
    model = (outcome.model if outcome else "") or said.model or (shown.cell.operation if is_message else "")
    used = spent or said.tokens_used or shown.tokens.total
    return {"depth": said.depth, "model": model or None, "tokens_used": used}


def piece_json(one: Piece) -> dict[str, Any]:
    """Something said, or a call with what came of it; what the client noted beside a call is in the cell's JSON."""
    if isinstance(one, Words):
        return {
            "kind": "words",
            "by": one.by,
            "thinking": one.thinking,
            "ordinal": one.ordinal or None,
            "time": one.time or None,
            "text": one.text,
            "images": one.images,
            "line": one.line,
        }
    return {
        "kind": "call",
        "cell": one.cell.id,
        "ordinal": one.ordinal,
        "tool": one.tool,
        "ok": one.cell.ok,
        "time": one.time or None,
        "ended": one.ended or None,
        "seconds": show.seconds_between(one.time, one.ended),
        "file": one.file or None,
        "input": canonical.bounded(one.input),
        "output": one.output,
        "exit_code": one.exit_code,
        "changes": _changes_json(one),
        "images": one.images,
        "line": one.line,
        "result_line": one.result_line or None,
    }


def _model(state: Session, model: str, overrides: Prices) -> dict[str, Any]:
    tokens = state.tokens.get(model, Tokens())
    price = prices.token_cost({model: tokens}, overrides)
    return {
        "calls": state.calls.get(model, 0),
        "tokens": tokens.as_json(),
        "cost_usd": None if price is None else round(price, 6),
    }


def _file(file: FileState) -> dict[str, Any]:
    data = None if file.text is None else file.text.encode("utf-8", "surrogatepass")
    return {
        "sha256": None if data is None else hashlib.sha256(data).hexdigest(),
        "bytes": None if data is None else len(data),
        "first": canonical.rfc3339(file.first),
        "last": canonical.rfc3339(file.last),
    }


def _program(state: Session) -> dict[str, Any]:
    """Return what a program that drives the session set; null is what it did not set."""
    own = state.unified
    return {
        "version": own.rlm_version or None,
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
        "export_path": own.export_path or None,
    }


def _family_json(state: Session, kin: SessionFamily) -> dict[str, Any]:
    origin = state.origin
    return {
        "origin": None
        if origin is None
        else {
            "session_id": origin.session,
            "turn": origin.turn,
            "cell": origin.cell or None,
            "commit": origin.commit,
        },
        "forks": [_fork_json(fork) for fork in kin.forks],
        "rewound": [_side_branch_json(left) for left in kin.left if left.rewound],
        "other_versions": [_side_branch_json(left) for left in kin.left if not left.rewound],
    }


def _side_branch_json(left: SideBranch) -> dict[str, Any]:
    return {"branch": left.branch.name, "turn": left.turn, "turns": left.count, "brought_back": left.brought}


def _fork_json(fork: ForkEntry) -> dict[str, Any]:
    return {"id": fork.branch.name, "turn": fork.turn, "cell": fork.cell or None}


def _changes_json(call: Call) -> list[dict[str, Any]]:
    return [{"path": change.path, "diff": list(change.diff)} for change in call.changes]
