"""The state of a session: what `session.json` holds, bounded whatever the number of turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, replace
from typing import Annotated, Any

from sessgit.model import canonical, stored_fields, unified_state
from sessgit.model.conversation.prompt_title import better_title, prompt_title
from sessgit.model.conversation.turn import Tokens, Turn, add_by_model, plausible_count
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import MAX_COUNT, OPTIONAL, Count, Labels, Rate, Rule, State, TimeOrNull
from sessgit.model.unified_state import Unified

STAGES = ("gathering", "shaping", "critiquing", "synthesized")
Stage = Annotated[str, Rule({"enum": ["", *STAGES]})]


@frozen
class Origin:
    """The session that this one was forked from, and where. The agent's file took over the turns up to `turn`."""

    session: str
    """The branch that it was forked from."""
    turn: Count
    """The number of shared turns."""
    commit: str
    """The fork point: a commit of that branch."""
    replaced: tuple[str, ...] = ()
    """The agent's ids in shared turns that stand for this session's id in its own transcript."""
    prefix: Count = 0
    """The number of bytes at the start of the transcript that sessgit wrote when it made the fork, else 0."""
    prefix_sha256: str = ""
    """SHA-256 of these bytes, written from the lines as they are stored, in hex; else empty."""
    cell: str = ""
    """The cell at which the next turn was cut, for example 7.3, else empty."""


@frozen
class Session:
    """The state of a session: session.json in the tree of each commit."""

    id: str
    """The session's id, which its refs have."""
    agent_id: str
    """The agent's own id for the session."""
    agent: str = "claude"
    """The agent: claude or codex."""
    agent_version: str = ""
    """The last version of the agent that a line names."""
    title: str = ""
    """The last title of the highest rank: the user's, the agent's, a summary; a former name of it ranks last."""
    project: str = ""
    """The project: the first folder that a line names, or the folder that an edit set."""
    transcript: str = ""
    """The transcript's path in the agent's folders when it was recorded; empty if it never was there."""
    git_branch: str = ""
    """The last git branch that a line names."""
    remote: str = field(default="", metadata=OPTIONAL)
    """The remote of the project when a turn was recorded, such as github.com/anna/shop; missing if it had none."""
    first_prompt: str = ""
    """The first prompt that is more than a greeting, a character or a command without arguments, else the first that
    has text: its first line, or the heading that follows a line with a colon."""
    created: TimeOrNull = ""
    """The first time in the transcript; in a fork that sessgit made, the time of the fork."""
    updated: TimeOrNull = ""
    """The latest time in a body on this branch; the time of the fork or what another system says, if that is later."""
    ended: TimeOrNull = ""
    """The latest of updated_at and the times in tail.jsonl; null while the session is active."""
    headless: bool = False
    """True if every line that names an entry point names the agent's SDK, and at least one line does."""
    state: State = "active"
    """Interrupted: it ended in the middle of a turn. Archived is reserved, since the ref tells it."""
    origin: Origin | None = None
    turns: Count = 0
    """The number of turns."""
    messages: Count = 0
    """The number of user lines and of messages of the model, without sidechains."""
    cells: Count = 0
    """The number of cells along the branch, shared turns included."""
    redacted: Count = 0
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    """The name, or empty: unique in its project, 1 to 100 characters on one line, no @ and /, no - in front."""
    description: str = ""
    """Free text of at most 2,000 characters."""
    labels: Labels = ()
    """At most 50 labels in sorted order: each 1 to 50 characters on one line, no comma, no + or - in front."""
    stage: Stage = ""
    """The stage of the work, or empty."""
    confidence: Rate | None = None
    """The confidence in the result, or null."""
    unified: Unified = unified_state.NO_STATE
    """What programs set; nothing of it is in a state that no program touched."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What a later version wrote and this one does not know: written back as it was."""

    @property
    def is_headless(self) -> bool:
        """Return whether a program alone had it: `headless` is what its lines say, and a session that a user forked
        (only these forks have a `prefix`) or named is that user's."""
        return self.headless and not self.name and not (self.origin and self.origin.prefix)


def carry_over(head: Session, state: Session) -> Session:
    """Return the state with what belongs to the session rather than to its turns, as the session's head has it."""
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
    """Return the state after a turn, in whose lines so many secrets were, from the state after the turn in front of
    it."""
    calls = {model: before.calls.get(model, 0) + turn.calls.get(model, 0) for model in {**before.calls, **turn.calls}}
    return replace(
        before,
        turns=number,
        messages=before.messages + turn.messages,
        cells=before.cells + len(turn.cells),
        redacted=before.redacted + secrets,
        tokens=add_by_model(dict(before.tokens), dict(turn.tokens)),
        calls=calls,
        first_prompt=better_title(before.first_prompt, prompt_title(turn.prompt)),
        created=before.created or turn.time,
        updated=max(before.updated, turn.time, turn.ended),
        ended="",
        state="active",
    )


def dumps(session: Session) -> bytes:
    """Return the canonical `session.json`."""
    return canonical.dumps(_merge_documents(session.extra, _state_document(session)))


def _state_document(session: Session) -> dict[str, Any]:
    document: dict[str, Any] = {
        section: {key: _stored_value(name, getattr(session, name)) for key, name in keys.items()}
        for section, keys in PLACES.items()
    }
    if not session.remote:
        del document["metadata"]["git_remote"]
    document["origin"] = asdict(session.origin) if session.origin else None
    document["budget"] = {
        "total_tokens_used": sum(tokens.total for tokens in session.tokens.values()),
        "by_model": {
            model: {"calls": session.calls.get(model, 0), **session.tokens.get(model, Tokens()).as_json()}
            for model in {*session.tokens, *session.calls}
        },
    }
    document["rules"].update(session.rules)
    for section, part in unified_state.state_document(session.unified).items():
        document[section] = {**document.get(section, {}), **part}
    return document


def _stored_value(name: str, value: Any) -> Any:
    if name in ("created", "updated", "ended"):
        return value or None
    return sorted(value) if name == "labels" else value


def survives_round_trip(session: Session) -> bool:
    """Return whether `loads` of what `dumps` makes of it is sure to be the same: then it need not be read again."""
    counts = (session.turns, session.messages, session.cells, session.redacted, *session.calls.values())
    used = (t.total for t in session.tokens.values())
    return not session.extra and session.unified is unified_state.NO_STATE and max(*counts, *used) < MAX_COUNT


def loads(document: object) -> Session:
    """Return the state that a `session.json` holds; a field of the wrong kind counts as missing."""
    top = _dict_or_empty(document)
    values = dict[str, Any]()
    for section, keys in PLACES.items():
        part = _dict_or_empty(top.get(section))
        values |= {name: stored_fields.read_field(Session, name, part.get(key)) for key, name in keys.items()}
    models = _dict_or_empty(_dict_or_empty(top.get("budget")).get("by_model"))
    by_model = {str(model): _dict_or_empty(used) for model, used in models.items()}
    rules, origin = _dict_or_empty(top.get("rules")), _dict_or_empty(top.get("origin"))
    session = Session(
        **values,
        origin=stored_fields.read(Origin, origin) if origin else None,
        tokens={model: Tokens.from_json(used) for model, used in by_model.items()},
        calls={model: plausible_count(used.get("calls")) for model, used in by_model.items()},
        rules={str(name): plausible_count(number) for name, number in rules.items() if name != "redacted"},
        unified=unified_state.parse_state(top),
    )
    unknown = _unknown_members(top, _state_document(session))
    return replace(session, extra=unknown) if unknown else session


def _unknown_members(document: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a document, at any depth of objects, that the known one lacks."""
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


def _dict_or_empty(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


PLACES: Mapping[str, Mapping[str, str]] = {
    "metadata": {
        "session_id": "id", "agent": "agent", "agent_id": "agent_id", "agent_version": "agent_version",
        "title": "title", "cwd": "project", "transcript_path": "transcript", "git_branch": "git_branch",
        "git_remote": "remote", "first_prompt": "first_prompt", "created_at": "created", "updated_at": "updated",
        "ended_at": "ended", "headless": "headless", "state": "state",
    },
    "cells": {"count": "cells"},
    "trajectory": {"turns": "turns", "messages": "messages"},
    "rules": {"redacted": "redacted"},
    "authored": {
        "name": "name", "description": "description", "labels": "labels", "stage": "stage", "confidence": "confidence",
    },
}  # fmt: skip
"""By the sections of `session.json`, and their keys, the attribute of a session that a value is."""
