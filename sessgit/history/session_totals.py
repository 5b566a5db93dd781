"""What the turns of a session amount to in the shape that other programs use: files, outputs, activation, budget.

Nothing of it is stored: files and outputs are computed from the lines, and what programs set is in the state.
Of a session from RLM, the state that the import stored completes the documents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessgit.agents.base import Agent
from sessgit.agents.values import FILE_KINDS
from sessgit.history import session_files
from sessgit.history.views import Prices, total_tokens
from sessgit.model import canonical, prices
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens, Turn
from sessgit.model.frozen import frozen
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store

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
