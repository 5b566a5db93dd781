"""The shapes that other programs for such sessions have: a session's whole state, a cell, the graph of cells.

An unknown number is left out. A reader passes over keys that it does not know.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field

from sessgit.model.schema.parts import describe_keys
from sessgit.model.stored_fields import CellId, CellType, Mode

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
