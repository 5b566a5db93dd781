"""The client as a partner that a program speaks to: `claude -p` with a JSON object a line, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessgit.agents.values import StreamAnswer
from sessgit.model.conversation.turn import plausible_count

PROTOCOL = "stream-json"
PROGRAM = "claude"
_OPTIONS = ("-p", "--input-format stream-json", "--output-format stream-json", "--verbose")


def command(typed: str) -> str:
    """The command with the options by which the client speaks so."""
    return " ".join([typed, *(option for option in _OPTIONS if option.split()[0] not in typed.split())])


def question(prompt: str) -> dict[str, Any]:
    """The object that asks."""
    message = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}


def model(said: Mapping[str, Any]) -> str:
    """The model that an object names, or ``""``."""
    message = said.get("message") if said.get("type") == "assistant" else None
    return _text(message.get("model")) if isinstance(message, dict) else ""


def answer(said: Mapping[str, Any]) -> StreamAnswer | None:
    """The answer, where the object is the last one of it."""
    if said.get("type") != "result":
        return None
    text = _text(said.get("result")).strip()
    failed = said.get("is_error") is True or said.get("subtype") not in ("success", None)
    usage = said.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens = {
        "input": plausible_count(usage.get("input_tokens")),
        "output": plausible_count(usage.get("output_tokens")),
    }
    return StreamAnswer(text or _text(said.get("subtype")) if failed else text, failed, tokens)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
