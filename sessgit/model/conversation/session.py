"""The state of a session: what `session.json` holds, bounded whatever the number of turns.

The parts that only programs set are absent until a program sets them: the state of any other session holds not a byte
of them. Their keys are those of `session.json`, and a path such as `activation.current_depth` names one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, field, fields, replace
from typing import Annotated, Any

from sessgit.model import canonical, stored_fields
from sessgit.model.conversation.turn import Tokens, Turn, add_by_model, plausible_count
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import (
    MAX_COST,
    MAX_COUNT,
    OPTIONAL,
    Cost,
    Count,
    Depth,
    Labels,
    Mode,
    Rate,
    Rule,
    Score,
    State,
    TimeOrNull,
)

# The line of a prompt by which a conversation is listed if nobody has named it

_WIDTH = 200
_SHORT_WORD = 12
_GREETINGS = frozenset(["hi", "hello", "hey", "there", "claude", "codex", "good", "morning", "afternoon", "evening"])
_WORDS = re.compile(r"\w+")
_BARE_COMMAND = re.compile(r"/[\w:.-]+")


def prompt_title(prompt: str) -> str:
    """Return the first line of a prompt, or the heading that follows it if it is a lead-in such as `Implement the
    following plan:`."""
    first = canonical.one_line(prompt, _WIDTH)
    if first.endswith(":"):
        following = canonical.one_line(prompt[prompt.find(first) + len(first) :], _WIDTH)
        if following.startswith("#"):
            return following.lstrip("# ") or first
    return first


def better_title(known: str, new: str) -> str:
    """Return the first of two titles that says something, else the first that is not empty."""
    return new if new and (not known or (not _says_something(known) and _says_something(new))) else known


def is_terse(title: str) -> bool:
    """Return whether a prompt's line is one short word, such as `ok`, or a greeting, and says little about its turn. A
    long one is a path, or a sentence of a language without spaces."""
    return (len(title) <= _SHORT_WORD and len(title.split()) < 2) or not _says_something(title)


def _says_something(title: str) -> bool:
    """Return whether a title is more than a greeting, one character or a command without arguments."""
    words = _WORDS.findall(title.casefold())
    return sum(map(len, words)) > 1 and not _GREETINGS.issuperset(words) and not _BARE_COMMAND.fullmatch(title)


# What programs set

LARGEST_MEMORY = 64 << 10
"""Return the bytes of a working memory, as JSON on one line in UTF-8, beyond which nothing is added to it."""
DEEPEST_MEMORY = 100
LONGEST_TEXT = 2_000
LONGEST_PATH = 4_096
LONGEST_VERSION = 200
LONGEST_ROLE = 50
MEMORY = "context.working_memory"
Reason = Annotated[str, Rule(max_length=LONGEST_TEXT)]


@frozen
class Activation:
    """Whether the RLM mode of a program is active in the session, and why."""

    rlm_active: bool | None = None
    """Whether the mode is active."""
    activation_mode: Mode | None = None
    """What activated it."""
    activation_reason: Reason | None = None
    """The reason, as text."""
    complexity_score: Score | None = None
    """The program's estimate of the task's complexity."""
    current_depth: Count | None = None
    """The current depth of recursion; 0 is outside of any."""
    max_depth: Depth | None = None
    """The greatest depth of recursion that is allowed."""


@frozen
class Budget:
    """The limits that a program set itself, and what it used, as it says."""

    max_recursive_calls: Count | None = None
    """The number of recursive calls that are allowed."""
    total_recursive_calls: Count | None = None
    """The number of recursive calls so far."""
    cost_usd: Cost | None = None
    """The cost so far in US dollars."""


@frozen
class Metadata:
    """What a program says of itself."""

    rlm_version: Annotated[str, Rule(max_length=LONGEST_VERSION)] | None = None
    """The version of the program."""
    role: Annotated[str, Rule(max_length=LONGEST_ROLE)] | None = None
    """The role of the session among others, such as manager."""
    parent: Annotated[str, Rule({"pattern": "^[a-z0-9][a-z0-9-]{0,63}$"}, max_length=64)] | None = None
    """The id of the session that began this one as its child. It is no fork: they share no turns."""


@frozen
class Memory:
    """The working memory of a program."""

    working_memory: dict[str, Any] | None = None
    """An object of any JSON, at most 100 levels deep. A program may set at most 65,536 bytes, as one line of UTF-8."""


@frozen
class Trajectory:
    """Where the program wrote the session to."""

    export_path: Annotated[str, Rule(max_length=LONGEST_PATH)] | None = None
    """The path of the export."""


@frozen
class Unified:
    """What programs set of a session, by the sections of `session.json`."""

    metadata: Metadata = Metadata()
    activation: Activation = Activation()
    context: Memory = Memory()
    budget: Budget = Budget()
    trajectory: Trajectory = Trajectory()

    @property
    def working_memory(self) -> Mapping[str, Any]:
        """Return the working memory, empty if there is none."""
        return self.context.working_memory or {}


NO_STATE = Unified()

PARTS: Mapping[str, Any] = {
    "metadata": Metadata, "activation": Activation, "context": Memory, "budget": Budget, "trajectory": Trajectory,
}  # fmt: skip
"""What programs set, by the section of `session.json` that it is in."""
KEYS = {part: tuple(key.name for key in fields(kind)) for part, kind in PARTS.items()}
"""The keys that programs set, by section."""
SCALARS = (*(f"activation.{key}" for key in KEYS["activation"]), "budget.max_recursive_calls")
"""What only one value of can stay where two sessions are merged."""
COUNTERS = ("budget.total_recursive_calls", "budget.cost_usd")
"""What grows on each side."""
OWN = ("trajectory.export_path", "metadata.rlm_version", "metadata.role", "metadata.parent")
"""What belongs to one session and its program."""


# As it is stored


def state_document(own: Unified) -> dict[str, dict[str, Any]]:
    """Return the parts that are there, by their keys in `session.json`."""
    if own == NO_STATE:
        return {}
    parts = {part: {key: value_at(own, f"{part}.{key}") for key in keys} for part, keys in KEYS.items()}
    present = {part: {k: value for k, value in values.items() if value is not None} for part, values in parts.items()}
    return {part: values for part, values in present.items() if values}


def parse_state(top: Mapping[str, Any]) -> Unified:
    """Return what a `session.json` says of them; a field of the wrong kind counts as missing."""
    given = {part: values if isinstance(values := top.get(part), dict) else {} for part in PARTS}
    present = {
        part: {key: values[key] for key in KEYS[part] if key in values and not _is_empty(values[key])}
        for part, values in given.items()
    }
    state = Unified(**{part: stored_fields.read(PARTS[part], values) for part, values in present.items() if values})
    if is_deeper(state.working_memory, DEEPEST_MEMORY):
        state = replace(state, context=Memory())
    return NO_STATE if state == NO_STATE else state


def value_at(own: Unified, path: str) -> Any:
    """Return what is at a path, None for nothing."""
    part, _, key = path.partition(".")
    return getattr(getattr(own, part), key)


def with_values(own: Unified, values: Mapping[str, Any]) -> Unified:
    """Return the parts with other values at some paths; None takes one away."""
    for path, value in values.items():
        part, _, key = path.partition(".")
        own = replace(own, **{part: replace(getattr(own, part), **{key: None if _is_empty(value) else value})})
    return own


def _is_empty(value: object) -> bool:
    """Return whether a value says nothing: it is not stored then."""
    return value in ("", {})


def inherited_state(own: Unified) -> Unified:
    """Return what a session takes over from the one that it left: all but where that one was written to, and its role
    and parent."""
    return replace(own, trajectory=Trajectory(), metadata=replace(own.metadata, role=None, parent=None))


def decided_state(own: Unified, decided: Unified) -> Unified:
    """Return what was decided about two sessions, as it holds of one: with its own export and version."""
    return with_values(decided, {path: value_at(own, path) for path in OWN})


def memory_size(memory: Mapping[str, Any]) -> int:
    """Return the bytes of a working memory as JSON on one line in UTF-8."""
    text = json.dumps(memory, ensure_ascii=False, separators=(",", ":"))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_deeper(document: object, most: int) -> bool:
    """Return whether a JSON value has more than so many levels of objects and lists."""
    level: list[Any] = [document]
    for _ in range(most + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return True


# Two states of what programs set


def merged_counter(base: float | None, ours: float | None, theirs: float | None) -> Any:
    """Return a counter of ours with what theirs grew by since its base; None if no side counts any more."""
    if theirs == base or (ours is None and theirs is None):
        return ours
    if ours == base:
        return theirs
    together = (ours or 0) + (theirs or 0) - (base or 0)
    together = max(together, type(together)(0))  # cost stays a fraction
    return min(together, MAX_COUNT - 1) if isinstance(together, int) else min(round(together, 9), MAX_COST)


def merged_memory(
    began: tuple[Mapping[str, Any], Mapping[str, Any]], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return our working memory with what only theirs changed since it began, and the keys that both changed, of which
    ours is kept. `began` is what each side began with, ours first."""
    out, both = dict(ours), list[str]()
    for key in sorted({*ours, *theirs}):
        mine, other, was, there = (_comparable_value(one, key) for one in (ours, theirs, *began))
        if other in (mine, there):
            continue
        if mine != was:
            both.append(key)
        elif other is None:
            del out[key]
        else:
            out[key] = theirs[key]
    return out, both


def is_same_json(one: object, other: object) -> bool:
    """Return whether two JSON values are the same document: 1, 1.0 and true are three."""
    return one is other or canonical.compact(one) == canonical.compact(other)


def _comparable_value(memory: Mapping[str, Any], key: str) -> bytes | None:
    """Return a value so that equal ones are equal JSON, None for one that is not there."""
    return canonical.compact(memory[key]) if key in memory else None


# The state of a session

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
    unified: Unified = NO_STATE
    """What programs set; nothing of it is in a state that no program touched."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What a later version wrote and this one does not know: written back as it was."""

    @property
    def is_headless(self) -> bool:
        """Return whether a program alone had it: `headless` is what its lines say, and a session that a user forked
        (only these forks have a `prefix`) or named is that user's."""
        return self.headless and not self.name and not (self.origin and self.origin.prefix)

    @property
    def display_title(self) -> str:
        """Return the session's name, else the client's title, else its first prompt."""
        return self.name or self.title or self.first_prompt or "(no prompt yet)"


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
    for section, part in state_document(session.unified).items():
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
    return not session.extra and session.unified is NO_STATE and max(*counts, *used) < MAX_COUNT


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
        unified=parse_state(top),
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
