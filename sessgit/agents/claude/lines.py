"""One line of a transcript: its bytes, its place, and what it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sessgit.model import ids, long_strings
from sessgit.model.conversation.message import Extent

BODY_TYPES = ("user", "assistant", "attachment")
"""The types that end a turn's body; `system` lines carry the chain on but belong to no body by themselves."""

_NO_PROMPT = (
    "[Request interrupted",
    "<command-name>",
    "<local-command-",
    "<bash-",
    "<task-notification>",
)
_BOM = b"\xef\xbb\xbf"
_OBJECT = json.JSONDecoder().raw_decode
"""What `json.loads` reads an object with, in half the time for a line: from a text to the object and where it ends."""
_NAME = re.compile(r"[!-~]{1,100}")


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line as it is stored: redacted, without its newline.

    `original` is what the agent wrote where that differs; `data` is None where the line is no JSON object.
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

    @property
    def type(self) -> str:
        return self.text("type")

    @property
    def uuid(self) -> str:
        return self.text("uuid")

    @property
    def parent(self) -> str:
        return self.text("parentUuid")

    @property
    def is_root(self) -> bool:
        """Whether the line says that nothing comes before it, rather than not saying."""
        return self.data is not None and "parentUuid" in self.data and self.data["parentUuid"] is None

    @property
    def is_boundary(self) -> bool:
        """Whether a compaction begins here: what came before is no longer sent to the model."""
        return self.type == "system" and self.text("subtype") == "compact_boundary"

    @property
    def is_work(self) -> bool:
        """Whether the agent is at work here: an answer of the model or the result of a tool."""
        return self.type == "assistant" or (self.type == "user" and bool(tool_results(self)))

    def text(self, key: str) -> str:
        """The value of a top-level key where it is a string, else ``""``."""
        value = self.data.get(key) if self.data else None
        return value if isinstance(value, str) else ""


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


def blocks(line: Line) -> list[dict[str, Any]]:
    """The content blocks of the line's message; text alone counts as one text block."""
    message = line.data.get("message") if line.data else None
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def tool_results(line: Line) -> list[dict[str, Any]]:
    """The results of tools that the line brings; of most lines none."""
    return [b for b in blocks(line) if b.get("type") == "tool_result"]


def said(line: Line) -> str:
    """The text blocks of the line's message, one after another."""
    return "\n".join(b["text"] for b in blocks(line) if b.get("type") == "text" and isinstance(b.get("text"), str))


def is_prompt(line: Line) -> bool:
    """Whether a person, or the program that stands for one, gives the agent something to do here."""
    data = line.data
    if data is None or line.type != "user" or not isinstance(data.get("message"), dict):
        return False
    if any(data.get(flag) for flag in ("isMeta", "isSidechain", "isCompactSummary")) or tool_results(line):
        return False
    origin = data.get("origin")
    if isinstance(origin, dict) and origin.get("kind") not in (None, "human"):
        return False
    return opens_turn(said(line))


def opens_turn(text: str) -> bool:
    """Whether words of a person would be a prompt; the client's own begin otherwise."""
    return not text.lstrip().startswith(_NO_PROMPT)


def prompt_uuid(line: Line) -> str:
    """The turn's identity: the prompt's uuid, or one made of its bytes and place where it has none fit for a name."""
    return line.uuid if is_name(line.uuid) else ids.line_id(line.raw, line.extent.offset)


def is_name(uuid: str) -> bool:
    """Whether a turn can be named so."""
    return _NAME.fullmatch(uuid) is not None
