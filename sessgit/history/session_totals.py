"""What the turns of a session amount to in the shape that other programs use: files, outputs, activation, budget.

Nothing of it is stored: files and outputs are computed from the lines, and what programs set is in the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessgit.agents.base import Agent
from sessgit.history.views import Prices, total_tokens
from sessgit.model import canonical, prices
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens, Turn
from sessgit.store.index import Row

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
        self.messages += [
            _message_json(piece, row) for piece in pieces if isinstance(piece, Words) and not piece.thinking
        ]
        self.events += len(pieces)
        for call in (one for one in pieces if isinstance(one, Call)):
            self.recursive += call.tool in self.agent.cells.SUBAGENT_TOOLS
            if call.file and call.tool in self.agent.cells.FILE_TOOLS:
                self._touch(call, row)
            if call.result_line:
                self.outputs.append(_tool_output_json(call, row))
        del self.outputs[:-_MOST_OUTPUTS]

    def _touch(self, call: Call, row: Row) -> None:
        at = piece_time(call.ended or call.time, row)
        file = self.files.setdefault(call.file, FileState(piece_time(call.time, row), at))
        file.last = max(file.last, at)
        file.text = self.agent.content.content_after(call, file.text)


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
        "by_model": {model: _model_json(state, model, overrides) for model in models},
    }


def piece_time(time: str, row: Row) -> float:
    """Return the time of a piece in seconds since 1970; if its line has none, that of its turn."""
    seconds = canonical.seconds(time)
    return float(row.time) if seconds is None else seconds


def _message_json(words: Words, row: Row) -> dict[str, Any]:
    role = "assistant" if words.by == "model" else "user"
    return {"role": role, "content": words.text, "timestamp": piece_time(words.time, row)}


def _tool_output_json(call: Call, row: Row) -> dict[str, Any]:
    return {
        "tool_name": call.tool,
        "content_preview": call.output[:_PREVIEW_LENGTH],
        "exit_code": call.exit_code,
        "timestamp": piece_time(call.ended or call.time, row),
        "cell_id": call.cell.id,
    }


def _model_json(state: Session, model: str, overrides: Prices) -> dict[str, Any]:
    tokens = state.tokens.get(model, Tokens())
    known = _cost_json({model: tokens}, overrides)
    return {"calls": state.calls.get(model, 0), "tokens": tokens.total, **known}


def _cost_json(tokens: Mapping[str, Tokens], overrides: Prices) -> dict[str, float]:
    price = prices.token_cost(tokens, overrides)
    return {} if price is None else {"cost_usd": round(price, 6)}
