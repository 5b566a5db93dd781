"""Commit messages: a subject that a person reads and trailers that git and programs read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sessgit.model import canonical
from sessgit.model.conversation.turn import Turn
from sessgit.model.stored_fields import Count

EVENTS = (
    "turn", "cell", "start", "fork", "compact", "graft", "merge", "end", "edit", "repair",
)  # fmt: skip
SUBJECT_WIDTH = 72
MOST_TOOLS = 12
"""Tools that a message names at most."""
FILE_HASH = "File-Hash"
"""The trailer with the hash of the agent's file from its beginning to the end of the commit's lines."""
_TRAILER_LINE = re.compile(r"^([A-Z][A-Za-z0-9-]*): (.*)$", re.MULTILINE)


class Extent(NamedTuple):
    """Where so many whole lines were in the agent's file: `offset+length/lines`, in bytes."""

    offset: Count
    length: Count
    lines: Count = 1

    @property
    def end(self) -> int:
        """Return the offset of the first byte behind it."""
        return self.offset + self.length

    def __str__(self) -> str:
        return f"{self.offset}+{self.length}/{self.lines}"

    @classmethod
    def parse(cls, text: str) -> Extent | None:
        """Return the extent that a trailer's value says, or None where it is none."""
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


@dataclass(frozen=True)
class Message:
    """A subject and trailers in their order; a key may occur several times."""

    subject: str
    trailers: tuple[tuple[str, str], ...] = ()

    def get(self, key: str) -> str:
        """Return the value of the last trailer of that key, or ""."""
        return self._values.get(key, "")

    @cached_property
    def _values(self) -> dict[str, str]:
        return dict(self.trailers)

    def all(self, key: str) -> list[str]:
        """Return the values of all trailers of that key, in their order."""
        return [v for k, v in self.trailers if k == key]

    def number(self, key: str) -> int | None:
        """Return the value as a count, or None if there is none."""
        value = self.get(key)
        return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None

    @property
    def extents(self) -> list[Extent]:
        """Return the extents of the commit's lines; what cannot be read as one is left out."""
        return [e for e in map(Extent.parse, self.all("Extent")) if e is not None]

    @property
    def is_unended(self) -> bool:
        """Return whether the last of the commit's lines had no newline in the agent's file."""
        return self.get("Final-Newline") == "no"

    @property
    def file(self) -> int:
        """In which of the session's files, counted from 1, the extents are places."""
        return self.number("File") or 1


def format_message(message: Message) -> str:
    """Return the whole message: subject, blank line, trailers. No value can break out of its line."""
    subject = canonical.one_line(message.subject, SUBJECT_WIDTH) or "(empty)"
    shown = ((key, canonical.one_line(value, 500)) for key, value in message.trailers)
    lines = [f"{key}: {value}" for key, value in shown if value]
    return subject + "\n\n" + "".join(line + "\n" for line in lines)


def parse_message(text: str) -> Message:
    """Return the subject and trailers of a message; lines that are no trailers are passed over."""
    subject, _, rest = text.partition("\n")
    return Message(subject, tuple(_TRAILER_LINE.findall(rest)))


def trailer(text: str, key: str) -> str:
    """Return the value of the last trailer of that key in a whole message, or ""; of many messages it takes a twentieth
    of the time to parse them."""
    _, found, rest = text.rpartition(f"\n{key}: ")
    return rest.partition("\n")[0] if found else ""


def usage_trailers(turn: Turn) -> list[tuple[str, str]]:
    """Return the trailers that say what a turn used: its model, tools and tokens."""
    total = turn.total
    return [
        ("Model", turn.model),
        ("Tools", tools_value(turn.tools)),
        ("Tokens-In", str(total.input)),
        ("Tokens-Out", str(total.output)),
        ("Tokens-Cache-Read", str(total.cache_read)),
        ("Tokens-Cache-Write", str(total.cache_write)),
    ]


def tools_value(tools: dict[str, int]) -> str:
    """`Edit 2, Bash 1`: most used first, at most `MOST_TOOLS`."""
    ranked = sorted(tools.items(), key=lambda item: (-item[1], item[0]))[:MOST_TOOLS]
    return ", ".join(f"{canonical.one_line(name, 60).replace(',', ' ')} {number}" for name, number in ranked)


def parse_tools(value: str) -> dict[str, int]:
    """Return the calls by tool of such a value."""
    calls: dict[str, int] = {}
    for part in value.split(", "):
        name, _, number = part.rpartition(" ")
        if name and number.isdigit():
            calls[name] = int(number)
    return calls
