"""One line of a transcript: its bytes, its place, and what its agent means by it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sessgit.model import ids, long_strings
from sessgit.model.conversation.message import Extent

CHOSEN = 3
"""The rank of a title that a person chose."""
_BOM = b"\xef\xbb\xbf"
_OBJECT = json.JSONDecoder().raw_decode
"""What `json.loads` reads an object with, in half the time for a line: from a text to the object and where it ends."""


NOWHERE = Extent(0, 0)
"""The place of a line that is read from the store."""


class Base(NamedTuple):
    """What a file goes on from: the agent's id of the session with the lines before it, the ordinal of the first line
    that no longer belongs to it, and the length in bytes of what does in that session's file."""

    agent_id: str
    ordinal: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Line(ABC):
    """A line as it is stored: redacted, without its newline.

    `original` is what the agent wrote where that differs; `data` is None where the line is no JSON object. What the
    line means is its agent's to say.
    """

    raw: bytes
    extent: Extent
    data: dict[str, Any] | None
    original: bytes | None = None
    secrets: int = 0

    @property
    def written(self) -> bytes:
        """Return what the agent wrote, without the newline."""
        return self.raw if self.original is None else self.original

    @property
    def is_unended(self) -> bool:
        """Return whether the file ended behind the line without a newline."""
        return self.extent.length == len(self.written) > 0

    def text(self, key: str) -> str:
        """Return the value of a top-level key where it is a string, else ""."""
        value = self.data.get(key) if self.data else None
        return value if isinstance(value, str) else ""

    @property
    @abstractmethod
    def type(self) -> str:
        """Return the kind of line, as the agent names it."""

    @property
    def is_known(self) -> bool:
        """Return whether the agent could have written the line, rather than another program that writes JSON."""
        return bool(self.type)

    @property
    def uuid(self) -> str:
        """Return the line's id, or "" if it has none: recorded lines are recognized by it. Of an agent whose lines have
        no ids, one made of their bytes."""
        return ids.line_id(self.raw, 0) if self.data is not None else ""

    @property
    def is_anonymous(self) -> bool:
        """Return whether the line has no id of its own, but one made of its bytes."""
        return self.data is not None and self.uuid == ids.line_id(self.raw, 0)

    @property
    def parent(self) -> str:
        """Return the id of the line that this one follows, or "" if the agent's files are in order and do not say."""
        return ""

    @property
    def is_root(self) -> bool:
        """Return whether the line says that nothing comes before it, rather than not saying what does."""
        return False

    @property
    def session(self) -> str:
        """Return the agent's id of the session that the line names as its own, or ""."""
        return ""

    @property
    def forked_from(self) -> str:
        """Return the agent's id of the session that the line says it was copied from, or ""."""
        return ""

    @property
    def began_by(self) -> str:
        """Return the agent's id of the session that the line says began this one as a subagent, or ""."""
        return ""

    @property
    def base(self) -> Base | None:
        """Return what the file goes on from if the line, its first one, says that it has not all lines itself."""
        return None

    @property
    def ordinal(self) -> int | None:
        """Return the number of the line in its history, counted on from the base, or None if lines have none."""
        return None

    @property
    @abstractmethod
    def message_text(self) -> str:
        """Return all that the line's message says, or ""."""

    @property
    @abstractmethod
    def time(self) -> str:
        """Return the line's own time, RFC 3339 in UTC with milliseconds, or ""."""

    @property
    def cwd(self) -> str:
        """Return the working folder that the line names, or ""."""
        return self.text("cwd")

    @property
    def version(self) -> str:
        """Return the version of the client that the line names, or ""."""
        return self.text("version")

    @property
    def git_branch(self) -> str:
        """Return the branch of the project's git repository that the line names, or ""."""
        return ""

    @property
    def slug(self) -> str:
        """Return the name of the session's plan that the line names, or ""."""
        return ""

    @property
    def title(self) -> tuple[str, int] | None:
        """Return the title of the session that the line gives, and its rank, at most `CHOSEN`; None if it gives
        none."""
        return None

    @property
    def is_headless(self) -> bool | None:
        """Return whether a program ran the client rather than a person, or None if the line does not say."""
        return None

    @property
    @abstractmethod
    def is_prompt(self) -> bool:
        """Return whether a person, or the program that stands for one, gives the agent something to do here."""

    @property
    def prompt_id(self) -> str:
        """Return the identity of the turn that the line opens, if it is a prompt: its id, or one made of its bytes and
        place if that is not fit for a turn's key."""
        return self.uuid if ids.is_turn_key(self.uuid) else ids.line_id(self.raw, self.extent.offset)

    @property
    @abstractmethod
    def is_said(self) -> bool:
        """Return whether the line is a message, of the person or of the model."""

    @property
    @abstractmethod
    def is_result(self) -> bool:
        """Return whether the line brings the result of a tool."""

    @property
    @abstractmethod
    def is_work(self) -> bool:
        """Return whether the agent is at work here: an answer of the model or the result of a tool."""

    @property
    @abstractmethod
    def is_body(self) -> bool:
        """Return whether a turn's body can end with the line."""

    @property
    def is_boundary(self) -> bool:
        """Return whether a compaction begins here: what came before is no longer sent to the model."""
        return False

    @property
    def turns_rolled_back(self) -> int:
        """Return how many of the last turns the next prompt leaves behind, for an agent whose lines are in the order of
        the file and say so."""
        return 0

    @property
    def is_sidechain(self) -> bool:
        """Return whether the line is a subagent's and not the conversation's own."""
        return False

    @property
    @abstractmethod
    def is_end(self) -> bool:
        """Return whether the turn can be over with the line: the model has answered, and calls no tool."""


def parse(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a line, or None; a line too long or too deep to be read is not read."""
    if len(raw) > long_strings.LONGEST_LINE:
        return None
    try:
        text = raw.removeprefix(_BOM).decode("utf-8", "surrogatepass")  # bytes may be taken for UTF-16
        data, end = _OBJECT(text) if text.startswith("{") else (None, -1)
        if end != len(text):  # blanks around it, or no JSON
            data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def split(data: bytes, offset: int) -> Iterator[tuple[bytes, Extent]]:
    """Yield the complete lines of a piece of a file that starts at `offset`; what follows the last newline is left
    out."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end], Extent(offset + start, end + 1 - start)
        start = end + 1
