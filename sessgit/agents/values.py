"""The values that agents and the rest of the program exchange."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sessgit.model.conversation.turn import Cell
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.model.line_list import Bytes


@dataclass
class OpenCell:
    """A cell in the making, a message of the model or a call; `depends` and `lines` as those of a `Cell`."""

    id: str
    type: str
    operation: str
    depends: tuple[str, ...]
    lines: list[int]
    ok: bool | None = None
    is_program: bool = False
    """Whether a program made it and gave it its id."""

    @property
    def cell(self) -> Cell:
        """Return the cell as far as it is known."""
        return Cell(self.id, self.type, self.operation, tuple(self.lines), self.depends, self.ok, self.is_program)


@frozen
class Use:
    """What a call is about: a command, or files by absolute path, with what the tool does to each: `r` if it reads it,
    `w` if it writes, moves or deletes it, or `rw`, and "" if the call failed."""

    files: Mapping[str, str] = field(default_factory=dict)
    command: str = ""

    @property
    def reads(self) -> list[str]:
        """Return the files that it reads."""
        return [file for file, access in self.files.items() if "r" in access]

    @property
    def writes(self) -> list[str]:
        """Return the files that it writes."""
        return [file for file, access in self.files.items() if "w" in access]


@frozen
class FileEdit:
    """What a call that succeeded made of a file, by its absolute path: each text that it replaced and the new one.

    The replaced text is None if it is unknown. Texts are whole lines if the agent tells enough for that. `call` is the
    agent's id of the call, `line` the number of its line, from 1; `time` is that of the result, RFC 3339 or empty.
    `is_whole` says that the last new text is the whole file.
    """

    call: str
    file: str
    line: int
    time: str
    git_branch: str
    changes: tuple[tuple[str | None, str], ...]
    is_whole: bool = False


@frozen
class Said:
    """One text of a line. `kind` is prompt, answer, thinking, tool or notice; `call` the agent's id of a tool's call
    whose input or output it is, `tool` that tool's name where the line itself tells it."""

    kind: str
    text: str
    call: str = ""
    tool: str = ""


Relation = Literal["same", "part", "different"]
"""`part` says that one of two turns has only some of the other's lines, and none of its own."""


Document = dict[str, Any]


@frozen
class Installation:
    """Which events run which stub, and the plugin, which runs it where no entry does."""

    entries: tuple[tuple[str, str], ...]
    """Event and stub, in the order of the file; two for an event that runs two."""
    plugin: str = ""
    """The enabled plugin's key, which says where it came from, or empty."""
    status_line: bool = False
    """Whether the client shows our status line."""

    @property
    def events(self) -> frozenset[str]:
        """Return the events that run a stub of ours."""
        return frozenset(event for event, _ in self.entries)

    @property
    def stubs(self) -> frozenset[str]:
        """Return the stubs of ours that are run, of whatever store."""
        return frozenset(stub for _, stub in self.entries)


@frozen
class PluginQuestion:
    """A command of the plugin that a user typed: the arguments of `sessgit`, and with which folder and variables to run
    it."""

    words: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


@frozen
class Snapshot:
    """A settings file as it was read."""

    path: Path
    target: Path
    """The file itself: managers of dot files make the settings a symlink, which has to stay one."""
    content: bytes | None
    """None where there is no file."""
    document: Document


SUBAGENT, RESULT, TASK, TODO, PLAN = KINDS = ("subagent", "large tool result", "task", "todo list", "plan")
"""The kinds of files that an agent keeps next to a transcript."""
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""The names under which they are recorded."""


ToolKind = Literal["shell", "read", "search", "write", "subagent"]
"""What a tool does."""
FILE_KINDS = ("read", "write")
"""The kinds of tools of which it is known what they do to the file that they name."""


@frozen
class SideFile:
    """A file next to a transcript: what it is, one of `KINDS`, the name that it is recorded under, and its bytes."""

    kind: str
    name: str
    data: Bytes

    @property
    def counts(self) -> bool:
        """Return whether it is a thing of its own, and not what the client notes about another."""
        return not self.name.endswith(".meta.json")


@dataclass(frozen=True)
class Written:
    """A transcript ready to be put into a file, in parts that follow each other; `leaf` is the last of its chain."""

    parts: Sequence[bytes]
    leaf: str
    dropped_calls: int = 0
    """Tool calls at the end that had no result yet: they are left out."""
    sidechain_lines: int = 0
    """Lines of subagents that stood among those of the session: they are left out."""
    unlinked_lines: int = 0
    """Lines that name a parent which is not there: they are left out."""

    @property
    def data(self) -> bytes:
        return b"".join(self.parts)

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return sum(map(len, self.parts))

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for part in self.parts:
            digest.update(part)
        return digest.hexdigest()


Kind = Literal[
    "glued", "unreadable", "writer", "duplicate", "uuid", "parent", "cycle", "call", "result", "session", "time",
    "order",
]  # fmt: skip
"""What was wrong with a line."""


@frozen
class Mend:
    """What was done about a line: the number of its turn, and its own in that, from 1."""

    kind: Kind
    turn: int
    line: int
    what: str


@frozen
class Mended:
    """The lines turn by turn, by the numbers of these, and what was done, in the order of the lines."""

    turns: dict[int, list[bytes]]
    mends: tuple[Mend, ...]


@frozen
class Seam:
    """Where lines go on: the uuid of the last line on the head's chain, the latest time of all lines of the file in
    milliseconds since 1970, and every uuid in it."""

    leaf: str
    latest: int
    uuids: frozenset[str]


@frozen
class NewTurn:
    """The lines of a turn to append, and the id of its prompt."""

    key: str
    lines: list[bytes]


class DeclinedError(Exception):
    """What a tool may not do, or cannot; `leads_out` says that it would have reached outside of the sandbox."""

    def __init__(self, why: str, *, leads_out: bool = False) -> None:
        super().__init__(why)
        self.leads_out = leads_out


def existing(text: str | None) -> str:
    """Return the text of a file that must be there; raises FileNotFoundError."""
    if text is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return text


@frozen
class StreamAnswer:
    """What a client that was asked has answered: its words, or where it `failed` why, and what it used."""

    text: str
    failed: bool
    tokens: Mapping[str, int]
