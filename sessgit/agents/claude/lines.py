"""What a line of a transcript means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.agents.line import Line, parse
from sessgit.agents.reader import Redact
from sessgit.model import canonical, ids
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
_NOWHERE = Extent(0, 0)
_KINDS = ("type", "subtype", "role")
_IDS = (*_KINDS, "id", "tool_use_id")
_NAME = re.compile(r"[!-~]{1,100}")


@dataclass(frozen=True, slots=True, eq=False)
class ClaudeLine(Line):
    """A line as Claude Code writes it: an object with a type, most with a uuid and that of the line before."""

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
    def is_boundary(self) -> bool:
        """Whether a compaction begins here: what came before is no longer sent to the model."""
        return self.type == "system" and self.text("subtype") == "compact_boundary"

    @property
    def is_work(self) -> bool:
        """Whether the agent is at work here: an answer of the model or the result of a tool."""
        return self.type == "assistant" or self.is_result

    @property
    def time(self) -> str:
        return canonical.moment(self.text("timestamp"))

    @property
    def cwd(self) -> str:
        return self.text("cwd")

    @property
    def version(self) -> str:
        return self.text("version")

    @property
    def is_prompt(self) -> bool:
        return is_prompt(self)

    @property
    def prompt_id(self) -> str:
        return prompt_uuid(self)

    @property
    def is_body(self) -> bool:
        return self.type in BODY_TYPES

    @property
    def is_result(self) -> bool:
        return self.type == "user" and bool(tool_results(self))

    @property
    def is_said(self) -> bool:
        return self.type in ("user", "assistant")

    @property
    def is_sidechain(self) -> bool:
        return self.data is not None and bool(self.data.get("isSidechain"))


def make(raw: bytes, extent: Extent, redact: Redact) -> Line:
    """The line as it is stored."""
    clean, found = redact(raw)
    return ClaudeLine(clean, extent, parse(clean), raw if found else None, found)


def parsed(lines: Iterable[bytes]) -> list[Line]:
    """Stored lines as `Line`s that do not say where they stood."""
    return [ClaudeLine(raw, _NOWHERE, parse(raw)) for raw in lines]


def is_root(line: Line) -> bool:
    """Whether the line says that nothing comes before it, rather than not saying."""
    return line.data is not None and "parentUuid" in line.data and line.data["parentUuid"] is None


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


def with_session(raw: bytes, old: Sequence[str], new: str) -> bytes:
    """The line with the session's id in the place of others, wherever one stands as a `sessionId`."""
    for agent_id in old:
        raw = raw.replace(b'"sessionId":"%s"' % agent_id.encode(), b'"sessionId":"%s"' % new.encode())
    return raw


def is_cut_short(lines: Iterable[Line]) -> bool:
    """Whether the lines of a transcript end in the middle of a turn: the model has not answered at its end."""
    last: Line | None = None
    for line in lines:
        if is_prompt(line) or (last is not None and _goes_on(line)):
            last = line
    return last is not None and (last.type != "assistant" or _is_going_on(last))


def session_of(line: Line) -> str:
    """The id of the session that a line names as its own, or ``""``."""
    return line.text("sessionId")


def forked_from(line: Line) -> str:
    """The session that a line says it was copied from, or ``""``."""
    origin = (line.data or {}).get("forkedFrom")
    named = origin.get("sessionId") if isinstance(origin, dict) else None
    return named if isinstance(named, str) else ""


def identity(raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
    """All ids and kinds on a line: what must stay when a value is removed from it."""
    line = parsed([raw])[0]
    if line.data is None:
        return ()
    message = line.data.get("message")
    own = tuple(line.data.get(key) for key in (*sorted(protected), *_KINDS))
    called = tuple(message.get(key) for key in _IDS) if isinstance(message, dict) else None
    parts = tuple(block.get(key) for block in blocks(line) for key in _IDS)
    return (*own, called, *parts)


def _goes_on(line: Line) -> bool:
    """Whether the model said it, or was told the result of a call: the client too writes lines of a person's."""
    return not line.is_sidechain and line.is_work


def _is_going_on(line: Line) -> bool:
    """Whether more must come behind what the model says on the line, as it says itself."""
    message = (line.data or {}).get("message")
    reason = message.get("stop_reason") if isinstance(message, dict) else None
    return reason == "tool_use" or any(block.get("type") != "text" for block in blocks(line))
