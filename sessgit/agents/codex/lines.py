"""One line of a rollout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sessgit.agents.agent_files import file_end
from sessgit.agents.line import NOWHERE, Base, Line, Redact, no_redaction, parse
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.stored_fields import string

META, CONTEXT, ITEM, EVENT, COMPACTED, USAGE = (
    "session_meta", "turn_context", "response_item", "event_msg", "compacted", "token_usage_record"
)  # fmt: skip
"""The types of lines that mean something here."""
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
RESULTS = ("function_call_output", "custom_tool_call_output")
_ENDS = ("task_complete", "turn_aborted")
_BETWEEN = ("task_started", "thread_settings_applied", "thread_rolled_back", "thread_name_updated")
"""Events that belong to no turn, or begin one."""
_END_WINDOW = 1 << 20
"""So many bytes of the end of a file are read for the end of a turn, which repeats the answer."""
_ONE_PROMPT_A_TURN = "text_elements"
"""A key of a prompt's event in versions that also write where a turn starts; 0.58 has neither."""


@dataclass(frozen=True, slots=True, eq=False)
class CodexLine(Line):
    """A line of a rollout. A turn is opened by `task_started`, and in versions without that by the prompt's event."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    """The line's payload; empty if it has none."""

    @property
    def type(self) -> str:
        return self.text("type") if self.payload else ""

    @property
    def kind(self) -> str:
        """Return the type of the payload, with the type of its item where an item was completed."""
        kind = string(self.payload, "type")
        return string(self.item, "type") if kind == "item_completed" else kind

    @property
    def item(self) -> Mapping[str, Any]:
        """Return the item that an event says is complete; empty if it is no such event."""
        value = self.payload.get("item")
        return value if isinstance(value, dict) else {}

    @property
    def uuid(self) -> str:
        """Return the turn's id of a line that opens one, else an id made of the line's bytes."""
        if not self.is_prompt:
            return blake2b(self.raw, digest_size=16).hexdigest() if self.data is not None else ""
        turn = string(self.payload, "turn_id")
        return turn if ids.is_turn_key(turn) else ids.line_id(self.raw, 0)

    @property
    def is_anonymous(self) -> bool:
        return self.data is not None and not self.is_prompt

    @property
    def session(self) -> str:
        return string(self.payload, "id") if self.type == META else ""

    @property
    def forked_from(self) -> str:
        if self.type != META:
            return ""
        return string(self.payload, "forked_from_id") or (self.base.agent_id if self.base else "")

    @property
    def began_by(self) -> str:
        value: object = self.payload.get("source") if self.type == META else None
        for key in ("subagent", "thread_spawn"):
            value = value.get(key) if isinstance(value, dict) else None
        return string(value, "parent_thread_id") if isinstance(value, dict) else ""

    @property
    def base(self) -> Base | None:
        value = self.payload.get("history_base") if self.type == META else None
        if not isinstance(value, dict) or not string(value, "thread_id"):
            return None
        end, length = (number(value.get(key)) for key in ("end_ordinal_exclusive", "end_byte_offset"))
        return None if end is None else Base(string(value, "thread_id"), end, length or 0)

    @property
    def ordinal(self) -> int | None:
        return number(self.data.get("ordinal")) if self.data else None

    @property
    def message_text(self) -> str:
        if self.is_spoken_prompt:
            return prompt_text(self)
        return content_text(self.payload.get("content")) if self.is_answer else ""

    @property
    def time(self) -> str:
        return self.text("timestamp")

    @property
    def cwd(self) -> str:
        return string(self.payload, "cwd") if self.type in (META, CONTEXT) else ""

    @property
    def version(self) -> str:
        return string(self.payload, "cli_version") if self.type == META else ""

    @property
    def git_branch(self) -> str:
        git = self.payload.get("git") if self.type == META else None
        return string(git, "branch") if isinstance(git, dict) else ""

    @property
    def is_headless(self) -> bool | None:
        return self.payload.get("source") not in ("cli", "vscode") if self.type == META else None

    @property
    def is_spoken_prompt(self) -> bool:
        """Return whether the line is the event that says what a person asked."""
        return self.type == EVENT and self.kind in ("user_message", "UserMessage")

    @property
    def is_answer(self) -> bool:
        """Return whether the line is a message of the model."""
        return self.type == ITEM and self.kind == "message" and self.payload.get("role") == "assistant"

    @property
    def is_prompt(self) -> bool:
        if self.type != EVENT:
            return False
        return self.kind == "task_started" or (self.kind == "user_message" and _ONE_PROMPT_A_TURN not in self.payload)

    @property
    def turns_rolled_back(self) -> int:
        is_rollback = self.type == EVENT and self.kind == "thread_rolled_back"
        return number(self.payload.get("num_turns")) or 0 if is_rollback else 0

    @property
    def is_said(self) -> bool:
        return self.is_spoken_prompt or self.is_answer

    @property
    def is_result(self) -> bool:
        return self.type == ITEM and self.kind in RESULTS

    @property
    def is_work(self) -> bool:
        return self.is_answer or (self.type == ITEM and self.kind != "message")

    @property
    def is_body(self) -> bool:
        if self.type == EVENT:
            return self.kind not in _BETWEEN
        return self.is_work or self.type in (USAGE, COMPACTED)

    @property
    def is_boundary(self) -> bool:
        return self.type == COMPACTED

    @property
    def is_end(self) -> bool:
        return self.type == EVENT and self.kind in _ENDS


def make(raw: bytes, extent: Extent = NOWHERE, redact: Redact = no_redaction) -> CodexLine:
    """Return the line as it is stored, by default a stored one without a place."""
    clean, secrets = redact(raw)
    data = parse(clean)
    payload = data.get("payload") if data else None
    return CodexLine(
        clean, extent, data, raw if secrets else None, secrets, payload if isinstance(payload, dict) else {}
    )  # fmt: skip


def holds_answer(path: Path, offset: int, answer: str | None) -> bool | None:
    """Return whether the file ends, after `offset`, with the end of a turn; None without an answer."""
    if answer is None:
        return None
    data, size = file_end(path, _END_WINDOW)
    return size > offset and make(data.rstrip(b"\n").rpartition(b"\n")[2]).is_end


def opens_turn(text: str) -> bool:
    """Return whether words of a person would be a prompt; all are."""
    return True


def with_session(raw: bytes, old: Sequence[str], new: str) -> bytes:
    """Return a `session_meta` line with the session's id in the place of others, and any other line as it is."""
    line = make(raw)
    if line.type != META or line.data is None:
        return raw
    payload = {
        key: new if key in ("id", "session_id") and value in old else value for key, value in line.payload.items()
    }
    return raw if payload == line.payload else compact({**line.data, "payload": payload})


def identity(raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
    """Return all kinds and ids on a line, those of `protected` keys too: what must stay when a value is removed."""
    line, keys = make(raw), frozenset(protected)
    if line.data is None:
        return (len(raw),)
    return (line.type, line.kind, line.time, line.data.get("ordinal"), *_protected(line.payload, keys))


def _protected(value: object, keys: frozenset[str]) -> list[tuple[str, str]]:
    out, pending = list[tuple[str, str]](), [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            out += [(key, inner) for key, inner in item.items() if key in keys and isinstance(inner, str)]
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return out


def number(value: object) -> int | None:
    """Return a value that counts something, or None if it is no such number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def prompt_text(line: CodexLine) -> str:
    """Return what a person asked, from the event that says it."""
    return string(line.payload, "message") or content_text(line.item.get("content"))


def content_text(content: object) -> str:
    """Return the texts of the parts of a message's content, a string or a list."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if isinstance(part, dict) and (text := string(part, "text")))


def compact(document: Mapping[str, Any]) -> bytes:
    """Return a line as the client writes it: compact, without escapes of letters."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
