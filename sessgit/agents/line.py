"""One line of a transcript: its bytes, its place, and what its agent means by it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sessgit.model import long_strings
from sessgit.model.conversation.message import Extent

_BOM = b"\xef\xbb\xbf"
_OBJECT = json.JSONDecoder().raw_decode
"""What `json.loads` reads an object with, in half the time for a line: from a text to the object and where it ends."""


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
        """What the agent wrote, without the newline."""
        return self.raw if self.original is None else self.original

    @property
    def is_unended(self) -> bool:
        """Whether the file ended behind the line without a newline."""
        return self.extent.length == len(self.written) > 0

    def text(self, key: str) -> str:
        """The value of a top-level key where it is a string, else ``""``."""
        value = self.data.get(key) if self.data else None
        return value if isinstance(value, str) else ""

    @property
    @abstractmethod
    def type(self) -> str:
        """The kind of line, as the agent names it."""

    @property
    @abstractmethod
    def uuid(self) -> str:
        """The line's own id, or ``""`` where the agent gives it none."""

    @property
    @abstractmethod
    def parent(self) -> str:
        """The id of the line that this one follows, or ``""``."""

    @property
    @abstractmethod
    def time(self) -> str:
        """The line's own time, RFC 3339 in UTC with milliseconds, or ``""``."""

    @property
    @abstractmethod
    def cwd(self) -> str:
        """The working folder that the line names, or ``""``."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the client that the line names, or ``""``."""

    @property
    @abstractmethod
    def is_prompt(self) -> bool:
        """Whether a person, or the program that stands for one, gives the agent something to do here."""

    @property
    @abstractmethod
    def prompt_id(self) -> str:
        """The identity of the turn that the line opens, if it is a prompt."""

    @property
    @abstractmethod
    def is_said(self) -> bool:
        """Whether the line is a message, of the person or of the model."""

    @property
    @abstractmethod
    def is_result(self) -> bool:
        """Whether the line brings the result of a tool."""

    @property
    @abstractmethod
    def is_work(self) -> bool:
        """Whether the agent is at work here: an answer of the model or the result of a tool."""

    @property
    @abstractmethod
    def is_body(self) -> bool:
        """Whether a turn's body can end with the line."""

    @property
    @abstractmethod
    def is_boundary(self) -> bool:
        """Whether a compaction begins here: what came before is no longer sent to the model."""

    @property
    @abstractmethod
    def is_sidechain(self) -> bool:
        """Whether the line is a subagent's and not the conversation's own."""


def parse(raw: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, or None; a line too long or too deep to be read is not read."""
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
    """The complete lines of a piece of a file that starts at `offset`; what follows the last newline is left out."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end], Extent(offset + start, end + 1 - start)
        start = end + 1
