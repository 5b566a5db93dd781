"""The shapes of what lies in the tree of a commit: a session's state, a cell, an entry of the scratchpad.

A key that is not required may be missing; a reader passes over keys that it does not know.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal, NotRequired

from pydantic import Field

from sessgit.model import pad
from sessgit.model.program_input import CELL_ID, CellType
from sessgit.model.schema.parts import DOCUMENTED, Activation, Budget, Count, Exported, Memory, Program

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # as in `parts`
    from typing_extensions import TypedDict

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
CellId = Annotated[str, Field(pattern=f"^{CELL_ID.pattern}$")]
EntryId = Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
Number = Annotated[int, Field(ge=1)]


class Metadata(Program):
    """What the session is. A title and a first prompt are cut to 200 characters."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    session_id: str
    """The session's id, which its refs have."""
    agent: str
    """The agent: claude."""
    agent_id: str
    """The agent's own id for the session."""
    agent_version: str
    """The last version of the agent that a line names."""
    title: str
    """The last title of the highest rank: the user's, the agent's, a summary; a former name of it ranks last."""
    cwd: str
    """The project: the first folder that a line names, or the folder that an edit set."""
    transcript_path: str
    """The transcript's path in the agent's folders when it was recorded; empty if it never was there."""
    git_branch: str
    """The last git branch that a line names."""
    first_prompt: str
    """The first line of the first prompt that has text."""
    created_at: Time | None
    """The first time in the transcript; in a fork that sessgit made, the time of the fork."""
    updated_at: Time | None
    """The latest time in a body on this branch; the time of the fork or what another system says, if that is later."""
    ended_at: Time | None
    """The latest of updated_at and the times in tail.jsonl; null while the session is active."""
    headless: bool
    """True if every line that names an entry point names the agent's SDK, and at least one line does."""
    state: Literal["active", "ended", "interrupted", "archived"]
    """Interrupted: it ended in the middle of a turn. Archived is reserved, since the ref tells it."""


class Origin(TypedDict):
    """The session that this one was forked from, and where."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    session: str
    """The branch that it was forked from."""
    turn: Count
    """The number of shared turns."""
    commit: str
    """The fork point: a commit of that branch."""
    replaced: list[str]
    """The agent's ids in shared turns that stand for this session's id in its own transcript."""
    prefix: Count
    """The number of bytes at the start of the transcript that sessgit wrote when it made the fork, else 0."""
    prefix_sha256: str
    """SHA-256 of these bytes, written from the lines as they are stored, in hex; else empty."""
    cell: str
    """The cell at which the next turn was cut, for example 7.3, else empty."""


class Kinds(TypedDict):
    """Tokens by kind. A message counts once, with the usage of its last line that has one."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

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


class Used(Budget):
    """The tokens used, counted from the lines, and what a program set."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    total_tokens_used: Annotated[int, Field(ge=0)]
    """The sum of all tokens in by_model."""
    by_model: dict[str, Kinds]
    """Tokens by model; the model <synthetic> is left out."""


class CellCount(TypedDict):
    """The cells of the session."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    count: Count
    """The number of cells along the branch, shared turns included."""


class Trajectory(Exported):
    """The length of the session along the branch, shared turns included."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    turns: Count
    """The number of turns."""
    messages: Count
    """The number of user lines and of messages of the model, without sidechains."""


class Authored(TypedDict):
    """What a person or a program set. A rewind keeps it."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    name: str
    """The session's name, unique in its project, or empty."""
    description: str
    """Free text of at most 2,000 characters."""
    labels: list[str]
    """Labels in sorted order: at most 50, each of 1 to 50 characters."""
    stage: Literal["", "gathering", "shaping", "critiquing", "synthesized"]
    """The stage of the work, or empty."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None
    """The confidence in the result, or null."""


class Session(TypedDict):
    """The state of a session: session.json in the tree of each commit."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    metadata: Metadata
    origin: Origin | None
    budget: Used
    cells: CellCount
    trajectory: Trajectory
    rules: dict[str, Count]
    """Versions of the rules that the session began with: cut, redact (0: off); redacted is how many secrets it has."""
    authored: Authored
    activation: NotRequired[Activation]
    context: NotRequired[Memory]


class Cell(TypedDict):
    """A line of a turn's cells.jsonl: a message of the model, a tool call, or a step of a program."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    id: CellId
    """The id of the cell."""
    type: CellType
    """The type of the cell; repl, map_reduce and verification are set by programs only."""
    operation: str
    """The model (message, if the line names none), the tool (tool, if it has no name), or a program's own word."""
    lines: list[Number]
    """The numbers of its lines in the turn's transcript.jsonl, from 1."""
    depends: list[CellId]
    """The cells that had to come first: of the same turn, or, if a program said so, of an earlier one."""
    ok: bool | None
    """Whether it succeeded; null while there is no result."""
    program: NotRequired[Literal[True]]
    """True if a program made the cell."""


class Resolved(TypedDict):
    """How a tension or a question was resolved."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    time: Time
    """The time at which it was resolved."""
    text: str
    """The resolution."""


class PadEntry(TypedDict):
    """A line of a list of the scratchpad."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

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
    value: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    """Of a confidence entry: the confidence."""
    resolved: NotRequired[Resolved]
    """Of a tension or a question: how it was resolved."""
