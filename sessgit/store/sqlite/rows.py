"""What the index tells: branches, their turns, and the outlines of sessions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens


class Outline(NamedTuple):
    """What a list of many sessions is chosen and ordered by; times are RFC 3339 or empty, `labels` JSON."""

    name: str
    archived: bool
    agent_id: str
    project: str
    title: str
    authored_name: str
    created: str
    updated: str
    turns: int
    headless: bool
    state: str
    stage: str
    labels: str
    parent: str
    """The session that this one left, or empty."""


@dataclass(frozen=True, slots=True)
class Row:
    """A turn as its commits tell it; `time` is in seconds since 1970, `commits` are oldest first.

    `compacted` says that the conversation so far was made a summary before this turn's prompt.
    """

    branch: str
    turn: int
    commits: tuple[str, ...]
    prompt: str
    time: int
    text: str
    """The message of the turn's last commit."""
    compacted: bool = False

    @property
    def message(self) -> Message:
        """The same, parsed; most turns of a long conversation are never asked for theirs."""
        return _parse_message(self.text)

    @property
    def commit(self) -> str:
        """The turn's last commit."""
        return self.commits[-1]

    @property
    def tokens(self) -> Tokens:
        """What the trailers of the last commit say; what they do not say is 0."""
        said = dict(self.message.trailers)
        kinds = ("Tokens-In", "Tokens-Out", "Tokens-Cache-Read", "Tokens-Cache-Write")
        return Tokens(*(int(v) if (v := said.get(kind, "")).isdecimal() and len(v) < 16 else 0 for kind in kinds))

    @property
    def title(self) -> str:
        """The first line of the prompt."""
        return self.message.subject.partition(": ")[2]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch with its state as of its tip."""

    name: str
    tip: str
    state: Session
    archived: bool = False


_parse_message = lru_cache(maxsize=1024)(messages.parse_message)
