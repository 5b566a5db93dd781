"""What a program sets of a session's state: whether its way of working is on, what it keeps in mind, what it spends.

A change is one `edit` commit on the session's head, as those of `sessgit edit` are, and one operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit import agents
from sessgit.branch import edit as edits
from sessgit.errors import UsageError
from sessgit.model import canonical, humanize, program_input, unified_state
from sessgit.model.conversation.session import Session
from sessgit.model.unified_state import Unified
from sessgit.record import edit_commit
from sessgit.record.edit_commit import StateEdit
from sessgit.store import locks
from sessgit.store.index import Index
from sessgit.store.secrets import secret_filter
from sessgit.store.store import Store

_LONGEST_VALUE = 60
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class StateRequest:
    """What shall be different.

    `parts` has the form of `session.json`: a key that is named is set, None takes it away, and all others stay. There
    `context.working_memory` is the whole memory; `remember` sets single keys of it after that, and `forget` takes some
    away. `more` is added to counters, by `total_recursive_calls` and `cost_usd`.
    """

    parts: Mapping[str, Any] = field(default_factory=dict)
    remember: Mapping[str, Any] = field(default_factory=dict)
    forget: tuple[str, ...] = ()
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateResult:
    """The state before and after a change; `commit` is ``""`` where nothing changed.

    `secrets` counts what was replaced in the new words.
    """

    before: Session
    after: Session
    commit: str = ""
    secrets: int = 0


def change_state(store: Store, index: Index, session_id: str, wanted: StateRequest, now: float) -> StateResult:
    """Changes the parts of a session's state, whatever else is at work on it; `now` is in seconds since 1970.

    Raises UsageError, with nothing changed, where a key or a value is wrong or the memory would be too large, and
    NotFoundError where there is no such session.
    """

    def made(tip: str) -> tuple[StateEdit | None, StateResult]:
        done = changed_state(store, store.state(tip), wanted)
        if done.after is done.before:
            return None, done
        return StateEdit(_change_summary(done.before.unified, done.after.unified), done.after), done

    with locks.session_lock(store.beside, session_id, edits.LOCK_TIMEOUT):
        done, commit = edit_commit.commit_on_head(store, index, session_id, "state", made, now)
    return replace(done, commit=commit)


def changed_state(store: Store, before: Session, wanted: StateRequest) -> StateResult:
    """The state with what is wanted, of which nothing is recorded yet; raises UsageError."""
    # Not loaded where no program sets anything.
    from sessgit.model.schema import parts

    given, secrets = _as_json_redacted(store, wanted, before)
    values = parts.program_values(given.parts)
    after = unified_state.with_values(before.unified, values)
    for path, more in parts.program_values({"budget": given.more} if given.more else {}).items():
        after = unified_state.with_values(
            after, {path: unified_state.merged_counter(None, unified_state.value_at(after, path), more)}
        )
    kept = {key: said for key, said in after.working_memory.items() if key not in given.forget}
    memory = {**kept, **given.remember}
    _check_memory(before.unified.working_memory, memory)
    remembers = not unified_state.is_same_json(memory, before.unified.working_memory)
    after = replace(after, working_memory=memory if remembers else before.unified.working_memory)
    if given.remember or given.forget:
        values[unified_state.MEMORY] = memory
    extra = _without_unreadable(before.extra, values)
    if not remembers and (after, extra) == (before.unified, before.extra):
        return StateResult(before, before, secrets=secrets)
    return StateResult(before, replace(before, unified=after, extra=extra), secrets=secrets)


def _as_json_redacted(store: Store, wanted: StateRequest, state: Session) -> tuple[StateRequest, int]:
    """The same as JSON has it, with secrets replaced where the session's are, and how many."""
    said = {"parts": wanted.parts, "remember": wanted.remember, "forget": list(wanted.forget), "more": wanted.more}
    plain = json.loads(program_input.to_json_line(said, "what a program sets of a state"))
    if not isinstance(plain["parts"], dict) or not isinstance(plain["remember"], dict):
        raise UsageError("the state that a program sets must be an object", "Nothing was changed.")
    clean, secrets = secret_filter.line_cleaner(store.beside, state.rules, agents.of(state).protected_keys)(
        canonical.compact(plain)
    )
    plain = json.loads(clean) if secrets else plain
    return StateRequest(plain["parts"], plain["remember"], tuple(plain["forget"]), plain["more"]), secrets


def _check_memory(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raises UsageError where a memory gets too large; what makes it smaller is always right."""
    new = unified_state.memory_size(after)
    if new > unified_state.LARGEST_MEMORY and new > unified_state.memory_size(before):
        raise UsageError(
            f"the working memory would have {humanize.format_size(new)}, "
            f"but at most {humanize.format_size(unified_state.LARGEST_MEMORY)} are allowed",
            "Remove something, or keep large values in a cell or a file, and only their name here.",
        )
    if unified_state.is_deeper(after, unified_state.DEEPEST_MEMORY):
        raise UsageError(
            f"the working memory is nested more than {unified_state.DEEPEST_MEMORY} deep",
            "Store deeper values as text.",
        )


def _without_unreadable(extra: Mapping[str, Any], paths: Iterable[str]) -> Mapping[str, Any]:
    """What nobody could read of a state, but for what is set now."""
    out = dict(extra)
    for path in paths:
        part, _, key = path.partition(".")
        if isinstance(out.get(part), dict) and key in out[part]:
            out[part] = {name: said for name, said in out[part].items() if name != key}
            if not out[part]:
                del out[part]
    return out


def _change_summary(before: Unified, after: Unified) -> str:
    """`rlm active true, memory +plan`: what changed, for the commit's subject."""
    parts = []
    for path in (*unified_state.SCALARS, *unified_state.COUNTERS, *unified_state.OWN):
        value = unified_state.value_at(after, path)
        if value != unified_state.value_at(before, path):
            name = path.partition(".")[2].replace("_", " ")
            parts.append(f"no {name}" if value is None else f"{name} {_shown_value(value)}")
    old, new = before.working_memory, after.working_memory
    keys = [f"+{key}" for key in new if key not in old or not unified_state.is_same_json(new[key], old[key])]
    keys += [f"-{key}" for key in old if key not in new]
    if keys:
        more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
        parts.append(f"memory {' '.join(canonical.one_line(key, 20) for key in keys[:_MOST_NAMED])}{more}")
    return ", ".join(parts)


def _shown_value(value: object) -> str:
    if isinstance(value, str):
        return f"“{canonical.one_line(value, _LONGEST_VALUE)}”"
    return canonical.compact(value).decode()
