"""Commit messages: a subject that a person reads and trailers that git and programs read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sessgit.model import canonical

EVENTS = (
    "turn", "cell", "start", "fork", "compact", "graft", "merge", "end", "edit", "repair",
)  # fmt: skip
SUBJECT_WIDTH = 72
FILE_HASH = "File-Hash"
"""The trailer with the hash of the agent's file from its beginning to the end of the commit's lines."""
_TRAILER_LINE = re.compile(r"^([A-Z][A-Za-z0-9-]*): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extent:
    """Where so many whole lines stood in the agent's file: `offset+length/lines`, in bytes."""

    offset: int
    length: int
    lines: int = 1

    @property
    def end(self) -> int:
        """The offset of the first byte behind it."""
        return self.offset + self.length

    def __str__(self) -> str:
        return f"{self.offset}+{self.length}/{self.lines}"

    @classmethod
    def parse(cls, text: str) -> Extent | None:
        """The extent that a trailer's value says, or None where it is none."""
        match = re.fullmatch(r"(\d{1,15})\+(\d{1,15})/(\d{1,9})", text)
        return cls(int(match[1]), int(match[2]), int(match[3])) if match else None


def join_extents(extents: Iterable[Extent], *, unended: bool = False) -> list[Extent]:
    """Return the extents in their order, neighbours that touch made one; `unended` keeps the last one apart, which is
    that of a line without a newline."""
    if unended:
        *others, last = extents
        return [*join_extents(others), last]
    out: list[Extent] = []
    for extent in extents:
        if out and out[-1].end == extent.offset:
            out[-1] = Extent(out[-1].offset, out[-1].length + extent.length, out[-1].lines + extent.lines)
        else:
            out.append(extent)
    return out


@dataclass(frozen=True, slots=True)
class Message:
    """A subject and trailers in their order; a key may stand several times."""

    subject: str
    trailers: tuple[tuple[str, str], ...] = ()

    def get(self, key: str) -> str:
        """The value of the last trailer of that key, or ``""``."""
        for name, value in reversed(self.trailers):
            if name == key:
                return value
        return ""

    def all(self, key: str) -> list[str]:
        """The values of all trailers of that key, in their order."""
        return [v for k, v in self.trailers if k == key]

    def number(self, key: str) -> int | None:
        """The value as a count, or None where there is none."""
        value = self.get(key)
        return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None

    @property
    def extents(self) -> list[Extent]:
        """The extents of the commit's lines; what cannot be read as one is left out."""
        return [e for e in map(Extent.parse, self.all("Extent")) if e is not None]

    @property
    def is_unended(self) -> bool:
        """Whether the last of the commit's lines had no newline in the agent's file."""
        return self.get("Final-Newline") == "no"

    @property
    def file(self) -> int:
        """In which of the session's files, counted from 1, the extents are places."""
        return self.number("File") or 1

    @property
    def tools(self) -> dict[str, int]:
        """Tool calls by name."""
        out: dict[str, int] = {}
        for part in self.get("Tools").split(", "):
            name, _, number = part.rpartition(" ")
            if name and number.isdigit():
                out[name] = int(number)
        return out


def format_message(message: Message) -> str:
    """The whole message: subject, blank line, trailers. No value can break out of its line."""
    subject = canonical.one_line(message.subject, SUBJECT_WIDTH) or "(empty)"
    shown = ((key, canonical.one_line(value, 500)) for key, value in message.trailers)
    lines = [f"{key}: {value}" for key, value in shown if value]
    return subject + "\n\n" + "".join(line + "\n" for line in lines)


def parse_message(text: str) -> Message:
    """The subject and trailers of a message; lines that are no trailers are passed over."""
    subject, _, rest = text.partition("\n")
    return Message(subject, tuple(_TRAILER_LINE.findall(rest)))


def tools_value(tools: dict[str, int]) -> str:
    """`Edit 2, Bash 1`: most used first, at most twelve."""
    ranked = sorted(tools.items(), key=lambda item: (-item[1], item[0]))[:12]
    return ", ".join(f"{canonical.one_line(name, 60).replace(',', ' ')} {number}" for name, number in ranked)
