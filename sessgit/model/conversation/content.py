"""What was said and done in a turn, piece by piece, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from sessgit.model import canonical
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.model.conversation.turn import Cell
    from sessgit.model.program_input import Outcome, Reason, Task

Speaker = Literal["person", "model", "client"]


@frozen
class Words:
    """Something that was said.

    `by` is the person (the prompt, and what was queued meanwhile), the model (its answers, and its `thinking`), or
    the client (notices that it put into the conversation). `ordinal` is that of the model's cell in the turn,
    from 1, and 0 where no cell said it; `time` is RFC 3339 or empty; `line` the number of the line in the turn's
    body, from 1. `images` are in base64, "" for those that are not in the transcript. `reason` is what a program says
    in its own form with the same words.
    """

    by: Speaker
    text: str
    time: str = ""
    thinking: bool = False
    ordinal: int = 0
    line: int = 0
    images: tuple[str, ...] = ()
    reason: Reason | None = None


@frozen
class Change:
    """What a call did to a file: the lines of a unified diff without its two headings. Of a file that went, or got
    another path, the first line is git's `deleted file`, `rename from PATH` or `rename to PATH`."""

    path: str
    diff: tuple[str, ...]


@frozen
class Call:
    """A tool call with what came of it.

    `ordinal` is that of the cell in the turn, from 1. `output` is what the tool said to the model, `result` what the
    client noted with it (an object, a text, or None); `exit_code` is that of a command where it is known. `time` and
    `ended` are those of the call and of its result, RFC 3339 or empty. `line` is the line of the call in the turn's
    body, from 1, `result_line` that of its result or 0. `files` are the paths that it names. `task` and `outcome` are
    what a program says of a cell of its own; both are None for a call of the agent's.
    """

    cell: Cell
    ordinal: int
    input: Mapping[str, Any]
    output: str = ""
    result: Any = None
    files: tuple[str, ...] = ()
    about: str = ""
    """The argument that tells best what the call is about, on one line."""
    changes: tuple[Change, ...] = field(default_factory=tuple)
    in_changes: tuple[str, ...] = ()
    """The arguments that the changes show."""
    exit_code: int | None = None
    time: str = ""
    ended: str = ""
    line: int = 0
    result_line: int = 0
    images: tuple[str, ...] = ()
    task: Task | None = None
    outcome: Outcome | None = None

    @property
    def tool(self) -> str:
        """Return the tool's name."""
        return self.cell.operation

    @property
    def file(self) -> str:
        """Return the first file that the call names, or ""."""
        return next(iter(self.files), "")

    @property
    def seconds(self) -> float | None:
        """How long the call took, None if that is unknown."""
        return canonical.seconds_between(self.time, self.ended)


def failure(ok: bool | None, exit_code: int | None) -> str:
    """Return `no result`, `exit 2` or `failed`; nothing of a call that went well."""
    if ok is None:
        return "no result"
    return f"exit {exit_code}" if exit_code else "" if ok else "failed"


Piece = Words | Call
