"""Whether two turns have the same lines, and in what they differ.

A copy that the client makes for a fork keeps each line's `uuid`, `message` and `toolUseResult`. It writes `sessionId`,
`parentUuid`, `promptId`, `requestSessionId` and `forkedFrom` anew, leaves out lines of bookkeeping, and may put a
compaction elsewhere. So the lines that count are the prompt, the messages of the model and the results of tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessgit.agents.claude import content
from sessgit.agents.claude.cells import describe, message_of
from sessgit.agents.claude.lines import said
from sessgit.agents.line import Line
from sessgit.agents.values import Relation
from sessgit.model.conversation.content import Call, Words

_SYNTHETIC, _NO_RESPONSE = "<synthetic>", "No response requested."
"""What the client answers by itself to an interrupted turn, before it goes on behind it."""


def relation(a: Sequence[Line], b: Sequence[Line]) -> Relation:
    """How the bodies of two turns with the same prompt uuid are related. Where a program has told a turn twice, the ids
    of its other lines differ: then what they say decides."""
    left, right = _kept(a), _kept(b)
    if left == right:
        return "same"
    if any(left[key] != right[key] for key in left.keys() & right.keys()):
        return "different"
    if left.keys() <= right.keys() or right.keys() <= left.keys():
        return "part"
    return "different" if differences(a, b) else "same"


def differences(a: Sequence[Line], b: Sequence[Line]) -> tuple[str, ...]:
    """Which of `prompt`, `answer` and `calls` differ between two turns, whatever the ids and times of their lines."""
    left, right = (_said_and_done(body) for body in (a, b))
    return tuple(name for name in left if left[name] != right[name])


def _kept(body: Sequence[Line]) -> dict[str, tuple[Any, Any, Any]]:
    """By the uuid of each line that counts what a copy keeps of it; of a uuid that comes twice the first line.

    The prompt's time counts too: programs that number messages alike also ask alike. A fork of ours may change the time
    of a turn's last line.
    """
    found: dict[str, tuple[Any, Any, Any]] = {}
    for number, line in enumerate(body):
        data = line.data or {}
        if (number == 0 or line.is_work) and not data.get("isSidechain") and not _is_resumption(line):
            time = data.get("timestamp") if number == 0 else None
            found.setdefault(line.uuid or f"line {len(found)}", (_message(data), data.get("toolUseResult"), time))
    return found


def _message(data: Mapping[str, Any]) -> Any:
    """The message, whatever its form: in a copy client 2.0.46 writes a lone text as a string, and no null field."""
    message = data.get("message")
    if not isinstance(message, dict):
        return message
    plain = {key: value for key, value in message.items() if value is not None}
    match plain.get("content"):
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            plain["content"] = text
    return plain


def _is_resumption(line: Line) -> bool:
    """Whether the client wrote the line when it went on with a copy."""
    return message_of(line).get("model") == _SYNTHETIC and said(line) == _NO_RESPONSE


def _said_and_done(body: Sequence[Line]) -> Mapping[str, object]:
    """What a turn asks, all that the model says, and its calls with their results."""
    _, pieces = content.told(body)
    words = [piece.text for piece in pieces if isinstance(piece, Words) and piece.by == "model" and not piece.thinking]
    calls = [(piece.tool, dict(piece.input), piece.output) for piece in pieces if isinstance(piece, Call)]
    return {"prompt": describe(body[:1]).prompt.rstrip(), "answer": "\n".join(words).rstrip(), "calls": calls}
