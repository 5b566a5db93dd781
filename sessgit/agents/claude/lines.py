"""What a line of a transcript means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessgit.agents.agent_files import file_end
from sessgit.agents.line import CHOSEN, NOWHERE, Line, Redact, no_redaction, parse
from sessgit.model import canonical
from sessgit.model.conversation.message import Extent
from sessgit.model.stored_fields import string

SYNTHETIC = "<synthetic>"
"""What the client calls the model of an answer that no model gave."""
BODY_TYPES = ("user", "assistant", "attachment")
"""The types that end a turn's body; `system` lines carry the chain on but belong to no body by themselves."""

_NO_PROMPT = (
    "[Request interrupted",
    "<command-name>",
    "<local-command-",
    "<bash-",
    "<task-notification>",
)
_ID_KEYS = ("uuid", "sessionId", "leafUuid", "messageId")
"""A line of the client's has an id under one of these keys, unless it is a message."""
_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", CHOSEN)}
"""By type of line the key of the title and its rank: what a person chose wins over what the client made up."""
_ANSWER_END = 200
"""So many characters of the end of an answer tell that it is written."""
_ANSWER_WINDOW = 4 << 20
"""So many bytes of the end of the file are searched for an answer."""
_KINDS = ("type", "subtype", "role")
_IDS = (*_KINDS, "id", "tool_use_id")


@dataclass(frozen=True, slots=True, eq=False)
class ClaudeLine(Line):
    """A line as Claude Code writes it: an object with a type, most with a uuid and that of the line before."""

    @property
    def type(self) -> str:
        return self.text("type")

    @property
    def is_known(self) -> bool:
        is_message = self.is_said and bool(message_of(self))
        return is_message or bool(self.type and any(map(self.text, _ID_KEYS)))

    @property
    def uuid(self) -> str:
        return self.text("uuid")

    @property
    def parent(self) -> str:
        return self.text("parentUuid")

    @property
    def is_root(self) -> bool:
        return self.data is not None and "parentUuid" in self.data and self.data["parentUuid"] is None

    @property
    def session(self) -> str:
        return self.text("sessionId")

    @property
    def forked_from(self) -> str:
        return string((self.data or {}).get("forkedFrom"), "sessionId")

    @property
    def git_branch(self) -> str:
        return self.text("gitBranch")

    @property
    def slug(self) -> str:
        return self.text("slug")

    @property
    def title(self) -> tuple[str, int] | None:
        key, rank = _TITLES.get(self.type, ("", 0))
        return (self.text(key), rank) if key else None

    @property
    def is_headless(self) -> bool | None:
        entry = self.text("entrypoint") if self.type == "user" else ""
        return entry.startswith("sdk") if entry else None

    @property
    def message_text(self) -> str:
        texts = (block.get("text") for block in blocks(self) if block.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def is_boundary(self) -> bool:
        return self.type == "system" and self.text("subtype") == "compact_boundary"

    @property
    def is_work(self) -> bool:
        """Return whether the agent is at work here: an answer of the model or the result of a tool."""
        return self.type == "assistant" or self.is_result

    @property
    def time(self) -> str:
        return canonical.moment(self.text("timestamp"))

    @property
    def is_prompt(self) -> bool:
        data = self.data
        if data is None or self.type != "user" or not isinstance(data.get("message"), dict):
            return False
        if any(data.get(flag) for flag in ("isMeta", "isSidechain", "isCompactSummary")) or tool_results(self):
            return False
        origin = data.get("origin")
        if isinstance(origin, dict) and origin.get("kind") not in (None, "human"):
            return False
        return opens_turn(self.message_text)

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

    @property
    def is_end(self) -> bool:
        is_text = all(block.get("type") == "text" for block in blocks(self))
        return self.type == "assistant" and is_text and message_of(self).get("stop_reason") != "tool_use"


def make(raw: bytes, extent: Extent = NOWHERE, redact: Redact = no_redaction) -> Line:
    """Return the line as it is stored, by default a stored one without a place."""
    clean, secrets = redact(raw)
    return ClaudeLine(clean, extent, parse(clean), raw if secrets else None, secrets)


def parsed(lines: Iterable[bytes]) -> list[Line]:
    """Return stored lines as `Line`s without a place."""
    return list(map(make, lines))


def objects_on(raw: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the lines glued to one: objects that only a whole line can be, what is torn between them passed
    over. Bytes that are no UTF-8 become U+FFFD."""
    text = raw.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = text.find('{"')
    while at >= 0:
        try:
            data, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find('{"', at + 1)
            continue
        if isinstance(data, dict) and isinstance(data.get("type"), str) and ("uuid" in data or "sessionId" in data):
            yield text[at:end].encode(), data
            at = text.find('{"', end)
        else:
            at = text.find('{"', at + 1)


def message_of(line: Line) -> dict[str, Any]:
    """Return the line's message, or an empty one."""
    message = line.data.get("message") if line.data else None
    return message if isinstance(message, dict) else {}


def message_id(line: Line) -> str:
    """Return the id of the model's message that the line is a part of, or ""."""
    return string(message_of(line), "id")


def blocks(line: Line) -> list[dict[str, Any]]:
    """Return the content blocks of the line's message; text alone counts as one text block."""
    content = message_of(line).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def tool_calls(line: Line) -> list[dict[str, Any]]:
    """Return the calls of tools on the line."""
    return [block for block in blocks(line) if block.get("type") == "tool_use"]


def tool_results(line: Line) -> list[dict[str, Any]]:
    """Return the results of tools on the line."""
    return [b for b in blocks(line) if b.get("type") == "tool_result"]


def call_ids(line: Line) -> list[str]:
    """Return the ids of the calls on the line."""
    return [call for block in tool_calls(line) if (call := string(block, "id"))]


def result_ids(line: Line) -> list[str]:
    """Return the ids of the calls whose results the line has."""
    return [call for block in tool_results(line) if (call := string(block, "tool_use_id"))]


def is_chained(line: Line) -> bool:
    """Return whether other lines of the conversation may name the line as their parent."""
    return bool(line.uuid) and not line.is_sidechain


def milliseconds(line: Line) -> int:
    """Return the line's time in milliseconds since 1970, or 0 if it has none."""
    return round((canonical.seconds(line.text("timestamp")) or 0) * 1000)


def compact(document: Mapping[str, object], *, allow_nan: bool = True) -> bytes:
    """Return the document on one line, as the client writes it; raise ValueError for a NaN that is not allowed."""
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=allow_nan).encode()
    except UnicodeEncodeError:  # half a character
        return json.dumps(document, separators=(",", ":"), allow_nan=allow_nan).encode()


def queued_prompt(line: Line) -> dict[str, Any]:
    """Return what was queued while the agent was at work, or an empty object."""
    attached = line.data.get("attachment") if line.data and line.type == "attachment" else None
    return attached if isinstance(attached, dict) and attached.get("type") == "queued_command" else {}


def is_notification(queued: dict[str, Any]) -> bool:
    """Return whether the client queued it, and not a person."""
    return queued.get("commandMode") == "task-notification"


def holds_answer(path: Path, offset: int, answer: str | None) -> bool | None:
    """Return whether the file holds the end of the answer after `offset`, on a complete line; None without an
    answer."""
    if not answer:
        return None
    expected = json.dumps(answer, ensure_ascii=False)[1:-1][-_ANSWER_END:].encode("utf-8", "replace")
    data, size = file_end(path, _ANSWER_WINDOW)
    data = data[max(0, offset - size + len(data)) :]
    place = data.rfind(expected)
    return place >= 0 and (data.find(b"\n", place) >= 0 or parse(data[data.rfind(b"\n") + 1 :]) is not None)


def opens_turn(text: str) -> bool:
    """Return whether words of a person would be a prompt; the client's own begin otherwise."""
    return not text.lstrip().startswith(_NO_PROMPT)


def with_session(raw: bytes, old: Sequence[str], new: str) -> bytes:
    """Return the line with the session's id in the place of others, wherever one is a `sessionId`."""
    for agent_id in old:
        raw = raw.replace(b'"sessionId":"%s"' % agent_id.encode(), b'"sessionId":"%s"' % new.encode())
    return raw


def identity(raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
    """Return all ids and kinds on a line: what must stay when a value is removed from it."""
    line = make(raw)
    if line.data is None:
        return ()
    message = line.data.get("message")
    own = tuple(line.data.get(key) for key in (*sorted(protected), *_KINDS))
    called = tuple(message.get(key) for key in _IDS) if isinstance(message, dict) else None
    parts = tuple(block.get(key) for block in blocks(line) for key in _IDS)
    return (*own, called, *parts)
