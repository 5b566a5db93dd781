"""What RLM's state of a session says and no turn of it does, put back into the documents that have the same shape."""

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
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

_STATE_PATH = f"{layout.KEPT}/rlm/session.json"
_KEYS_THAT_GROW = ("updated_at", "ended_at", "claude_transcript_path")
"""What is another with each turn."""
_PROGRAM_KEYS = (*unified_state.SCALARS, *unified_state.COUNTERS)


@dataclass(frozen=True, slots=True)
class ImportedState:
    """What an import kept of a state: `state` has the form of a unified document, without what the session says here;
    `id` is the session's id there, and `turns` is the number of turns of which the state speaks."""

    id: str
    turns: int
    state: Mapping[str, Any]

    def merge_into(
        self, document: Mapping[str, Any], session: Session, rows: Sequence[Row], seen: SessionTotals
    ) -> dict[str, Any]:
        """Return the document with what the state says.

        `seen` has looked at the later turns alone: files, tool outputs, tokens and events of these are added to those
        of the state.
        """
        out: dict[str, Any] = {**self.state, **document}
        for part, values in document.items():
            if isinstance(values, dict):
                said = {key: one for key, one in self._part(part).items() if self._holds(session, part, key)}
                out[part] = {**values, **said}
        later = [row for row in rows if row.turn > self.turns]
        context, budget = self._part("context"), self._part("budget")
        files = {path: file.as_json() for path, file in seen.files.items()}
        out["context"]["files"] = _merged_files(context.get("files"), files)
        out["context"]["tool_outputs"] = [*_list_or_empty(context.get("tool_outputs")), *seen.outputs]
        if "total_tokens_used" in budget:
            out["budget"]["total_tokens_used"] = _add_numbers(
                budget["total_tokens_used"], sum(r.tokens.total for r in later)
            )
        if "by_model" in budget:
            out["budget"]["by_model"] = {**document["budget"]["by_model"], **_model_usage(budget["by_model"], later)}
        if "events_count" in self._part("trajectory"):
            out["trajectory"]["events_count"] = _add_numbers(self._part("trajectory")["events_count"], seen.events)
        return out

    def _part(self, name: str) -> Mapping[str, Any]:
        found = self.state.get(name)
        return found if isinstance(found, dict) else {}

    def _holds(self, session: Session, part: str, key: str) -> bool:
        """Whether nothing here says otherwise since."""
        if part == "metadata" and key in _KEYS_THAT_GROW:
            return session.turns <= self.turns
        path = f"{part}.{key}"
        return path not in _PROGRAM_KEYS or unified_state.value_at(session.unified, path) is None


def imported_state(store: Store, branch: Branch) -> ImportedState | None:
    """What an import kept of the state of a session, or None where it kept nothing."""
    entry = store.repo.entry(store.tree(branch.tip), _STATE_PATH)
    noted = session_files.source_note(store, branch.tip, branch.state.id) if entry else {}
    turns, own = noted.get("turns"), noted.get("id")
    if entry is None or type(turns) is not int or not isinstance(own, str):
        return None
    try:
        found = json.loads(store.repo.blob(entry[0]))
    except (ValueError, RecursionError):
        return None
    return ImportedState(own, turns, found) if isinstance(found, dict) else None


def _list_or_empty(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _merged_files(found: object, later: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The files of the state, and what is known of those that later turns named."""
    files = found if isinstance(found, dict) else {}
    old = {path: one for path, one in files.items() if path in later and isinstance(one, dict)}
    both = {path: {**one, **later[path], **_first_access(one)} for path, one in old.items()}
    return {**files, **later, **both}


def _first_access(file: Mapping[str, Any]) -> dict[str, Any]:
    return {"first_access": file["first_access"]} if "first_access" in file else {}


def _model_usage(found: object, later: Sequence[Row]) -> dict[str, Any]:
    """What the state says of each model, with the tokens of later turns."""
    out: dict[str, Any] = dict(found) if isinstance(found, dict) else {}
    for row in later:
        said = out.get(row.message.get("Model"))
        if isinstance(said, dict):
            more = _add_numbers(said.get("tokens", 0), row.tokens.total)
            out[row.message.get("Model")] = {**said, "tokens": more}
    return out


def _add_numbers(found: object, more: int) -> object:
    """A number of the state and what came since; as it is where it is no number."""
    return found + more if type(found) in (int, float) and more else found  # type: ignore[operator]
