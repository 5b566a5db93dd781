"""The client as a partner that a program speaks to: `claude -p` with a JSON object a line, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessgit.agents.values import StreamAnswer
from sessgit.model.conversation.turn import plausible_count
from sessgit.model.stored_fields import string

PROTOCOL = "stream-json"
PROGRAM = "claude"
_OPTIONS = ("-p", "--input-format stream-json", "--output-format stream-json", "--verbose")


def command(typed: str) -> str:
    """Return the command with the options by which the client speaks so."""
    return " ".join([typed, *(option for option in _OPTIONS if option.split()[0] not in typed.split())])


def question(prompt: str) -> dict[str, Any]:
    """Return the object that asks."""
    message = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}


def model(document: Mapping[str, Any]) -> str:
    """Return the model that an object names, or ""."""
    return string(document.get("message"), "model") if document.get("type") == "assistant" else ""


def answer(document: Mapping[str, Any]) -> StreamAnswer | None:
    """Return the answer, where the object is the last one of it."""
    if document.get("type") != "result":
        return None
    text = string(document, "result").strip()
    failed = document.get("is_error") is True or document.get("subtype") not in ("success", None)
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens = {
        "input": plausible_count(usage.get("input_tokens")),
        "output": plausible_count(usage.get("output_tokens")),
    }
    return StreamAnswer(text or string(document, "subtype") if failed else text, failed, tokens)
