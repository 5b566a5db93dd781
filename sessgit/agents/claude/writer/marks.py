"""What a program says on a line of its own session, where the client's form has no place for it.

Each such line has a top-level key `sessgit`, which the client passes over and keeps. A line comes from outside, so what
is no mark, in any part of it, is none at all: then the line means what it would mean without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sessgit.agents.claude.lines import blocks, tool_results
from sessgit.agents.line import Line
from sessgit.agents.values import Mark
from sessgit.errors import UsageError
from sessgit.model import program_input
from sessgit.model.conversation.turn import plausible_count
from sessgit.model.program_input import Metadata, Outcome, Reason, Task

KEY = "sessgit"
_FARTHEST = 10_000
"""The longest list of words on a reason that is read."""


NONE = Mark()


def of(line: Line) -> Mark:
    """The mark of an assistant's line."""
    said = _said(line)
    if said is None:
        return NONE
    if said.get("words") is True:
        return Mark(words=True)
    calls = [block for block in blocks(line) if block.get("type") == "tool_use"]
    call = _text(calls[0].get("id")) if len(calls) == 1 else ""
    if isinstance(said.get("cell"), dict):
        task = _task(said["cell"], calls[0]) if call else None
        return Mark(task, call) if task is not None else NONE
    if call and program_input.CELL_ID.fullmatch(_text(said.get("result_of"))):
        return Mark(call=call, result_of=said["result_of"])
    reason = _reason(said.get("reason"))
    return Mark(reason=reason) if reason is not None else NONE


def is_stand_in(line: Line) -> bool:
    """Whether a line with a result says that there is none yet."""
    said = _said(line)
    return said is not None and said.get("running") is True and len(tool_results(line)) == 1


def outcome(line: Line) -> Outcome | None:
    """What a line with the result of one cell says of it; None where it is a line of the client's own."""
    said, results = _said(line), tool_results(line)
    noted = said.get("outcome") if said is not None else None
    if not isinstance(noted, dict) or len(results) != 1:
        return None
    content, error = results[0].get("content"), noted.get("error")
    text = content if isinstance(content, str) else None
    try:
        if results[0].get("is_error") is True:
            error = error if isinstance(error, str) else text if text is not None else "it failed"
            result = _plain(noted.get("result")) if "error" in noted else None
        else:
            error = None
            result = _loaded(text) if noted.get("json") is True else text
    except (ValueError, RecursionError, UsageError):
        return None
    tokens = noted.get("tokens")
    return Outcome(
        result,
        error,
        _number(noted.get("execution_time_ms")),
        _text(noted.get("model")),
        {str(kind): plausible_count(n) for kind, n in tokens.items()} if isinstance(tokens, dict) else {},
    )


def of_task(task: Task, name: str) -> dict[str, Any]:
    """The mark of a call, for `task` with an id; `name` is what the call has as the tool's name."""
    cell: dict[str, Any] = {"id": task.id, "type": task.type}
    if task.operation != name:
        cell["operation"] = task.operation
    if task.source:
        cell["source"] = task.source
    if task.dependencies:
        cell["dependencies"] = list(task.dependencies)
    if task.created is not None:
        cell["created_at"] = task.created
    if task.metadata != Metadata():
        found = {"depth": task.metadata.depth, "model": task.metadata.model, "tokens_used": task.metadata.tokens_used}
        cell["metadata"] = {key: value for key, value in found.items() if value}
    return {"cell": cell}


def of_outcome(found: Outcome) -> tuple[str, dict[str, Any]]:
    """The text of a result, and its mark."""
    noted: dict[str, Any] = {}
    if found.error is not None:
        text = found.error
        noted["error"] = found.error
        if found.result is not None:
            noted["result"] = found.result
    elif isinstance(found.result, str):
        text = found.result
    else:
        text = program_input.to_json_line(found.result, "the result of a cell")
        noted["json"] = True
    if found.execution_time_ms is not None:
        noted["execution_time_ms"] = found.execution_time_ms
    if found.model:
        noted["model"] = found.model
    if found.tokens:
        noted["tokens"] = dict(found.tokens)
    program_input.to_json_line(noted, "the result of a cell")
    return text, {"outcome": noted}


def of_reason(reason: Reason) -> dict[str, Any]:
    """The mark of a line that says a reason."""
    found: dict[str, Any] = {"kind": reason.kind, "text": reason.text}
    for key in ("evidence", "options"):
        if getattr(reason, key):
            found[key] = list(getattr(reason, key))
    if reason.chosen:
        found["chosen"] = reason.chosen
    if reason.confidence is not None:
        found["confidence"] = reason.confidence
    return {"reason": found}


def _said(line: Line) -> Mapping[str, Any] | None:
    found = line.data.get(KEY) if line.data else None
    return found if isinstance(found, dict) else None


def _task(said: Mapping[str, Any], call: Mapping[str, Any]) -> Task | None:
    given = call.get("input")
    dependencies = said.get("dependencies", [])
    if not isinstance(given, dict) or not isinstance(dependencies, list):
        return None
    if not all(isinstance(other, str) for other in dependencies):
        return None
    try:
        return program_input.check_task(
            Task(
                _text(said.get("type")),
                _text(said.get("operation")) or _text(call.get("name")),
                given,
                _text(said.get("source")),
                tuple(dict.fromkeys(dependencies)),
                # Without one it would get one of its own, another each time.
                _text(said.get("id")) or "none",
                _number(said.get("created_at")),
                _metadata(said.get("metadata")),
            )
        )
    except UsageError:
        return None


def _loaded(text: str | None) -> Any:
    """The value of a result; raises ValueError where it is no JSON."""
    if text is None:
        raise ValueError
    return _plain(json.loads(text))


def _plain(value: Any) -> Any:
    """The value, if it is one that JSON has: Python reads more than that."""
    program_input.to_json_line(value, "a result")
    return value


def _metadata(said: object) -> Metadata:
    if not isinstance(said, dict):
        return Metadata()
    return Metadata(
        plausible_count(said.get("depth")), _text(said.get("model")), plausible_count(said.get("tokens_used"))
    )


def _reason(said: object) -> Reason | None:
    if not isinstance(said, dict) or said.get("kind") not in ("trace", "decision") or not _text(said.get("text")):
        return None
    found = Reason(
        said["kind"], _text(said.get("text")), _texts(said.get("evidence")), _texts(said.get("options")),
        _text(said.get("chosen")),
    )  # fmt: skip
    confidence = _number(said.get("confidence"))
    return replace(found, confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value[:_FARTHEST] if isinstance(text, str)) if isinstance(value, list) else ()


def _number(value: object) -> float | None:
    """The value where it is a plausible number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 53 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
