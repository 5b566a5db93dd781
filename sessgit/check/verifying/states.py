"""The state that a commit holds: whether it is in the form that writers give it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from sessgit import agents
from sessgit.branch import edit
from sessgit.check.verifying.report import Report
from sessgit.errors import DamageError, SessgitError
from sessgit.model import canonical, ids, unified_state
from sessgit.model.address import check_name
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Origin, Session
from sessgit.store import layout
from sessgit.store.store import Store

_LONGEST_TITLE = 200
_MOST_PATHS = 3
_PROGRAM_KEYS: Mapping[str, Collection[str]] = {
    **unified_state.KEYS,
    "context": ("working_memory", "files", "tool_outputs"),
    "trajectory": ("export_path", "events_count"),
}
"""What programs set, and what other systems keep there that follows from the lines."""


def read(store: Store, commit: str, session: str, report: Report) -> Session:
    """Return the state of a commit of a session, and report the values that no writer writes; raises DamageError if it
    cannot be read."""
    entry = store.repo.entry(store.tree(commit), layout.STATE)
    if entry is None:
        raise DamageError(f"it has no {layout.STATE}")
    data = store.repo.blob(entry[0])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"{layout.STATE} is not JSON: {error}") from error
    state = sessions.loads(document)
    if not isinstance(document, dict):
        report.wrong("state", f"{layout.STATE} is not an object")
        return state
    for path in islice(differing_paths(document, json.loads(sessions.dumps(_valid(state, session)))), _MOST_PATHS):
        report.wrong("state", f"{path} is missing or not valid")
    memory = state.unified.working_memory
    if memory and unified_state.memory_size(memory) > unified_state.LARGEST_MEMORY:
        report.add("note", "state", "its working memory is larger than 64 KiB")
    if canonical.dumps(document) != data:
        report.wrong("state", f"{layout.STATE} is not written in the canonical form")
    return state


def differing_paths(one: Mapping[str, Any], other: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths at which two JSON objects differ."""
    for key in sorted(one.keys() | other.keys()):
        left, right = one.get(key, differing_paths), other.get(key, differing_paths)
        if isinstance(left, dict) and isinstance(right, dict):
            yield from differing_paths(left, right, f"{above}{key}.")
        elif left != right or isinstance(left, bool) != isinstance(right, bool):
            yield canonical.one_line(f"{above}{key}", 80)


def _valid(state: Session, session: str) -> Session:
    """Return the state with each value replaced that no writer writes."""
    return replace(
        state,
        id=session,
        agent=state.agent if state.agent in agents.PACKAGES else "",
        agent_id=state.agent_id if ids.session_id(state.agent_id or session) == session else session,
        title=state.title[:_LONGEST_TITLE],
        created=_valid_time(state.created),
        updated=_valid_time(state.updated),
        ended=_valid_time(state.ended),
        origin=state.origin if state.origin and _is_fork_point(state.origin, session) else None,
        rules={"cut": 0, "redact": 0, **state.rules},
        name=_accepted(check_name, state.name),
        description=_accepted(lambda text: edit.parse_description(text) and text, state.description),
        labels=tuple({label for label in state.labels if _accepted(edit.label, label)})[: edit.MOST_LABELS],
        stage=_accepted(edit.parse_stage, state.stage),
        extra={part: _without_program_keys(part, value) for part, value in state.extra.items()},
    )


def _valid_time(text: str) -> str:
    return text if canonical.seconds(text) is not None else ""


def _accepted(parse: Callable[[str], object], value: str) -> str:
    """Return the value if `edit` would accept and store it as it is, else ``""``."""
    try:
        return value if value and parse(value) == value else ""
    except SessgitError:
        return ""


def _is_fork_point(origin: Origin, session: str) -> bool:
    shapes = (
        re.fullmatch("[0-9a-f]{40}", origin.commit),
        re.fullmatch("[0-9a-f]{64}" if origin.prefix else "", origin.prefix_sha256),
        re.fullmatch(rf"(?:{origin.turn + 1}\.[1-9][0-9]{{0,8}})?", origin.cell),
    )
    return all(shapes) and ids.is_branch(origin.session) and origin.session != session


def _without_program_keys(part: str, value: Any) -> Any:
    keys = _PROGRAM_KEYS.get(part, ())
    if not isinstance(value, dict):
        return None if keys else value
    return {key: inner for key, inner in value.items() if key not in keys}
