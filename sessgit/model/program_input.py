"""What a program says of a conversation that it holds itself: turns, the cells in them, and its reasons.

A cell has a type, an operation with its arguments, and the cells that it depends on, of its own turn or of an earlier
one. Its id is `cell_` and eight of `a-z0-9`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, TypeVar, get_args

from sessgit.errors import UsageError
from sessgit.model import stored_fields
from sessgit.model.conversation.turn import Tokens
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import MAX_COUNT, CellType, Count, Rate, Rule

TYPES: tuple[str, ...] = get_args(CellType)
CELL_ID = re.compile(r"cell_[a-z0-9]{8}")
T = TypeVar("T")
Name = Annotated[str, Rule(what="one line of at most 200 characters", max_length=200, printable=True)]
Operation = Annotated[Name, Rule(what="an operation, such as 'peek'", pattern=".+")]
CellKind = Annotated[str, Rule(what=f"a type of cells: {', '.join(TYPES)}", pattern="|".join(TYPES))]
CellId = Annotated[str, Rule(what="a cell id: cell_ and eight of a-z0-9", pattern=CELL_ID.pattern)]
GivenId = Annotated[str, Rule(what="a cell id: cell_ and eight of a-z0-9", pattern=f"{CELL_ID.pattern}|")]
Dependencies = Annotated[tuple[CellId, ...], Rule(what="a list of at most 10,000 cells", max_length=10_000)]
CallId = Annotated[str, Rule(what="at most 128 letters, digits, _ and -", pattern="[a-zA-Z0-9_-]{0,128}")]
ToolName = Annotated[CallId, Rule(what="the name of a tool", pattern=".+")]
Words = Annotated[str, Rule(what="a text that says something", pattern=r"(?s)\s*\S.*")]
Moment = Annotated[float, Rule(what="a time in seconds since 1970", ge=0, le=1e11)]
Milliseconds = Annotated[float, Rule(what="a number of milliseconds", ge=0, lt=MAX_COUNT)]
Json = Annotated[Any, Rule(json=True)]
Arguments = Annotated[Mapping[str, Any], Rule(json=True)]
TokenKind = Annotated[
    str, Rule(what=f"a kind of tokens: {', '.join(Tokens._fields)}", pattern="|".join(Tokens._fields))
]
TokenCounts = Mapping[TokenKind, Count]
_NOTHING_RECORDED = "Nothing was recorded."


@frozen
class Metadata:
    """How deep in a recursion a cell ran, and what of a model it used; `tokens_used` counts tokens of all kinds."""

    depth: Count = 0
    model: str = ""
    tokens_used: Count = 0


@frozen
class Task:
    """What a cell shall do. `source` says where it comes from, as `repl` or the name of a program; `created` is in
    seconds since 1970, None for now; without an `id` the cell gets one of its own."""

    type: CellKind
    operation: Operation
    args: Arguments = field(default_factory=dict)
    source: Name = ""
    dependencies: Dependencies = ()
    id: GivenId = ""
    created: Moment | None = None
    metadata: Metadata = Metadata()


@frozen
class Outcome:
    """What a cell came to: any JSON value, or an error; how long it took in milliseconds, where that is known.

    `tokens` are what a call of the model `model` used, by kind: `input`, `output`, `cache_read`, `cache_write`.
    """

    result: Json = None
    error: str | None = None
    execution_time_ms: Milliseconds | None = None
    model: Name = ""
    tokens: TokenCounts = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return whether it ended without an error."""
        return self.error is None


@frozen
class Step:
    """A cell and what it came to; None is one that is pending."""

    task: Task
    outcome: Outcome | None = None


@frozen
class ToolCall:
    """A call of a tool as the agent itself makes it, with what the tool said; `time` as that of a `Saying`."""

    name: ToolName
    input: Arguments = field(default_factory=dict)
    output: str = ""
    is_error: bool = False
    id: CallId = ""
    time: Moment | None = None


@frozen
class Reason:
    """A step of reasoning (a trace), or a decision among options, with the evidence for it: ids of cells, or words;
    `time` as that of a `Saying`."""

    kind: Literal["trace", "decision"]
    text: Words
    evidence: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    chosen: str = ""
    confidence: Rate | None = None
    time: Moment | None = None


@frozen
class Saying:
    """Words of the agent in between; `model` is empty where no model said them, `time` is in seconds since 1970, None
    for that of the turn."""

    text: str
    model: Name = ""
    time: Moment | None = None


Part = Step | ToolCall | Reason | Saying


@frozen
class GivenTurn:
    """A turn that a program gives as a whole: a prompt, what was done about it in its order, and the answer.

    `time` is of the prompt and `ended` of the answer, in seconds since 1970, None where they are not known. `key` is
    the prompt's uuid if it has one already. `tokens` are by kind, as `input` and `output`, of the answer's model.
    """

    prompt: str
    parts: tuple[Part, ...] = ()
    answer: str = ""
    model: Name = ""
    time: Moment | None = None
    ended: Moment | None = None
    key: str = ""
    tokens: TokenCounts = field(default_factory=dict)


def check(value: T) -> T:
    """Return one of these values, all of whose fields are of their types; raises UsageError that names the first one
    that is not."""
    try:
        stored_fields.check_fields(value)
    except ValueError as error:
        raise UsageError(str(error), _NOTHING_RECORDED) from error
    return value


def to_json_line(value: Any, what: str) -> str:
    """Return the value in JSON on one line; raises UsageError where it is none."""
    try:
        return stored_fields.json_line(value)
    except ValueError as error:
        raise UsageError(f"{what} {error}", _NOTHING_RECORDED) from error
