"""What `show --json` gives: a session, a turn or a cell as one JSON object, with the keys of `docs/json.md`.

Those of a session and of a cell have the shape of a schema that other programs use: times in it are numbers, seconds
since 1970, and a number that nobody knows is left out. The keys are a contract: they are only ever added to.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessgit.agents.claude import content
from sessgit.model import canonical, prices
from sessgit.model.content import Call, Piece, Words
from sessgit.model.session import Session
from sessgit.model.turn import Tokens, Turn, count
from sessgit.ops import show
from sessgit.ops.cells import graph as cell_graph
from sessgit.ops.cells import index as cell_index
from sessgit.ops.log import Left
from sessgit.ops.reading.views import Prices, Report, total, turn_json
from sessgit.ops.show import Family, ShownCell, ShownTurn, Start
from sessgit.store import layout
from sessgit.store.index import Branch, Index, Row
from sessgit.store.store import Store

_MODES = ("complexity", "manual", "always", "never")
_FILE_TOOLS = ("Read", "NotebookRead", "Write", "Edit", "MultiEdit", "NotebookEdit")
_SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
_OUTPUTS = 100
_PREVIEW = 1000
_DEEPEST = 100


def session(
    store: Store, index: Index, branch: Branch, overrides: Prices, report: Report = lambda done, total: None
) -> dict[str, Any]:
    """The value of `sessgit.session/v1`; every turn is read for it, and `report` told of how many of how many."""
    seen = _Seen()
    rows = index.turns(branch.name)
    for done, row in enumerate(rows):
        report(done, len(rows))
        seen.take(row, *show.read(store, branch, row))
    state = branch.state
    kin = show.family(index, branch)
    graph = cell_graph.read(store, index, branch)
    return {
        "metadata": _metadata(state),
        "activation": _activation(state),
        "context": {
            "files": {path: file.as_json() for path, file in seen.files.items()},
            "tool_outputs": seen.outputs[-_OUTPUTS:],
            "working_memory": bounded(_mapping(_mapping(state.extra.get("context")).get("working_memory"))),
        },
        "budget": _budget(state, seen.recursive, overrides),
        "cells": {"count": seen.cells, **cell_index.document(layout.session_of(branch.name), graph)},
        "trajectory": {
            "events_count": seen.events,
            "export_path": None,
            "turns": state.turns,
            "messages": state.messages,
        },
        "tokens": total(state).as_json(),
        "authored": {
            "name": state.name,
            "description": state.description,
            "labels": list(state.labels),
            "stage": state.stage,
            "confidence": state.confidence,
        },
        "family": _family(state, kin),
        "rules": {**state.rules, "redacted": state.redacted},
        "git": {"branch": branch.name, "commit": branch.tip, "turns": [row.commit for row in rows]},
    }


def turn(shown: ShownTurn, overrides: Prices) -> dict[str, Any]:
    """The value of `sessgit.turn/v1`: what `log --json` says of the turn, and its pieces."""
    told, row = shown.told, shown.row
    return {
        **turn_json(shown.view, overrides),
        "session": layout.session_of(row.branch),
        "ended": told.ended or None,
        "seconds": shown.seconds,
        "messages": told.messages,
        "interrupted": told.interrupted,
        "compacted": row.compacted,
        "cut": shown.cut or None,
        "files_read": list(told.files_read),
        "files_changed": list(told.files_changed),
        "subagents": [{"name": agent.name, "lines": agent.lines} for agent in shown.subagents],
        "pieces": [piece(one) for one in shown.pieces],
    }


def start(shown: Start) -> dict[str, Any]:
    """The value of `sessgit.turn/v1` for turn 0."""
    origin = shown.branch.state.origin
    return {
        "turn": 0,
        "branch": shown.branch.name,
        "commit": shown.commit,
        "commits": [shown.commit],
        "event": "start",
        "time": canonical.rfc3339(shown.time),
        "session": layout.session_of(shown.branch.name),
        "parent": origin.session if origin else None,
        "fork_turn": origin.turn if origin else None,
        "fork_cell": (origin.cell or None) if origin else None,
        "fork_point": origin.commit if origin else None,
        "pieces": [],
    }


def cell(shown: ShownCell, overrides: Prices) -> dict[str, Any]:
    """The value of `sessgit.cell/v1`."""
    own, call, row = shown.cell, shown.call, shown.turn.row
    price = prices.cost({own.operation: shown.tokens}, overrides)
    output: dict[str, Any] = {"result": "\n".join(w.text for w in shown.said if not w.thinking), "error": None}
    if call is not None:
        output = {"result": call.output if own.ok else None, "error": call.output if own.ok is False else None}
    if shown.seconds is not None:
        output["execution_time_ms"] = round(shown.seconds * 1000, 3)
    is_message = own.type == "llm_call"
    return {
        "cell_id": own.id,
        "created_at": _moment(shown.time, row),
        "type": own.type,
        "input": {"source": own.type, "operation": own.operation, "args": bounded(call.input) if call else {}},
        "output": output,
        "dependencies": list(own.depends),
        "dependents": [other.id for other in shown.turn.told.cells if own.id in other.depends],
        "metadata": {"depth": 0, "model": own.operation if is_message else None, "tokens_used": shown.tokens.total},
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
        "changes": _changes(call) if call else [],
        "noted": bounded(call.result) if call else None,
        "images": call.images if call else 0,
        "thinking": "\n".join(w.text for w in shown.said if w.thinking) or None,
        "tokens": shown.tokens.as_json(),
        "cost_usd": None if price is None or not is_message else round(price, 6),
    }


def piece(one: Piece) -> dict[str, Any]:
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
        "seconds": show.between(one.time, one.ended),
        "file": one.file or None,
        "input": bounded(one.input),
        "output": one.output,
        "exit_code": one.exit_code,
        "changes": _changes(one),
        "images": one.images,
        "line": one.line,
        "result_line": one.result_line or None,
    }


def bounded(value: Any, depth: int = _DEEPEST) -> Any:
    """The value as JSON that every reader takes: what is nested too deeply is an ellipsis, what is no number null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return "…"
    if isinstance(value, dict):
        return {key: bounded(inner, depth - 1) for key, inner in value.items()}
    return [bounded(inner, depth - 1) for inner in value]


# Inside


@dataclass
class _File:
    """What is known of a file: its whole text as far as the lines told it last, and when tools named it."""

    first: float
    last: float
    text: str | None = None

    def as_json(self) -> dict[str, Any]:
        times = {"first_access": self.first, "last_access": self.last}
        if self.text is None:
            return times
        data = self.text.encode("utf-8", "surrogatepass")
        return {"hash": hashlib.sha256(data).hexdigest(), "size_bytes": len(data), **times}


@dataclass
class _Seen:
    """What the turns so far amount to."""

    files: dict[str, _File] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    cells: int = 0
    events: int = 0
    recursive: int = 0

    def take(self, row: Row, told: Turn, pieces: Sequence[Piece]) -> None:
        self.cells += len(told.cells)
        self.events += len(pieces)
        for call in (one for one in pieces if isinstance(one, Call)):
            self.recursive += call.tool in _SUBAGENT_TOOLS
            if call.file and call.tool in _FILE_TOOLS:
                self._touch(call, row)
            if call.result_line:
                self.outputs.append(_tool_output(call, row))
        del self.outputs[:-_OUTPUTS]

    def _touch(self, call: Call, row: Row) -> None:
        moment = _moment(call.ended or call.time, row)
        file = self.files.setdefault(call.file, _File(_moment(call.time, row), moment))
        file.last = max(file.last, moment)
        file.text = content.content_after(call, file.text)


def _tool_output(call: Call, row: Row) -> dict[str, Any]:
    return {
        "tool_name": call.tool,
        "content_preview": call.output[:_PREVIEW],
        "exit_code": call.exit_code,
        "timestamp": _moment(call.ended or call.time, row),
        "cell_id": call.cell.id,
    }


def _metadata(state: Session) -> dict[str, Any]:
    created = canonical.seconds(state.created) or 0.0
    return {
        "session_id": state.id,
        "agent": state.agent,
        "agent_id": state.agent_id,
        "agent_version": state.agent_version,
        "name": state.name,
        "title": state.title,
        "first_prompt": state.first_prompt,
        "cwd": state.project,
        "git_branch": state.git_branch,
        "claude_transcript_path": state.transcript,
        "created_at": created,
        "updated_at": canonical.seconds(state.updated) or created,
        "ended_at": canonical.seconds(state.ended),
        "state": state.state,
        "headless": state.headless,
    }


def _activation(state: Session) -> dict[str, Any]:
    """As a program left it in the state, else what holds for a conversation that no program drives."""
    given = _mapping(state.extra.get("activation"))
    mode, reason, score = (given.get(k) for k in ("activation_mode", "activation_reason", "complexity_score"))
    return {
        "rlm_active": given.get("rlm_active") is True,
        "activation_mode": mode if mode in _MODES else "never",
        "activation_reason": reason if isinstance(reason, str) else None,
        "complexity_score": score if isinstance(score, int | float) and not isinstance(score, bool) else None,
        "current_depth": count(given.get("current_depth")),
    }


def _budget(state: Session, recursive: int, overrides: Prices) -> dict[str, Any]:
    models = sorted({*state.tokens, *state.calls})
    return {
        "total_tokens_used": total(state).total,
        "total_recursive_calls": recursive,
        **_cost(state.tokens, overrides),
        "by_model": {model: _model(state, model, overrides) for model in models},
    }


def _model(state: Session, model: str, overrides: Prices) -> dict[str, Any]:
    tokens = state.tokens.get(model, Tokens())
    known = _cost({model: tokens}, overrides)
    return {"calls": state.calls.get(model, 0), "tokens": tokens.total, **known, "by_kind": tokens.as_json()}


def _cost(tokens: Mapping[str, Tokens], overrides: Prices) -> dict[str, float]:
    price = prices.cost(tokens, overrides)
    return {} if price is None else {"cost_usd": round(price, 6)}


def _family(state: Session, kin: Family) -> dict[str, Any]:
    origin = state.origin
    return {
        "origin": None
        if origin is None
        else {
            "session": origin.session,
            "turn": origin.turn,
            "cell": origin.cell or None,
            "commit": origin.commit,
        },
        "forks": [_fork(fork) for fork in kin.forks],
        "rewound": [_left(left) for left in kin.left if left.rewound],
        "elsewhere": [_left(left) for left in kin.left if not left.rewound],
    }


def _left(left: Left) -> dict[str, Any]:
    return {"branch": left.branch.name, "turn": left.turn, "turns": left.count, "brought_back": left.brought}


def _fork(fork: Branch) -> dict[str, Any]:
    origin = fork.state.origin
    assert origin is not None
    return {"session": fork.name, "turn": origin.turn, "cell": origin.cell or None}


def _changes(call: Call) -> list[dict[str, Any]]:
    return [{"path": change.path, "diff": list(change.diff)} for change in call.changes]


def _moment(time: str, row: Row) -> float:
    """The time in seconds; where a line has none, that of its turn."""
    found = canonical.seconds(time)
    return float(row.time) if found is None else found


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
