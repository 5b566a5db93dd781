"""What a program says of a conversation that it holds itself: turns, the cells in them, and its reasons.

A cell has a type, an operation with its arguments, and the cells that it depends on, of its own turn or of an earlier
one. Its id is `cell_` and eight of `a-z0-9`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, get_args

from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import CellType, Count

TYPES: tuple[str, ...] = get_args(CellType)
CELL_ID = re.compile(r"cell_[a-z0-9]{8}")
LONGEST_NAME = 200
"""Characters of an operation or a source."""
MOST_DEPENDENCIES = 10_000
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

    type: str
    operation: str
    args: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    dependencies: tuple[str, ...] = ()
    id: str = ""
    created: float | None = None
    metadata: Metadata = Metadata()


@frozen
class Outcome:
    """What a cell came to: any JSON value, or an error; how long it took in milliseconds, where that is known.

    `tokens` are what a call of the model `model` used, by kind: `input`, `output`, `cache_read`, `cache_write`.
    """

    result: Any = None
    error: str | None = None
    execution_time_ms: float | None = None
    model: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)

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

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    is_error: bool = False
    id: str = ""
    time: float | None = None


@frozen
class Reason:
    """A step of reasoning (a trace), or a decision among options, with the evidence for it: ids of cells, or words;
    `time` as that of a `Saying`."""

    kind: Literal["trace", "decision"]
    text: str
    evidence: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    chosen: str = ""
    confidence: float | None = None
    time: float | None = None


@frozen
class Saying:
    """Words of the agent in between; `model` is empty where no model said them, `time` is in seconds since 1970, None
    for that of the turn."""

    text: str
    model: str = ""
    time: float | None = None


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
    model: str = ""
    time: float | None = None
    ended: float | None = None
    key: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)


def check_task(task: Task) -> Task:
    """Return the task; raises UsageError that says what of it is wrong."""
    if task.type not in TYPES:
        raise UsageError(
            f"there are no cells of type “{_shown_value(task.type)}”", f"A type is one of {', '.join(TYPES)}."
        )
    for what, value in (("operation", task.operation), ("source", task.source)):
        if not isinstance(value, str) or len(value) > LONGEST_NAME or not canonical.is_printable(value):
            raise UsageError(
                f"the {what} of a cell must be one line of at most {LONGEST_NAME} characters", _NOTHING_RECORDED
            )
    if not task.operation:
        raise UsageError("a cell needs an operation, such as “peek”", _NOTHING_RECORDED)
    if task.id and not CELL_ID.fullmatch(task.id):
        raise UsageError(f"“{_shown_value(task.id)}” is not a cell id: cell_ and eight of a-z0-9", _NOTHING_RECORDED)
    if len(task.dependencies) > MOST_DEPENDENCIES:
        raise UsageError(
            f"a cell can depend on at most {MOST_DEPENDENCIES:,} others, not on {len(task.dependencies):,}",
            _NOTHING_RECORDED,
        )
    for other in task.dependencies:
        if not isinstance(other, str) or not CELL_ID.fullmatch(other):
            raise UsageError(f"“{_shown_value(other)}” is not a cell id", _NOTHING_RECORDED)
    to_json_line(task.args, "the arguments of a cell")
    if not isinstance(task.args, Mapping):
        raise UsageError("the arguments of a cell are an object with names", _NOTHING_RECORDED)
    return task


def to_json_line(value: Any, what: str) -> str:
    """Return the value in JSON on one line; raises UsageError where it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be written as JSON: {error}", _NOTHING_RECORDED) from error


def _shown_value(value: object) -> str:
    return canonical.one_line(str(value), 40)
