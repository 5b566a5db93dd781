"""Adds what RLM's state of a session has and no turn of it to the documents that have the same shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.history import session_files
from sessgit.history.session_totals import SessionTotals
from sessgit.model import unified_state
from sessgit.model.conversation.session import Session
from sessgit.store import layout
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store

_STATE_PATH = f"{layout.KEPT}/rlm/session.json"
_KEYS_THAT_GROW = ("updated_at", "ended_at", "claude_transcript_path")
"""The keys that change with each turn."""
_PROGRAM_KEYS = (*unified_state.SCALARS, *unified_state.COUNTERS)


@dataclass(frozen=True, slots=True)
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
        context, budget = self._part("context"), self._part("budget")
        files = {path: file.as_json() for path, file in later_totals.files.items()}
        out["context"]["files"] = _merged_files(context.get("files"), files)
        out["context"]["tool_outputs"] = [*_list_or_empty(context.get("tool_outputs")), *later_totals.outputs]
        if "total_tokens_used" in budget:
            out["budget"]["total_tokens_used"] = _add_numbers(
                budget["total_tokens_used"], sum(r.tokens.total for r in later)
            )
        if "by_model" in budget:
            out["budget"]["by_model"] = {**document["budget"]["by_model"], **_model_usage(budget["by_model"], later)}
        if "events_count" in self._part("trajectory"):
            out["trajectory"]["events_count"] = _add_numbers(
                self._part("trajectory")["events_count"], later_totals.events
            )
        return out

    def _part(self, name: str) -> Mapping[str, Any]:
        value = self.state.get(name)
        return value if isinstance(value, dict) else {}

    def _is_current(self, session: Session, part: str, key: str) -> bool:
        """Return whether neither a later turn nor a program has set the value since."""
        if part == "metadata" and key in _KEYS_THAT_GROW:
            return session.turns <= self.turns
        path = f"{part}.{key}"
        return path not in _PROGRAM_KEYS or unified_state.value_at(session.unified, path) is None


def imported_state(store: Store, branch: Branch) -> ImportedState | None:
    """Return the state that an import stored with a session, or None."""
    entry = store.repo.entry(store.tree(branch.tip), _STATE_PATH)
    note = session_files.source_note(store, branch.tip, branch.state.id) if entry else {}
    turns, own = note.get("turns"), note.get("id")
    if entry is None or type(turns) is not int or not isinstance(own, str):
        return None
    try:
        state = json.loads(store.repo.blob(entry[0]))
    except (ValueError, RecursionError):
        return None
    return ImportedState(own, turns, state) if isinstance(state, dict) else None


def _list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _merged_files(imported: object, later: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the files of the state, with those that later turns named."""
    files = imported if isinstance(imported, dict) else {}
    old = {path: one for path, one in files.items() if path in later and isinstance(one, dict)}
    both = {path: {**one, **later[path], **_first_access(one)} for path, one in old.items()}
    return {**files, **later, **both}


def _first_access(file: Mapping[str, Any]) -> dict[str, Any]:
    return {"first_access": file["first_access"]} if "first_access" in file else {}


def _model_usage(imported: object, later: Sequence[Row]) -> dict[str, Any]:
    """Return what the state has of each model, with the tokens of later turns."""
    out: dict[str, Any] = dict(imported) if isinstance(imported, dict) else {}
    for row in later:
        model = row.trailer("Model")
        usage = out.get(model)
        if isinstance(usage, dict):
            out[model] = {**usage, "tokens": _add_numbers(usage.get("tokens", 0), row.tokens.total)}
    return out


def _add_numbers(value: object, more: int) -> object:
    """Return the sum, or the value as it is if it is no number."""
    return value + more if type(value) in (int, float) and more else value  # type: ignore[operator]
