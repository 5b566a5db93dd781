"""The state of a session: what `session.json` holds, bounded whatever the number of turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.model import canonical, unified_state
from sessgit.model.conversation.turn import Tokens, Turn, add_by_model, plausible_count
from sessgit.model.unified_state import Unified

STATES = ("active", "ended", "interrupted", "archived")
_MAX_COUNT = 1 << 53
"""No count that is read is as much."""
STAGES = ("gathering", "shaping", "critiquing", "synthesized")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a session left another: `commit` is the fork point, which never moves.

    The agent's file took over the turns up to `turn`. Their folders hold the bytes of the file itself but for two
    cases: `replaced` are the agent's ids that stand in shared folders where the file has this session's, and
    `prefix` is the length of a beginning that this program wrote and can write again; `prefix_sha256` is its hash
    as it is stored.
    """

    session: str
    turn: int
    commit: str
    replaced: tuple[str, ...] = ()
    prefix: int = 0
    prefix_sha256: str = ""
    cell: str = ""
    """Where the fork was made inside of the turn after `turn`, as `7.3`; empty for a fork at a whole turn."""


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation's state: derived from its turns, but for the authored fields at the end."""

    id: str
    agent_id: str
    agent: str = "claude"
    agent_version: str = ""
    title: str = ""
    project: str = ""
    transcript: str = ""
    git_branch: str = ""
    first_prompt: str = ""
    created: str = ""
    updated: str = ""
    ended: str = ""
    headless: bool = False
    state: str = "active"
    origin: Origin | None = None
    turns: int = 0
    messages: int = 0
    cells: int = 0
    redacted: int = 0
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    description: str = ""
    labels: tuple[str, ...] = ()
    stage: str = ""
    confidence: float | None = None
    unified: Unified = unified_state.NO_STATE
    """What programs set; nothing of it stands in a state that no program touched."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What a later version wrote and this one does not know: written back as it was."""

    @property
    def is_headless(self) -> bool:
        """Whether a program alone had it: `headless` is what its lines say, and a session that a user forked (only
        these forks have a `prefix`) or named is that user's."""
        return self.headless and not self.name and not (self.origin and self.origin.prefix)


def carry_over(head: Session, state: Session) -> Session:
    """The state with what belongs to the session rather than to its turns, as the session's head has it."""
    return replace(
        state,
        created=head.created or state.created,
        title=head.title,
        origin=head.origin,
        name=head.name,
        description=head.description,
        labels=head.labels,
        stage=head.stage,
        confidence=head.confidence,
        unified=head.unified,
        extra=head.extra,
    )


def after_turn(before: Session, turn: Turn, number: int, secrets: int = 0) -> Session:
    """The state after a turn, in whose lines so many secrets were, from the state after the turn in front of it."""
    calls = {model: before.calls.get(model, 0) + turn.calls.get(model, 0) for model in {**before.calls, **turn.calls}}
    return replace(
        before,
        turns=number,
        messages=before.messages + turn.messages,
        cells=before.cells + len(turn.cells),
        redacted=before.redacted + secrets,
        tokens=add_by_model(dict(before.tokens), dict(turn.tokens)),
        calls=calls,
        first_prompt=before.first_prompt or canonical.one_line(turn.prompt, 200),
        created=before.created or turn.time,
        updated=max(before.updated, turn.time, turn.ended),
        ended="",
        state="active",
    )


def dumps(session: Session) -> bytes:
    """The canonical `session.json`."""
    return canonical.dumps(_merge_documents(session.extra, _state_document(session)))


def _state_document(session: Session) -> dict[str, Any]:
    models = sorted({*session.tokens, *session.calls})
    document: dict[str, Any] = {
        "metadata": {
            "session_id": session.id,
            "agent": session.agent,
            "agent_id": session.agent_id,
            "agent_version": session.agent_version,
            "title": session.title,
            "cwd": session.project,
            "transcript_path": session.transcript,
            "git_branch": session.git_branch,
            "first_prompt": session.first_prompt,
            "created_at": session.created or None,
            "updated_at": session.updated or None,
            "ended_at": session.ended or None,
            "headless": session.headless,
            "state": session.state,
        },
        "origin": None if session.origin is None else _origin_json(session.origin),
        "budget": {
            "total_tokens_used": sum(t.total for t in session.tokens.values()),
            "by_model": {
                model: {"calls": session.calls.get(model, 0), **session.tokens.get(model, Tokens()).as_json()}
                for model in models
            },
        },
        "cells": {"count": session.cells},
        "trajectory": {"turns": session.turns, "messages": session.messages},
        "rules": {**session.rules, "redacted": session.redacted},
        "authored": {
            "name": session.name,
            "description": session.description,
            "labels": sorted(session.labels),
            "stage": session.stage,
            "confidence": session.confidence,
        },
    }
    for key, part in unified_state.state_document(session.unified).items():
        document[key] = {**document.get(key, {}), **part}
    return document


def survives_round_trip(session: Session) -> bool:
    """Whether `loads` of what `dumps` makes of it is sure to be the same: then nobody needs to read it again."""
    counts = (session.turns, session.messages, session.cells, session.redacted, *session.calls.values())
    used = (t.total for t in session.tokens.values())
    return not session.extra and session.unified is unified_state.NO_STATE and max(*counts, *used) < _MAX_COUNT


def loads(document: object) -> Session:
    """The state that a `session.json` holds; a field of the wrong kind counts as missing."""
    top = _dict_or_empty(document)
    meta, budget, authored = (
        _dict_or_empty(top.get("metadata")),
        _dict_or_empty(top.get("budget")),
        _dict_or_empty(top.get("authored")),
    )
    trajectory, rules = _dict_or_empty(top.get("trajectory")), _dict_or_empty(top.get("rules"))
    by_model = {str(k): _dict_or_empty(v) for k, v in _dict_or_empty(budget.get("by_model")).items()}
    state = _str_or_empty(meta.get("state"))
    session = Session(
        id=_str_or_empty(meta.get("session_id")),
        agent_id=_str_or_empty(meta.get("agent_id")),
        agent=_str_or_empty(meta.get("agent")),
        agent_version=_str_or_empty(meta.get("agent_version")),
        title=_str_or_empty(meta.get("title")),
        project=_str_or_empty(meta.get("cwd")),
        transcript=_str_or_empty(meta.get("transcript_path")),
        git_branch=_str_or_empty(meta.get("git_branch")),
        first_prompt=_str_or_empty(meta.get("first_prompt")),
        created=_str_or_empty(meta.get("created_at")),
        updated=_str_or_empty(meta.get("updated_at")),
        ended=_str_or_empty(meta.get("ended_at")),
        headless=meta.get("headless") is True,
        state=state if state in STATES else "active",
        origin=_parse_origin(top.get("origin")),
        turns=plausible_count(trajectory.get("turns")),
        messages=plausible_count(trajectory.get("messages")),
        cells=plausible_count(_dict_or_empty(top.get("cells")).get("count")),
        redacted=plausible_count(rules.get("redacted")),
        tokens={model: Tokens.from_json(v) for model, v in by_model.items()},
        calls={model: plausible_count(v.get("calls")) for model, v in by_model.items()},
        rules={str(k): plausible_count(v) for k, v in rules.items() if k != "redacted"},
        name=_str_or_empty(authored.get("name")),
        description=_str_or_empty(authored.get("description")),
        labels=tuple(_str_or_empty(label) for label in _list_or_empty(authored.get("labels"))),
        stage=_str_or_empty(authored.get("stage")),
        confidence=_parse_confidence(authored.get("confidence")),
        unified=unified_state.parse_state(top),
    )
    unknown = _unknown_members(top, _state_document(session))
    return replace(session, extra=unknown) if unknown else session


def _unknown_members(document: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a document, at any depth of objects, that the known one lacks."""
    out: dict[str, Any] = {}
    for key, value in document.items():
        if key not in known:
            out[key] = value
        elif value is known[key] or not isinstance(value, dict) or not isinstance(known[key], dict):
            continue
        elif inner := _unknown_members(value, known[key]):
            out[key] = inner
    return out


def _merge_documents(extra: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(extra)
    for key, value in document.items():
        other = out.get(key)
        out[key] = _merge_documents(other, value) if isinstance(other, dict) and isinstance(value, dict) else value
    return out


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {
        "session": origin.session,
        "turn": origin.turn,
        "commit": origin.commit,
        "replaced": list(origin.replaced),
        "prefix": origin.prefix,
        "prefix_sha256": origin.prefix_sha256,
        "cell": origin.cell,
    }


def _parse_origin(value: object) -> Origin | None:
    v = _dict_or_empty(value)
    if not v:
        return None
    return Origin(
        _str_or_empty(v.get("session")),
        plausible_count(v.get("turn")),
        _str_or_empty(v.get("commit")),
        tuple(_str_or_empty(i) for i in _list_or_empty(v.get("replaced"))),
        plausible_count(v.get("prefix")),
        _str_or_empty(v.get("prefix_sha256")),
        _str_or_empty(v.get("cell")),
    )


def _dict_or_empty(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _parse_confidence(value: object) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value <= 1 else None  # type: ignore[operator, arg-type]


def _str_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
