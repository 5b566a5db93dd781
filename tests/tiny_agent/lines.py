from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.agents.line import NOWHERE, Line, Redact, no_redaction, parse
from sessgit.model.conversation.message import Extent


@dataclass(frozen=True, slots=True, eq=False)
class TinyLine(Line):
    """`{"chat": ID, "cwd": …}` first, then `{"at": …, "ask": …}` and `{"at": …, "reply": …}` in turn."""

    @property
    def type(self) -> str:
        return next((key for key in ("chat", "ask", "reply") if self.text(key)), "")

    @property
    def session(self) -> str:
        return self.text("chat")

    @property
    def message_text(self) -> str:
        return self.text("ask") or self.text("reply")

    @property
    def time(self) -> str:
        return self.text("at")

    @property
    def is_prompt(self) -> bool:
        return self.type == "ask"

    @property
    def is_said(self) -> bool:
        return self.type in ("ask", "reply")

    @property
    def is_result(self) -> bool:
        return False

    @property
    def is_work(self) -> bool:
        return self.type == "reply"

    @property
    def is_body(self) -> bool:
        return self.is_said

    @property
    def is_end(self) -> bool:
        return self.is_work


def make(raw: bytes, extent: Extent = NOWHERE, redact: Redact = no_redaction) -> Line:
    clean, secrets = redact(raw)
    return TinyLine(clean, extent, parse(clean), raw if secrets else None, secrets)


def holds_answer(path: Path, offset: int, answer: str | None) -> bool | None:
    return None


def opens_turn(text: str) -> bool:
    return True


def with_session(raw: bytes, old: Sequence[str], new: str) -> bytes:
    for other in old:
        raw = raw.replace(b'{"chat": "%s"' % other.encode(), b'{"chat": "%s"' % new.encode())
    return raw


def identity(raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
    return (make(raw).type, make(raw).time)
