"""Changes the parts of a session's state that are for programs: activation, working memory, budget.

A change is one `edit` commit on the session's head, as `sessgit edit` makes it, and one operation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from sessgit import agents
from sessgit.errors import UsageError
from sessgit.model import canonical, humanize, program_input
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session, Unified
from sessgit.model.frozen import frozen
from sessgit.record import edit_commit
from sessgit.record.edit_commit import StateEdit
from sessgit.store import secret_filter
from sessgit.store.context import Context
from sessgit.store.store import Store

_LONGEST_VALUE = 60
_MOST_NAMED = 3


@frozen
class StateRequest:
    """A change of a state.

    `parts` has the form of `session.json`: a named key is set, or removed by None; others stay. In it,
    `context.working_memory` replaces the whole memory; then `remember` sets and `forget` removes single keys of it.
    `more` adds to the counters `total_recursive_calls` and `cost_usd`.
    """

    parts: Mapping[str, Any] = field(default_factory=dict)
    remember: Mapping[str, Any] = field(default_factory=dict)
    forget: tuple[str, ...] = ()
    more: Mapping[str, float] = field(default_factory=dict)


def change_state(context: Context, session_id: str, request: StateRequest) -> str:
    """Change the parts of a session's state, also while others change it; return the commit, ``""`` if nothing changed.

    Raises UsageError, and changes nothing, if a key or a value is invalid or the memory would be too large, and
    NotFoundError if there is no such session.
    """
    store = context.store

    def change(tip: str) -> tuple[StateEdit | None, None]:
        before = store.state(tip)
        after = _changed_state(before, _redacted(store, request, before))
        if after is None:
            return None, None
        return StateEdit(_change_summary(before.unified, after.unified), after), None

    return edit_commit.commit_on_head(context, session_id, "state", change)[1]


def _changed_state(before: Session, request: StateRequest) -> Session | None:
    """Return the changed state, None if nothing changes; raises UsageError."""
    # Loads pydantic, which only programs that set something need.
    from sessgit.model.program_values import program_values

    values = program_values(request.parts)
    after = sessions.with_values(before.unified, values)
    for path, more in program_values({"budget": request.more} if request.more else {}).items():
        total = sessions.merged_counter(None, sessions.value_at(after, path), more)
        after = sessions.with_values(after, {path: total})
    kept = {key: value for key, value in after.working_memory.items() if key not in request.forget}
    memory, old_memory = {**kept, **request.remember}, before.unified.working_memory
    size = sessions.memory_size(memory)
    if size > max(sessions.LARGEST_MEMORY, sessions.memory_size(old_memory)):
        raise UsageError(
            f"the working memory would have {humanize.format_size(size)}, "
            f"but at most {humanize.format_size(sessions.LARGEST_MEMORY)} are allowed",
            "Remove something, or keep large values in a cell or a file, and only their name here.",
        )
    if sessions.is_deeper(memory, sessions.DEEPEST_MEMORY):
        raise UsageError(
            f"the working memory is nested more than {sessions.DEEPEST_MEMORY} deep",
            "Store deeper values as text.",
        )
    is_same_memory = sessions.is_same_json(memory, old_memory)
    after = replace(after, context=before.unified.context if is_same_memory else sessions.Memory(memory or None))
    if request.remember or request.forget:
        values[sessions.MEMORY] = memory
    extra = dict(before.extra)
    for path in values:  # what is set now replaces a value that could not be read
        part, _, key = path.partition(".")
        if isinstance(extra.get(part), dict) and key in extra[part]:
            extra[part] = {name: value for name, value in extra[part].items() if name != key}
            if not extra[part]:
                del extra[part]
    if is_same_memory and (after, extra) == (before.unified, before.extra):
        return None
    return replace(before, unified=after, extra=extra)


def _redacted(store: Store, request: StateRequest, state: Session) -> StateRequest:
    """Return the request as JSON has it, with secrets redacted if those of the session are."""
    document = {key.name: getattr(request, key.name) for key in fields(request)}
    document = json.loads(program_input.to_json_line(document, "what a program sets of a state"))
    if not isinstance(document["parts"], dict) or not isinstance(document["remember"], dict):
        raise UsageError("the state that a program sets must be an object", "Nothing was changed.")
    clean = secret_filter.line_cleaner(store.paths, state.rules, agents.of(state).protected_keys)
    data, secrets = clean(canonical.compact(document))
    document = json.loads(data) if secrets else document
    return StateRequest(**{**document, "forget": tuple(document["forget"])})


def _change_summary(before: Unified, after: Unified) -> str:
    """Return what changed, for the commit's subject: `rlm active true, memory +plan`."""
    parts = []
    for path in (*sessions.SCALARS, *sessions.COUNTERS, *sessions.OWN):
        value = sessions.value_at(after, path)
        if value != sessions.value_at(before, path):
            name = path.partition(".")[2].replace("_", " ")
            parts.append(f"no {name}" if value is None else f"{name} {_shown_value(value)}")
    old, new = before.working_memory, after.working_memory
    keys = [f"+{key}" for key in new if key not in old or not sessions.is_same_json(new[key], old[key])]
    keys += [f"-{key}" for key in old if key not in new]
    if keys:
        more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
        parts.append(f"memory {' '.join(canonical.one_line(key, 20) for key in keys[:_MOST_NAMED])}{more}")
    return ", ".join(parts)


def _shown_value(value: object) -> str:
    if isinstance(value, str):
        return f"“{canonical.one_line(value, _LONGEST_VALUE)}”"
    return canonical.compact(value).decode()
