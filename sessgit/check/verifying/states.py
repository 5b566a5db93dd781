"""The state that a commit holds: its form, its bounds, and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.branch import edit
from sessgit.check.verifying.forms import TAILS, TURNS, Seen, is_ours
from sessgit.check.verifying.turns import Where
from sessgit.errors import DamageError, SessgitError
from sessgit.model import canonical, ids, unified_state
from sessgit.model.address import check_name
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding
from sessgit.record import commits
from sessgit.store import layout
from sessgit.store.store import Store

_TITLE = 200
_RULES = ("cut", "redact")
_SHOWN = 3
_EMPTY = Session("", "")
_COUNTED = ("turns", "messages", "cells", "redacted", "tokens", "calls", "first_prompt", "updated")
AUTHORED = ("name", "description", "labels", "stage", "confidence", "unified")
"""What people and programs say."""
_KINDS = {
    "fork": ("origin",),
    "counts": (
        "budget", "cells", "trajectory", "rules.redacted", "metadata.first_prompt", "metadata.updated_at",
    ),
}  # fmt: skip
"""By the kind of a finding with which the paths of its values begin."""
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
        raise DamageError(f"{layout.STATE} is not JSON: {error}") from error
    state = sessions.loads(document)
    found = [where.found("wrong", "state", said) for said in _wrong(document, state, session)]
    memory = state.unified.working_memory
    if memory and unified_state.memory_size(memory) > unified_state.LARGEST_MEMORY:
        found.append(where.found("note", "state", "its working memory is larger than 64 KiB"))
    if canonical.dumps(document) != data:
        found.append(where.found("wrong", "state", f"{layout.STATE} is not written in the canonical form"))
    return state, found


@dataclass(frozen=True, slots=True)
class Given:
    """What a state is made of besides the state before it: the state as of the turn before and what the turn's lines
    say, the last lines of a commit that has them, and the number of the turn before."""

    base: Session | None
    told: Turn | None
    tail: Sequence[Line]
    is_cut_short: bool | None
    """Whether the turn before was interrupted, None where that is not known."""
    are_placed: bool
    """Whether all lines of the turn have a place: of others the secrets are not counted."""
    last: int
    is_imported: bool


def expected(seen: Seen, given: Given) -> Session:
    """Make the state once more as far as it follows from the one before it and from lines."""
    state, before, event = seen.state, seen.before, seen.event
    wanted: dict[str, Any] = {}
    if event == "start":
        wanted |= {name: getattr(_EMPTY, name) for name in _COUNTED}
        wanted["updated"] = state.updated if state.updated == state.created else ""
    elif given.told is not None and given.base is not None:
        secrets = seen.message.number("Redacted") or 0
        if not given.are_placed:
            secrets = max(secrets, state.redacted - given.base.redacted)
        after = sessions.after_turn(given.base, given.told, seen.message.number("Turn") or 0, secrets)
        wanted |= {name: getattr(after, name) for name in _COUNTED}
        if event == "fork":
            wanted |= {"updated": max(after.updated, state.created), "redacted": given.base.redacted}
    elif before is not None and event not in TURNS:
        wanted |= {name: getattr(before, name) for name in _COUNTED}
        if event in ("edit", "fork"):  # another system, or a fork's own beginning, may be later
            wanted["updated"] = max(before.updated, state.updated)
    if event in (*TURNS, "start", "fork"):
        wanted |= {"state": "active", "ended": ""}
    if before is not None:
        wanted |= _forked(seen, before, given) if event == "fork" else _carried(seen, before, given)
    made = replace(state, **wanted)
    if event == "end":
        is_cut_short = state.state == "interrupted" if given.is_cut_short is None else given.is_cut_short
        made = commits.ended_state(made, given.tail, cut_short=is_cut_short)
    return made


def compare(seen: Seen, wanted: Session) -> Iterator[Finding]:
    """Return a finding for each kind of value with which the state differs from the one that was made."""
    if seen.state == wanted:
        return
    wrong: dict[str, list[str]] = {}
    for path in _differing(json.loads(sessions.dumps(seen.state)), json.loads(sessions.dumps(wanted))):
        kind = next((kind for kind, paths in _KINDS.items() if path.startswith(paths)), "state")
        wrong.setdefault(kind, []).append(path)
    for kind, paths in wrong.items():
        what = f"{layout.STATE} does not follow from the lines and the previous commit: {', '.join(paths)}"
        yield seen.wrong(kind, canonical.one_line(what, 400))


def values(state: Session, names: Collection[str]) -> tuple[object, ...]:
    """Return the values of some fields of a state."""
    return tuple(getattr(state, name) for name in names)


# Inside


def _carried(seen: Seen, before: Session, given: Given) -> dict[str, Any]:
    """The values that belong to the session and that commits of the event leave as they were."""
    if before.id != seen.state.id or len(seen.commit.parents) != 1:
        return {}
    names = ["rules", *(["origin"] if before.origin is not None else [])]
    names += AUTHORED if seen.event in TAILS else ()
    names += ("agent_version", "git_branch", "headless") if seen.event == "edit" else ()
    if seen.event == "edit" and not given.is_imported:
        names += ("agent", "agent_id", "title", "created", "updated", "ended", "state")
    return {name: getattr(before, name) for name in names}


def _forked(seen: Seen, before: Session, given: Given) -> dict[str, Any]:
    """The values with which a fork begins."""
    origin = seen.state.origin
    if origin is None or seen.parent is None:
        return {}
    replaced, is_own = origin.replaced, is_ours(origin)
    if not is_own and replaced:
        replaced = (before.agent_id, *(before.origin.replaced if before.origin else ()))
    left = replace(origin, commit=seen.parent.id, turn=given.last, replaced=replaced)
    return {"origin": left, "description": "", ("title" if is_own else "name"): ""}


def _wrong(document: Any, state: Session, session: str) -> Iterator[str]:
    if not isinstance(document, dict):
        yield f"{layout.STATE} is not an object"
        return
    if state.id != session:
        yield f"the state is that of {canonical.one_line(state.id, 80) or 'no session'}"
    elif state.agent_id and ids.session_id(state.agent_id) != session:
        yield f"the agent's id {canonical.one_line(state.agent_id, 80)} belongs to another session id"
    yield from _authored(state)
    yield from (f"rules.{rule} is missing" for rule in _RULES if rule not in state.rules)
    yield from _kinds(document, state)
    if state.agent not in agents.PACKAGES:
        yield f"the agent “{canonical.one_line(state.agent, 40)}” is unknown"
    if state.origin is not None:
        yield from _left(state.origin, session)
    for key in ("created_at", "updated_at", "ended_at"):
        value = _part(document, "metadata").get(key)
        if value is not None and (not isinstance(value, str) or canonical.seconds(value) is None):
            yield f"metadata.{key} is not a time"
    if len(state.title) > _TITLE:
        yield f"the title has more than {_TITLE} characters"


def _kinds(document: Mapping[str, Any], state: Session) -> Iterator[str]:
    """Values that a reader takes for missing ones, and those that no writer leaves out or stores."""
    for path in islice(_differing(document, json.loads(sessions.dumps(state))), _SHOWN):
        yield f"{path} is missing, or of a wrong type"
    for part, keys in _OF_PROGRAMS.items():
        rest = state.extra.get(part)
        if rest is None:
            continue
        paths = [f"{part}.{key}" for key in keys if key in rest] if isinstance(rest, dict) else [part]
        yield from (f"a program cannot set {path} to this" for path in paths)


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
        yield "its origin is not a valid fork point"
    elif origin.session == session:
        yield "its origin is the session itself"


def _authored(state: Session) -> Iterator[str]:
    """What an edit would refuse, or write otherwise."""
    said = [("name", check_name, state.name), ("description", _description, state.description)]
    said.append(("stage", edit.parse_stage, state.stage))
    written = [one for one in said if one[2]] + [("label", edit.label, one) for one in state.labels]
    for what, check, value in written:
        with suppress(SessgitError):
            if check(value) == value:
                continue
        yield f"its {what} is not valid"
    if len(state.labels) > edit.MOST_LABELS or len(set(state.labels)) != len(state.labels):
        yield "it has too many labels, or one of them twice"


def _description(text: str) -> str:
    edit.parse_description(text)
    return text


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
