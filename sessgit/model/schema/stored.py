"""The shapes of stored documents: of those in the tree of a commit, of a store's local files, and of the marks that a
program writes on lines.

A key that is not required may be missing; a reader passes over keys that it does not know.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal, NotRequired

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
    """The name, or empty: unique in its project, 1 to 100 characters on one line, no @ and /, no - in front."""
    description: str
    """Free text of at most 2,000 characters."""
    labels: list[str]
    """At most 50 labels in sorted order: each 1 to 50 characters on one line, no comma, no + or - in front."""
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


class SourceSaid(TypedDict, total=False):
    """What the other system last said of the session. An import applies only what has changed since."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    name: str
    title: str
    description: str
    labels: list[str]
    stage: str
    confidence: float | None
    state: str
    role: str
    created: str
    updated: str
    ended: str
    unified: dict[str, Any]
    """The parts of session.json that programs set."""
    pad: dict[str, list[str]]
    """For each list of the pad the first 12 hex digits of each line's SHA-256."""


class KeptSource(TypedDict):
    """The file kept/source.json: the system from which the session was imported. In a fork, whose id is another one,
    it has no meaning."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

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


# Local files

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Cursor(TypedDict):
    """The file state/<id>.json: how far the session's transcript is recorded.

    It is valid if path and inode match, the file is not shorter than offset, proof is right, the head is commit or has
    only edit and merge commits after it, and a newline or nothing follows a line that was unended.
    """

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    version: Literal[1]
    """A cursor of another version is ignored."""
    path: str
    """The path of the transcript."""
    inode: Count
    """The inode of the transcript."""
    file: Count
    """The number of the file among those of the session, from 1."""
    offset: Count
    """The number of bytes that are recorded or pending."""
    proof: str
    """SHA-256 of the last 65,536 bytes before the offset; empty, which never matches, if they changed meanwhile."""
    hash: str
    """The File-Hash up to the offset; empty if unknown."""
    commit: str
    """The head that these bytes led to, or the furthest one, or the end commit before a head from elsewhere."""
    current: str | None
    """The branch whose last turn got the last body line: empty for the head; null: read the file from the beginning."""
    uuids: list[str]
    """The uuids of that turn's body."""
    pending: list[tuple[Count, Count, Count]]
    """The pending lines: offset, length, number of lines."""
    stuck: Count
    """The number of pending lines that wait for the next prompt whatever comes before it."""
    final: bool
    """Whether the agent had closed the file, so that its last lines are recorded too."""
    agents: dict[str, tuple[str, Count, Count]]
    """By name of each subagent's file: the key of the turn that last got a piece of it, and its first and last byte."""
    facts: dict[str, Any]
    """What the lines so far say of the session as a whole."""
    copies: list[Count]
    """The number of lines that each copy contributes to the head's file."""
    others: list[str]
    """The branches of older versions of the file."""
    unended: bool
    """Whether the last line before the offset had no newline."""
    torn: Count
    """The length of the incomplete line after the offset."""


class Operation(TypedDict):
    """A line of operations.jsonl: what a command does to refs and files."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    id: EntryId
    """Eight hex digits of the hash of the line's offset and its other content."""
    time: Time
    command: str
    """The command; background for what no user asked for."""
    summary: str
    """One line for the user."""
    refs: dict[str, tuple[str | None, str | None]]
    """By full name of the ref: the commit before and after; null for no ref."""
    files: dict[str, Hash]
    """By path the SHA-256 of each file that the command writes next; only files in the agent's folder count."""
    undoes: str
    """The id of the operation that this one reverts, or empty."""
    appended: NotRequired[dict[str, tuple[Count, Count, Hash]]]
    """By path what was appended to a file: offset, length, SHA-256."""
    cut: NotRequired[dict[str, tuple[Count, Count, Hash]]]
    """By path what was removed from the end of a file: offset, length, SHA-256."""
    completes: NotRequired[str]
    """The id of the fork that created the session of a merge or pick. Then refs begin with null."""


class AppendNote(TypedDict):
    """The file state/<id>.append: the lines that a merge is appending to a transcript."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    path: str
    """The path of the transcript."""
    offset: Count
    """The offset of the data in the transcript."""
    data: str
    """The bytes, in base64."""
    head: str
    """The session's head before, or empty if unknown."""
    command: str
    """The command that appends."""
    brought: dict[str, tuple[str, str]]
    """By the key of each turn in the data its event and its Origin."""
    files: dict[str, Hash]
    """By path the SHA-256 of each file that was written next to the transcript."""


class Latest(TypedDict):
    """The file latest.json: the last turn that a recorder recorded."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    version: Literal[1]
    session: str
    turn: Number
    time: float
    """Seconds since 1970."""
    delay: Count | None
    """Milliseconds after the answer; null if the recorder did not wait for one."""


class RemoteState(TypedDict):
    """The file state/remote-<16>.json: what store and remote last agreed on. Without it, nothing is agreed on."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    version: Literal[1]
    archived: dict[str, bool]
    """By session whether it was archived on both sides."""
    stones: dict[str, str]
    """By session the tombstone that was considered."""
    tags: dict[str, str]
    """By the first 16 hex digits of the SHA-256 of a tag's name its commit."""


class PurgedForm(TypedDict):
    """A form of a purged value: the value, the value with + for spaces, the base64 and base64url characters that it
    determines at each of three offsets, or its hex."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

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

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    id: EntryId
    """Eight hex digits of the first form's hash."""
    time: Time
    forms: list[PurgedForm]
    """Empty in state/forbidden-lost."""


class PurgedValues(TypedDict):
    """The files state/forbidden and state/forbidden-lost."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    version: Literal[1]
    values: list[PurgedValue]


# Lines of programs

Word = Annotated[str, Field(max_length=200, pattern=r"^[^\n]*$")]


class CellMetadata(TypedDict, total=False):
    """What a cell used; values that are 0 or empty are left out."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    depth: Count
    model: str
    tokens_used: Count


class CellMark(TypedDict):
    """On an assistant line with one tool_use block that has an id: a cell begins. The block has its arguments."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

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

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

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

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    kind: Literal["trace", "decision"]
    text: Annotated[str, Field(min_length=1)]
    evidence: NotRequired[list[str]]
    """Ids of cells, or words."""
    options: NotRequired[list[str]]
    chosen: NotRequired[str]
    """The option that was chosen."""
    confidence: NotRequired[Annotated[float, Field(ge=0, le=1)]]


class ProgramMark(TypedDict, total=False):
    """The value of the key sessgit on a line that a program wrote."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    cell: CellMark
    outcome: OutcomeMark
    running: Literal[True]
    """On a user line with one tool_result block: the call's cell has no result yet."""
    result_of: CellId
    """On an assistant line with one tool_use block that has an id: that call has the result of this cell."""
    reason: ReasonMark
    words: Literal[True]
    """On an assistant line: the program, and no model, wrote the text and made the calls."""
