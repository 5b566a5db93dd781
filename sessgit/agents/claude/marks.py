"""What a program says on a line of its own session, where the client's form has no place for it.

Each such line has a top-level key `sessgit`, which the client passes over and keeps. A line comes from outside, so what
is no mark, in any part of it, is none at all: then the line means what it would mean without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sessgit.agents.claude.lines import tool_calls, tool_results
from sessgit.agents.line import Line
from sessgit.errors import UsageError
from sessgit.model import program_input, stored_fields
from sessgit.model.conversation.turn import plausible_count
from sessgit.model.frozen import frozen
from sessgit.model.program_input import Metadata, Outcome, Reason, Task
from sessgit.model.stored_fields import string

KEY = "sessgit"
OUTSIDE = "outsideTranscript"
"""The key of a line that is not in the transcript."""
_FARTHEST = 10_000
"""The longest list of words on a reason that is read."""


@frozen
class Mark:
    """What a line says: that it begins a cell, that it says a reason, or that no model said its words or made its
    calls, but the program itself (`words`)."""

    task: Task | None = None
    call: str = ""
    """The client's id for the call that is the cell."""
    result_of: str = ""
    """The id of a cell, if the line's one call asks for the result of it; then `call` is the client's id for that."""
    reason: Reason | None = None
    words: bool = False


NONE = Mark()


def of(line: Line) -> Mark:
    """Return the mark of an assistant's line."""
    mark = _said(line)
    if mark is None:
        return NONE
    if mark.get("words") is True:
        return Mark(words=True)
    calls = tool_calls(line)
    call = string(calls[0], "id") if len(calls) == 1 else ""
    if isinstance(mark.get("cell"), dict):
        task = _task(mark["cell"], calls[0]) if call else None
        return Mark(task, call) if task is not None else NONE
    if call and program_input.CELL_ID.fullmatch(string(mark, "result_of")):
        return Mark(call=call, result_of=mark["result_of"])
    reason = _reason(mark.get("reason"))
    return Mark(reason=reason) if reason is not None else NONE


def is_outside(line: Line) -> bool:
    """Return whether a program added the line outside a transcript: the model never saw it."""
    return line.data is not None and line.data.get(OUTSIDE) is True


def is_stand_in(line: Line) -> bool:
    """Return whether a line with a result says that there is none yet."""
    mark = _said(line)
    return mark is not None and mark.get("running") is True and len(tool_results(line)) == 1


def outcome(line: Line) -> Outcome | None:
    """Return what a line with the result of one cell says of it; None where it is a line of the client's own."""
    mark, results = _said(line), tool_results(line)
    noted = mark.get("outcome") if mark is not None else None
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
        string(noted, "model"),
        {str(kind): plausible_count(n) for kind, n in tokens.items()} if isinstance(tokens, dict) else {},
    )


def of_task(task: Task, name: str) -> dict[str, Any]:
    """Return the mark of a call, for `task` with an id; `name` is what the call has as the tool's name."""
    metadata = {key: value for key, value in stored_fields.to_json(task.metadata).items() if value}
    cell = {
        "id": task.id, "type": task.type, "operation": "" if task.operation == name else task.operation,
        "source": task.source, "dependencies": list(task.dependencies), "created_at": task.created,
        "metadata": metadata,
    }  # fmt: skip
    return {"cell": _present(cell)}


def of_outcome(outcome: Outcome) -> tuple[str, dict[str, Any]]:
    """Return the text of a result, and its mark."""
    noted: dict[str, Any] = {}
    if outcome.error is not None:
        text = outcome.error
        noted["error"] = outcome.error
        if outcome.result is not None:
            noted["result"] = outcome.result
    elif isinstance(outcome.result, str):
        text = outcome.result
    else:
        text = program_input.to_json_line(outcome.result, "the result of a cell")
        noted["json"] = True
    used = {"execution_time_ms": outcome.execution_time_ms, "model": outcome.model, "tokens": dict(outcome.tokens)}
    noted |= _present(used)
    program_input.to_json_line(noted, "the result of a cell")
    return text, {"outcome": noted}


def of_reason(reason: Reason) -> dict[str, Any]:
    """Return the mark of a line that says a reason."""
    fields = stored_fields.to_json(replace(reason, time=None))
    return {"reason": _present(fields)}


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say something."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


def _said(line: Line) -> Mapping[str, Any] | None:
    mark = line.data.get(KEY) if line.data else None
    return mark if isinstance(mark, dict) else None


def _task(cell: Mapping[str, Any], call: Mapping[str, Any]) -> Task | None:
    arguments = call.get("input")
    dependencies = cell.get("dependencies", [])
    if not isinstance(arguments, dict) or not isinstance(dependencies, list):
        return None
    if not all(isinstance(other, str) for other in dependencies):
        return None
    try:
        return program_input.check(
            Task(
                string(cell, "type"),
                string(cell, "operation") or string(call, "name"),
                arguments,
                string(cell, "source"),
                tuple(dict.fromkeys(dependencies)),
                # Without one it would get one of its own, another each time.
                string(cell, "id") or "none",
                _number(cell.get("created_at")),
                _metadata(cell.get("metadata")),
            )
        )
    except UsageError:
        return None


def _loaded(text: str | None) -> Any:
    """Return the value of a result; raises ValueError where it is no JSON."""
    if text is None:
        raise ValueError
    return _plain(json.loads(text))


def _plain(value: Any) -> Any:
    """Return the value, if it is one that JSON has: Python reads more than that."""
    program_input.to_json_line(value, "a result")
    return value


def _metadata(document: object) -> Metadata:
    return stored_fields.read(Metadata, document) if isinstance(document, dict) else Metadata()


def _reason(document: object) -> Reason | None:
    if (
        not isinstance(document, dict)
        or document.get("kind") not in ("trace", "decision")
        or not string(document, "text")
    ):
        return None
    reason = Reason(
        document["kind"], string(document, "text"), _texts(document.get("evidence")), _texts(document.get("options")),
        string(document, "chosen"),
    )  # fmt: skip
    confidence = _number(document.get("confidence"))
    return replace(reason, confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value[:_FARTHEST] if isinstance(text, str)) if isinstance(value, list) else ()


def _number(value: object) -> float | None:
    """Return the value where it is a plausible number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 53 else None
