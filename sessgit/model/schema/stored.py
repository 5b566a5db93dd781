"""The shapes of stored documents: of those in the tree of a commit, of a store's local files, and of the marks that a
program writes on lines.

A key that is not required may be missing; a reader passes over keys that it does not know.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field

from sessgit.model import pad, unified_state
from sessgit.model.conversation import session as sessions
from sessgit.model.schema.parts import describe_keys, described, optional_keys, shape
from sessgit.model.stored_fields import CellId, CellType, Count, EntryId, Hash, Number, Rate, Time

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # as in `parts`
    from typing_extensions import TypedDict


class Kinds(TypedDict):
    """Tokens by kind. A message counts once, with the usage of its last line that has one."""

    calls: Count
    """The number of messages of the model."""
    input: Count
    """Input tokens that were not read from the cache."""
    output: Count
    """Output tokens."""
    cache_read: Count
    """Input tokens that were read from the cache."""
    cache_write: Count
    """Input tokens that were written to the cache."""


def _section(name: str, doc: str, section: str) -> Any:
    kind = unified_state.PARTS.get(section)
    optional = optional_keys(kind) if kind else {}
    return shape(name, doc, described(sessions.Session, sessions.PLACES.get(section, {})), optional)


def _described(kind: Any, doc: str) -> Any:
    return Annotated[kind, Field(description=doc)]


Metadata = _section(
    "Metadata", "What the session is. A title and a first prompt are cut to 200 characters.", "metadata"
)
Origin = shape("Origin", "The session that this one was forked from, and where.", described(sessions.Origin))
Used = shape(
    "Used",
    "The tokens used, counted from the lines, and what a program set.",
    {
        "total_tokens_used": _described(Annotated[int, Field(ge=0)], "The sum of all tokens in by_model."),
        "by_model": _described(dict[str, Kinds], "Tokens by model; the model <synthetic> is left out."),
    },
    optional_keys(unified_state.Budget),
)
CellCount = _section("CellCount", "The cells of the session.", "cells")
Trajectory = _section("Trajectory", "The length of the session along the branch, shared turns included.", "trajectory")
Activation = _section("Activation", str(unified_state.Activation.__doc__), "activation")
Memory = _section("Memory", str(unified_state.Memory.__doc__), "context")
Authored = _section("Authored", "What a person or a program set. A rewind keeps it.", "authored")
Session = shape(
    "Session",
    "The state of a session: session.json in the tree of each commit.",
    {
        "metadata": Metadata,
        "origin": Origin | None,
        "budget": Used,
        "cells": CellCount,
        "trajectory": Trajectory,
        "rules": _described(
            dict[str, Count],
            "Versions of the rules that the session began with: cut, redact (0: off); redacted is how many secrets "
            "it has.",
        ),
        "authored": Authored,
        "activation": NotRequired[Activation],
        "context": NotRequired[Memory],
    },
)


class Resolved(TypedDict):
    """How a tension or a question was resolved."""

    time: Time
    """The time at which it was resolved."""
    text: str
    """The resolution."""


class PadEntry(TypedDict):
    """A line of a list of the scratchpad."""

    id: EntryId
    """The id of the entry. An edit of anything but the text keeps it."""
    kind: Annotated[str, Field(json_schema_extra={"enum": list(pad.LISTS)})]
    """The kind of the entry. Each kind has a list of its own."""
    text: str
    """The text: at most 2,000 characters, 20,000 of a thesis or a pass; empty only in confidence and cycle entries."""
    time: Time
    """The time at which the entry was made."""
    session: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
    """The id of the session in which the entry was made."""
    cycle: Annotated[int, Field(ge=1, le=pad.LATEST_CYCLE)]
    """The session's cycle at that time; 1 if the key is missing."""
    turn: NotRequired[Number]
    """The number of the turn that it comes from."""
    source: NotRequired[str]
    """Another source of the entry."""
    between: NotRequired[list[EntryId]]
    """Of a tension: the ids of the claims that contradict each other."""
    form: NotRequired[Annotated[Literal["expansion", "compression", "critique", "synthesis"], Field(alias="pass")]]
    """Of a pass: its kind."""
    version: NotRequired[Number]
    """Of a thesis: its version, from 1."""
    value: NotRequired[Rate]
    """Of a confidence entry: the confidence."""
    resolved: NotRequired[Resolved]
    """Of a tension or a question: how it was resolved."""


class SourceSaid(TypedDict, total=False):
    """What the other system last said of the session. An import applies only what has changed since."""

    name: str
    title: str
    description: str
    labels: list[str]
    stage: str
    confidence: float | None
    state: str
    created: str
    updated: str
    ended: str
    unified: dict[str, Any]
    """The parts of session.json that programs set."""
    pad: dict[str, list[str]]
    """For each list of the pad the id of each entry, and four hex digits of a hash of the rest but its cycle."""


class KeptSource(TypedDict):
    """The file kept/source.json: the system from which the session was imported. In a fork, whose id is another one,
    it has no meaning."""

    version: Literal[1]
    session: str
    """The session's id in this store."""
    system: str
    """The name of the system."""
    id: str
    """The system's own id for the session."""
    turns: NotRequired[Count]
    """The number of turns there, which what kept/rlm/session.json says of files, outputs and tokens is about."""
    said: SourceSaid
    facts: NotRequired[dict[str, Any]]
    """What the system says that a session has no place for, as totals and exit codes: `tokens`, `cost_usd`, and its own
    keys."""


class PurgedForm(TypedDict):
    """A form of a purged value: the value, the value with + for spaces, the base64 and base64url characters that it
    determines at each of three offsets, or its hex."""

    length: Number
    """The length of the form in bytes."""
    hash: Hash
    """HMAC-SHA256 with the store's key of "purged", a zero byte and the form."""
    base64: bool
    """Whether the form is base64 or hex."""
    tail: str
    """Each of the last 4 bytes (32 of a form of 128 bytes or more) as one of 32 letters, by a hash with the key."""
    head: NotRequired[str]
    """The same of the first 32 bytes of a form of 128 bytes or more."""
    lines: NotRequired[Literal[True]]
    """True if the form has several lines."""


class PurgedValue(TypedDict):
    """A purged value."""

    id: EntryId
    """Eight hex digits of the first form's hash."""
    time: Time
    forms: list[PurgedForm]
    """Empty in state/forbidden-lost."""


class PurgedValues(TypedDict):
    """The files state/forbidden and state/forbidden-lost."""

    version: Literal[1]
    values: list[PurgedValue]


# Lines of programs

Word = Annotated[str, Field(max_length=200, pattern=r"^[^\n]*$")]


class CellMetadata(TypedDict, total=False):
    """What a cell used; values that are 0 or empty are left out."""

    depth: Count
    model: str
    tokens_used: Count


class CellMark(TypedDict):
    """On an assistant line with one tool_use block that has an id: a cell begins. The block has its arguments."""

    id: CellId
    """An id that no other cell of the session has."""
    type: CellType
    operation: NotRequired[Word]
    """The operation, if it is not the name of the call: one line."""
    source: NotRequired[Word]
    """The source of the cell, such as repl: one line."""
    dependencies: NotRequired[Annotated[list[CellId], Field(max_length=10_000)]]
    """Cells of this turn or of earlier ones."""
    created_at: NotRequired[float]
    """Seconds since 1970; by default the line's timestamp."""
    metadata: NotRequired[CellMetadata]


class OutcomeMark(TypedDict, total=False):
    """On a user line with one tool_result block: the result of the call's cell."""

    json: Literal[True]
    """If true, the block's content is the result as JSON, otherwise as text."""
    error: str
    """The error, if the block has is_error true; by default the block's content."""
    result: Any
    """With an error: what there is of a result."""
    execution_time_ms: float
    model: str
    """The model that the program called."""
    tokens: dict[str, Count]
    """The tokens of that, by kind: input, output, cache_read, cache_write. They count in the turn and the state."""


class ReasonMark(TypedDict):
    """On an assistant line: a reason. The line's text says the same for a person."""

    kind: Literal["trace", "decision"]
    text: Annotated[str, Field(min_length=1)]
    evidence: NotRequired[list[str]]
    """Ids of cells, or words."""
    options: NotRequired[list[str]]
    chosen: NotRequired[str]
    """The option that was chosen."""
    confidence: NotRequired[Rate]


class ProgramMark(TypedDict, total=False):
    """The value of the key sessgit on a line that a program wrote."""

    cell: CellMark
    outcome: OutcomeMark
    running: Literal[True]
    """On a user line with one tool_result block: the call's cell has no result yet."""
    result_of: CellId
    """On an assistant line with one tool_use block that has an id: that call has the result of this cell."""
    reason: ReasonMark
    words: Literal[True]
    """On an assistant line: the program, and no model, wrote the text and made the calls."""


describe_keys(globals())
