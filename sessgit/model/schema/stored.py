"""The shapes of what lies in the tree of a commit: a session's state, a cell, an entry of the scratchpad.

A key that is not required may be missing; a reader passes over keys that it does not know.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal, NotRequired

from pydantic import Field

from sessgit.model.programs.program import CELL_ID, CellType
from sessgit.model.schema.parts import DOCUMENTED, Activation, Budget, Count, Exported, Memory, Program
from sessgit.model.scratchpad import pad

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # as in `parts`
    from typing_extensions import TypedDict

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
CellId = Annotated[str, Field(pattern=f"^{CELL_ID.pattern}$")]
EntryId = Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
Number = Annotated[int, Field(ge=1)]


class Metadata(Program):
    """What a session is: who held it, where and when."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    session_id: str
    """The session's id."""
    agent: str
    """The agent."""
    agent_id: str
    """The agent's own id of it."""
    agent_version: str
    """The version of the agent."""
    title: str
    """What the agent calls it."""
    cwd: str
    """The project's folder."""
    transcript_path: str
    """Where the agent's file was when it was recorded."""
    git_branch: str
    """The last branch of the project."""
    first_prompt: str
    """The first line of the first prompt that has text."""
    created_at: Time | None
    """The first time in the file."""
    updated_at: Time | None
    """The latest time of a turn."""
    ended_at: Time | None
    """When it ended; null while it is active."""
    headless: bool
    """Whether a program held it."""
    state: Literal["active", "ended", "interrupted", "archived"]
    """How it stands."""


class Origin(TypedDict):
    """Where a session left another one."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    session: str
    """The branch that it left."""
    turn: Count
    """How many turns it shares."""
    commit: str
    """The fork point."""
    replaced: list[str]
    """The agent's ids that stand in shared turns where its file has this session's."""
    prefix: Count
    """How many bytes at the start of its file the fork wrote."""
    prefix_sha256: str
    """SHA-256 of these bytes as they are stored."""
    cell: str
    """Where in the next turn the fork was made, as 7.3."""


class Kinds(TypedDict):
    """Tokens by kind, and calls of the model."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    calls: Count
    """Messages of the model."""
    input: Count
    """What it read, those from the cache left out."""
    output: Count
    """What it wrote."""
    cache_read: Count
    """What came from the cache."""
    cache_write: Count
    """What went into the cache."""


class Used(Budget):
    """What was used, as the lines tell, and as a program says where one set it."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    total_tokens_used: Annotated[int, Field(ge=0)]
    """The sum of all tokens."""
    by_model: dict[str, Kinds]
    """The same by model."""


class CellCount(TypedDict):
    """Its cells."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    count: Count
    """How many there are."""


class Trajectory(Exported):
    """How long it is, and where a program wrote it to."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    turns: Count
    """How many turns."""
    messages: Count
    """How many prompts, results and messages of the model."""


class Authored(TypedDict):
    """What people said of it."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    name: str
    """A name, unique in its project."""
    description: str
    """Free text."""
    labels: list[str]
    """Words."""
    stage: Literal["", "gathering", "shaping", "critiquing", "synthesized"]
    """How far it has come."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None
    """How sure its result is."""


class Session(TypedDict):
    """The state of a session: session.json in the tree of each commit. Its rules are versions by name."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    metadata: Metadata
    origin: Origin | None
    budget: Used
    cells: CellCount
    trajectory: Trajectory
    rules: dict[str, Count]
    authored: Authored
    activation: NotRequired[Activation]
    context: NotRequired[Memory]


class Cell(TypedDict):
    """A line of a turn's cells.jsonl: one replayable unit of the turn."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    id: CellId
    """Its id."""
    type: CellType
    """What it is."""
    operation: str
    """The tool, the model, or what a program calls it."""
    lines: list[Number]
    """Its lines in the turn's transcript.jsonl, from 1."""
    depends: list[CellId]
    """The cells that it depends on, of its turn or of an earlier one."""
    ok: bool | None
    """Whether it worked; null while there is no result."""
    program: NotRequired[Literal[True]]
    """That a program made it: then it depends on nothing but what it says."""


class Resolved(TypedDict):
    """How a tension or a question was settled."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    time: Time
    """When."""
    text: str
    """In which words."""


class PadEntry(TypedDict):
    """A line of a list of the scratchpad: something noted."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    id: EntryId
    """Its id, which follows from what is said."""
    kind: Annotated[str, Field(json_schema_extra={"enum": list(pad.LISTS)})]
    """What it is; each kind has a list of its own."""
    text: str
    """Its words."""
    time: Time
    """When it was said."""
    session: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
    """The session that it was said in."""
    cycle: Annotated[int, Field(ge=1, le=pad.LATEST_CYCLE)]
    """In which cycle."""
    turn: NotRequired[Number]
    """After which turn."""
    source: NotRequired[str]
    """Where it comes from, in words."""
    between: NotRequired[list[EntryId]]
    """The claims that a tension is between."""
    form: NotRequired[Annotated[Literal["expansion", "compression", "critique", "synthesis"], Field(alias="pass")]]
    """What kind of pass it is."""
    version: NotRequired[Number]
    """Which thesis of all it is."""
    value: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    """A confidence."""
    resolved: NotRequired[Resolved]
    """Of a tension or a question that was settled."""
