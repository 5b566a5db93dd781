"""The shapes of stored documents, of the marks that a program writes on lines, and of the documents that other programs
for such sessions have; and the JSON Schemas of the draft 2020-12 that `docs/schemas` has of them.

A key that is not required may be missing; a reader passes over keys that it does not know.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from sessgit.model import pad as pads
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.turn import Cell
from sessgit.model.stored_fields import OPTIONAL, CellId, CellType, Count, EntryId, Hash, Mode, Number, Rate, Time
from sessgit.store.operations import Operation
from sessgit.store.recorder_state import AppendIntent, Cursor, LatestTurn
from sessgit.sync.session_refs import Agreement

if sys.version_info >= (3, 12):
    from typing import TypedDict, is_typeddict
else:  # pydantic takes that of the standard library only where it tells its keys at run time
    from typing_extensions import TypedDict, is_typeddict

DOCUMENTED = ConfigDict(strict=True, allow_inf_nan=False, use_attribute_docstrings=True)


def shape(name: str, doc: str, keys: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    """Return the type of a JSON object with these keys, some of which may be missing, and types."""
    every = {key: NotRequired[kind] for key, kind in (optional or {}).items()} | dict(keys)
    make: Any = TypedDict  # a checker wants to read the keys
    kind = make(name, every)
    kind.__doc__, kind.__pydantic_config__ = doc, DOCUMENTED
    return kind


def describe_keys(module: Mapping[str, Any]) -> None:
    """Make the docstring after each key of a module's shapes its description."""
    for kind in module.values():
        if is_typeddict(kind):
            kind.__pydantic_config__ = DOCUMENTED


def described(cls: type, keys: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return by key the type of each field of a dataclass, with its docstring as description."""
    (defined,) = (
        part for part in _parsed(cls.__module__).body if isinstance(part, ast.ClassDef) and part.name == cls.__name__
    )
    docs = {
        ast.unparse(field.target): inspect.cleandoc(ast.literal_eval(doc.value))
        for field, doc in pairwise(defined.body)
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr)
    }
    names = {name: name for name in docs} if keys is None else keys
    kinds = get_type_hints(cls, include_extras=True)
    return {key: Annotated[kinds[name], Field(description=docs[name])] for key, name in names.items()}


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


def optional_keys(cls: type) -> dict[str, Any]:
    """Return the same of a dataclass whose fields are missing where they are None."""
    kinds = described(cls).items()
    return {key: Annotated[get_args(kind.__origin__)[0], *kind.__metadata__] for key, kind in kinds}


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
    kind = sessions.PARTS.get(section)
    optional = optional_keys(kind) if kind else {}
    places = sessions.PLACES.get(section, {})
    missing = {field.name for field in fields(sessions.Session) if field.metadata == OPTIONAL}
    sometimes = {key: name for key, name in places.items() if name in missing}
    always = {key: name for key, name in places.items() if name not in missing}
    return shape(name, doc, described(sessions.Session, always), described(sessions.Session, sometimes) | optional)


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
    optional_keys(sessions.Budget),
)
CellCount = _section("CellCount", "The cells of the session.", "cells")
Trajectory = _section("Trajectory", "The length of the session along the branch, shared turns included.", "trajectory")
Activation = _section("Activation", str(sessions.Activation.__doc__), "activation")
Memory = _section("Memory", str(sessions.Memory.__doc__), "context")
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
    kind: Annotated[str, Field(json_schema_extra={"enum": list(pads.LISTS)})]
    """The kind of the entry. Each kind has a list of its own."""
    text: str
    """The text: at most 2,000 characters, 20,000 of a thesis or a pass; empty only in confidence and cycle entries."""
    time: Time
    """The time at which the entry was made."""
    session: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
    """The id of the session in which the entry was made."""
    cycle: Annotated[int, Field(ge=1, le=pads.LATEST_CYCLE)]
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


if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # as in `parts`
    from typing_extensions import TypedDict

Seconds = Annotated[float, Field(description="Seconds since 1970.")]


class UnifiedMetadata(TypedDict):
    """What the session is."""

    session_id: str
    """Its id."""
    created_at: Seconds
    updated_at: Seconds
    ended_at: NotRequired[Seconds | None]
    """Null while it goes on."""
    cwd: str
    """The project's folder."""
    claude_transcript_path: NotRequired[str]
    """Where the agent keeps its file."""
    rlm_version: NotRequired[str]
    """The version of the program that drives it."""


class UnifiedActivation(TypedDict):
    """Whether a program's own way of working is on in the session, and why."""

    rlm_active: bool
    """Whether it is on."""
    activation_mode: Mode
    """What turned it on."""
    activation_reason: NotRequired[str | None]
    """Why, in words."""
    complexity_score: NotRequired[float | None]
    """How complex the task seemed to the program."""
    current_depth: Annotated[int, Field(ge=0)]
    """How deep in a recursion it is; 0 is outside of one."""
    max_depth: NotRequired[Annotated[int, Field(ge=1, le=3)]]
    """How deep it may go."""


class SeenFile(TypedDict, total=False):
    """What is known of a file."""

    hash: str
    """SHA-256 of its last whole content, if that is known."""
    size_bytes: int
    """The size of that."""
    first_access: Seconds
    last_access: Seconds


class ToolOutput(TypedDict, total=False):
    """A result."""

    tool_name: str
    """The tool."""
    content_preview: Annotated[str, Field(max_length=1000)]
    """Its first characters."""
    exit_code: int | None
    """Of a command."""
    timestamp: Seconds
    cell_id: str | None
    """The cell."""


class UnifiedContext(TypedDict, total=False):
    """What the session works with."""

    files: dict[str, SeenFile]
    """The files that tools read or changed, by path."""
    tool_outputs: Annotated[list[ToolOutput], Field(max_length=100)]
    """The last results."""
    working_memory: dict[str, Any]
    """What a program keeps in mind."""


class ModelUse(TypedDict, total=False):
    """What a model was used for."""

    calls: int
    """Its messages."""
    tokens: int
    """Tokens of all kinds."""
    cost_usd: float
    """What they cost, if the price is known."""


class UnifiedBudget(TypedDict, total=False):
    """What was used, and what may be."""

    total_tokens_used: int
    """Tokens of all models and kinds."""
    total_recursive_calls: int
    """How many recursive calls there were."""
    max_recursive_calls: int
    """How many there may be."""
    cost_usd: float
    """What all of it cost in US dollars, if that is known."""
    by_model: dict[str, ModelUse]
    """The same by model."""


class UnifiedCells(TypedDict, total=False):
    """The session's cells."""

    count: int
    """How many there are."""
    index_path: str
    """Where their index is."""


class UnifiedTrajectory(TypedDict, total=False):
    """How long the session is."""

    events_count: int
    """How many pieces its turns have."""
    export_path: str | None
    """Where a program wrote it to."""


class UnifiedSession(TypedDict):
    """The whole state of a session, as other programs for such sessions have it."""

    metadata: UnifiedMetadata
    activation: UnifiedActivation
    context: UnifiedContext
    budget: UnifiedBudget
    cells: NotRequired[UnifiedCells]
    trajectory: NotRequired[UnifiedTrajectory]


class CellInput(TypedDict, total=False):
    """What a cell got."""

    source: str
    """Where it comes from."""
    operation: str
    """What it does."""
    args: dict[str, Any]
    """Its arguments."""


class CellOutput(TypedDict, total=False):
    """What a cell came to."""

    result: dict[str, Any] | list[Any] | str | float | bool | None
    """What it gave. The system that this form comes from has no lists there in its schema, and takes them."""
    error: str | None
    """Why it failed."""
    execution_time_ms: float
    """How long it took, in milliseconds."""


class CellUse(TypedDict, total=False):
    """What a cell used."""

    depth: int
    """How deep in a recursion it ran."""
    model: str | None
    """The model."""
    tokens_used: int
    """Tokens of all kinds."""


class UnifiedCell(TypedDict):
    """A cell with all that is known of it, as other programs for such sessions have it."""

    cell_id: CellId
    """Its id."""
    created_at: Seconds
    type: CellType
    """What it is."""
    input: CellInput
    output: CellOutput
    dependencies: NotRequired[list[str]]
    """The cells that it depends on."""
    dependents: NotRequired[list[str]]
    """The cells that depend on it."""
    metadata: NotRequired[CellUse]


class IndexedCell(TypedDict):
    """A cell in the graph."""

    type: CellType
    """What it is."""
    dependencies: list[CellId]
    """The cells that it depends on."""
    dependents: list[CellId]
    """The cells that depend on it."""


class UnifiedIndex(TypedDict):
    """The graph of a session's cells, as other programs for such sessions have it."""

    version: Literal["1.0"]
    """The version of this shape."""
    session_id: str
    """The session's id."""
    cells: dict[CellId, IndexedCell]
    """All cells by id."""
    roots: list[CellId]
    """Those that depend on none."""
    leaves: list[CellId]
    """Those on which none depends."""
    execution_order: list[CellId]
    """All of them, each after those that it depends on."""


describe_keys(globals())


DIALECT = "https://json-schema.org/draft/2020-12/schema"

SHAPES: Mapping[str, type] = {
    "session": Session,
    "cell": Cell,
    "pad-entry": PadEntry,
    "kept-source": KeptSource,
    "purged-values": PurgedValues,
    "program-mark": ProgramMark,
    "unified-session": UnifiedSession,
    "unified-cell": UnifiedCell,
    "unified-index": UnifiedIndex,
    "cursor": Cursor,
    "operation": Operation,
    "append-note": AppendIntent,
    "latest": LatestTurn,
    "remote-state": Agreement,
}
"""The documents in commits, those that programs exchange, the marks on their lines, and local files of a store."""


class _SchemaGenerator(GenerateJsonSchema):
    """Gives no titles to keys, which say their own names, and no defaults: whatever is not optional is stored."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])

    def bytes_schema(self, schema: Any) -> Any:
        return {"type": "string", "contentEncoding": "base64"}

    def dataclass_schema(self, schema: Any) -> Any:
        optional = {field.name for field in fields(schema["cls"]) if field.metadata == OPTIONAL}
        shape = super().dataclass_schema(schema)
        return {**shape, "required": [key for key in shape["properties"] if key not in optional]}


def json_schema(shape: Any) -> bytes:
    """Return the JSON Schema of a dataclass or a shape, as the bytes of its file."""
    shape.__pydantic_config__ = DOCUMENTED
    schema = TypeAdapter(shape).json_schema(schema_generator=_SchemaGenerator)
    return json.dumps({"$schema": DIALECT, **schema}, indent=2, ensure_ascii=False).encode() + b"\n"


def schemas() -> dict[str, bytes]:
    """Return each schema by its name, as the bytes of its file."""
    return {name: json_schema(shape) for name, shape in SHAPES.items()}
