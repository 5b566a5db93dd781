"""The whole state of a session as one document in the shape that other programs for such sessions use.

Times in it are seconds since 1970, and a number that nobody knows is left out. Files and tool outputs are computed from
the lines of all turns: nothing of them is stored.
"""

from __future__ import annotations

from typing import Any

from sessgit import agents
from sessgit.history import imported_state, show
from sessgit.history.session_totals import SessionTotals, activation_json, budget_json
from sessgit.history.views import Prices
from sessgit.model import canonical
from sessgit.model.conversation.session import Session
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

INDEX_PATH = "cells/index.json"
"""Where the cells' index lies in the folder that such a document stands in."""


def unified_document(
    store: Store, index: Index, branch: Branch, overrides: Prices, progress: Progress = no_progress
) -> dict[str, Any]:
    """The document; every turn is read for it, and `progress` told of how many of how many."""
    rows, kept = index.turns(branch.name), imported_state.imported_state(store, branch)
    seen = SessionTotals(agents.of(branch.state), kept.turns if kept else 0)
    for done, row in enumerate(rows):
        progress(done, len(rows))
        seen.take(row, *show.read_pieces(store, branch, row))
    found = unified_outline(branch, overrides, seen)
    files = {path: file.as_json() for path, file in seen.files.items()}
    found["context"] = {"files": files, "tool_outputs": seen.outputs, **found["context"]}
    found["cells"]["count"] = seen.cells
    found["trajectory"]["events_count"] = seen.events
    if kept is None:
        return found
    found = kept.merge_into(found, branch.state, rows, seen)
    found["metadata"]["session_id"] = kept.id
    if isinstance(found["context"].get("conversation"), list):
        found["context"]["conversation"] = [*found["context"]["conversation"], *seen.said]
    return found


def unified_outline(branch: Branch, overrides: Prices, seen: SessionTotals | None = None) -> dict[str, Any]:
    """The same without what only the lines of the turns tell: files, tool outputs, and how many events there were."""
    state = branch.state
    used = budget_json(state, seen.recursive if seen else 0, overrides)
    if seen is None and state.unified.budget.total_recursive_calls is None:
        del used["total_recursive_calls"]
    for model in used["by_model"].values():
        del model["by_kind"]
    return {
        "metadata": _unified_metadata(branch.name, state),
        "activation": activation_json(state),
        "context": {"working_memory": canonical.bounded(dict(state.unified.working_memory))},
        "budget": used,
        "cells": {"count": state.cells, "index_path": INDEX_PATH},
        "trajectory": {"export_path": state.unified.export_path or None},
    }


def _unified_metadata(branch: str, state: Session) -> dict[str, Any]:
    created = canonical.seconds(state.created) or 0.0
    version = state.unified.rlm_version
    return {
        "session_id": layout.session_of(branch),
        "created_at": created,
        "updated_at": canonical.seconds(state.updated) or created,
        "ended_at": canonical.seconds(state.ended),
        "cwd": state.project,
        "claude_transcript_path": state.transcript,
        **({"rlm_version": version} if version else {}),
    }
