"""The state that a commit holds: its form, its bounds, and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from sessgit.branch import edit
from sessgit.check.verifying.turns import Where
from sessgit.errors import DamageError, SessgitError
from sessgit.model import canonical, ids, unified_state
from sessgit.model.address import check_name
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import STAGES, STATES, Origin, Session
from sessgit.model.conversation.turn import Tokens, Turn
from sessgit.model.finding import Finding
from sessgit.store import layout
from sessgit.store.store import Store

_TITLE = 200
_RULES = ("cut", "redact")
_AGENT = "claude"
_SHOWN = 3
_OF_PROGRAMS = {
    "activation": (
        "rlm_active", "activation_mode", "activation_reason", "complexity_score", "current_depth", "max_depth",
    ),
    "budget": ("max_recursive_calls", "total_recursive_calls", "cost_usd"),
    "context": ("working_memory", "files", "tool_outputs"),
    "trajectory": ("export_path", "events_count"),
    "metadata": ("rlm_version",),
}  # fmt: skip
"""What programs set, and what other systems keep beside it that follows from the lines."""


def read(store: Store, commit: str, session: str, where: Where) -> tuple[Session, list[Finding]]:
    """The state of a commit of a session, and what is wrong with it; raises DamageError where it cannot be read."""
    entry = store.repo.entry(store.tree(commit), layout.STATE)
    if entry is None:
        raise DamageError(f"it has no {layout.STATE}")
    data = store.repo.blob(entry[0])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"{layout.STATE} is no JSON: {error}") from error
    state = sessions.loads(document)
    found = [where.found("wrong", "state", said) for said in _wrong(document, state, session)]
    memory = state.unified.working_memory
    if memory and unified_state.size(memory) > unified_state.LARGEST_MEMORY:
        found.append(where.found("note", "state", "its working memory is larger than 64 KiB"))
    if canonical.dumps(document) != data:
        found.append(where.found("wrong", "state", f"{layout.STATE} is not written in the canonical form"))
    return state, found


def expected(before: Session, told: Turn, number: int, made: str) -> Session:
    """The counts after a turn, from the state before it; `made` is when a fork inside of it was, else ``""``."""
    after = sessions.after_turn(before, told, number)
    return replace(after, updated=max(after.updated, made))


def still(before: Session, state: Session, event: str) -> Session:
    """The counts after a commit that brings no turn; an edit may know a later time, as another system said it."""
    return replace(before, updated=max(before.updated, state.updated)) if event == "edit" else before


def compare(state: Session, wanted: Session, where: Where) -> Iterator[Finding]:
    """What a state counts that does not follow from the turns."""
    pairs: dict[str, tuple[Any, Any]] = {
        "turns": (state.turns, wanted.turns),
        "messages": (state.messages, wanted.messages),
        "cells": (state.cells, wanted.cells),
        "tokens": (_used(state), _used(wanted)),
        "first prompt": (state.first_prompt, wanted.first_prompt),
        "latest time": (state.updated, wanted.updated),
    }
    wrong = [
        f"{name} {said}, by the turns {right}" if isinstance(said, int) else f"its {name}"
        for name, (said, right) in pairs.items()
        if said != right
    ]
    if wrong:
        yield where.found("wrong", "counts", f"{layout.STATE} counts {', '.join(wrong)}, which the turns do not say")


# Inside


def _wrong(document: Any, state: Session, session: str) -> Iterator[str]:
    if not isinstance(document, dict):
        yield f"{layout.STATE} is no object"
        return
    if state.id != session:
        yield f"the state is that of {canonical.one_line(state.id, 80) or 'no session'}"
    elif state.agent_id and ids.session_id(state.agent_id) != session:
        yield f"the agent's id {canonical.one_line(state.agent_id, 80)} gives another session's id"
    for part in ("metadata", "budget", "cells", "trajectory", "rules", "authored"):
        if not isinstance(document.get(part), dict):
            yield f"{layout.STATE} has no {part}"
    said = _part(document, "metadata").get("state")
    if said not in STATES:
        yield f"the state “{canonical.one_line(str(said), 40)}” is none"
    yield from _authored(_part(document, "authored"), state)
    yield from (f"rules.{rule} is missing" for rule in _RULES if rule not in state.rules)
    yield from _kinds(document, state)
    if state.agent != _AGENT:
        yield f"the agent “{canonical.one_line(state.agent, 40)}” is none"
    if state.origin is not None:
        yield from _left(state.origin, session)
    for key in ("created_at", "updated_at", "ended_at"):
        value = _part(document, "metadata").get(key)
        if value is not None and (not isinstance(value, str) or canonical.seconds(value) is None):
            yield f"metadata.{key} is no time"
    if len(state.title) > _TITLE or len(state.first_prompt) > _TITLE:
        yield f"the title or the first prompt has more than {_TITLE} characters"
    total = _part(document, "budget").get("total_tokens_used")
    if total != sum(tokens.total for tokens in state.tokens.values()):
        yield "budget.total_tokens_used is not the sum of its models"


def _kinds(document: Mapping[str, Any], state: Session) -> Iterator[str]:
    """Values that a reader takes for missing ones, and those that no writer leaves out or stores."""
    for path in islice(_differing(document, json.loads(sessions.dumps(state))), _SHOWN):
        yield f"{path} is missing, or of no kind that it can have"
    for part, keys in _OF_PROGRAMS.items():
        rest = state.extra.get(part)
        if rest is None:
            continue
        paths = [f"{part}.{key}" for key in keys if key in rest] if isinstance(rest, dict) else [part]
        yield from (f"{path} is none that a program can set" for path in paths)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The paths at which two documents are not the same."""
    for key in sorted(one.keys() | other.keys()):
        left, right = one.get(key, _differing), other.get(key, _differing)
        if isinstance(left, dict) and isinstance(right, dict):
            yield from _differing(left, right, f"{above}{key}.")
        elif left != right or isinstance(left, bool) != isinstance(right, bool):
            yield canonical.one_line(f"{above}{key}", 80)


def _left(origin: Origin, session: str) -> Iterator[str]:
    """The form of what a state says of where the session left another one."""
    shapes = (
        re.fullmatch("[0-9a-f]{40}", origin.commit), ids.is_branch(origin.session),
        re.fullmatch("[0-9a-f]{64}" if origin.prefix else "", origin.prefix_sha256),
        re.fullmatch(rf"(?:{origin.turn + 1}\.[1-9][0-9]{{0,8}})?", origin.cell),
    )  # fmt: skip
    if not all(shapes):
        yield "its origin says no place at which a session can be left"
    elif origin.session == session:
        yield "its origin is the session itself"


def _authored(said: Mapping[str, Any], state: Session) -> Iterator[str]:
    if state.name:
        try:
            if check_name(state.name) != state.name:
                yield "its name has white space around it"
        except SessgitError:
            yield "its name is none that a session can have"
    if len(state.description) > edit.LONGEST_DESCRIPTION:
        yield f"its description has more than {edit.LONGEST_DESCRIPTION:,} characters"
    if len(state.labels) > edit.MOST_LABELS or any(not 0 < len(one) <= edit.LONGEST_LABEL for one in state.labels):
        yield "its labels are too many or too long"
    if not all(map(_is_label, state.labels)):
        yield "a label is none that a session can have"
    if list(state.labels) != sorted(set(state.labels)):
        yield "its labels are not sorted, or stand there twice"
    if state.stage and state.stage not in STAGES:
        yield f"the stage “{canonical.one_line(state.stage, 40)}” is none"
    if said.get("confidence") is not None and state.confidence is None:
        yield "its confidence is no number from 0 to 1"


def _is_label(text: str) -> bool:
    return text == text.strip() and text[:1] not in "+-" and "," not in text and canonical.is_printable(text)


def _used(state: Session) -> dict[str, tuple[int, Tokens]]:
    models = {*state.tokens, *state.calls}
    return {model: (state.calls.get(model, 0), state.tokens.get(model, Tokens())) for model in models}


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
