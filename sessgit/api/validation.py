"""Checks what a program passes before anything is written, so that an error leaves no trace."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessgit import agents
from sessgit.errors import UsageError
from sessgit.model import canonical, dependency_graph, program_input
from sessgit.model.conversation.turn import Tokens
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Saying, Step, Task, ToolCall

KINDS = Tokens._fields
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""Names of tools and ids of calls that the model's API accepts."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_LATEST_TIME = 1e11
_NOTHING_RECORDED = "Nothing was recorded."
_UNKNOWN_DEPENDENCY_HINT = "Nothing was started. A cell can depend only on cells started before it, or with it."


def check_prompt(text: str) -> None:
    """Raise UsageError if the text cannot open a turn."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError("the prompt of a turn is empty", "Describe the purpose of the turn, as a person would.")
    if not agents.of_programs().lines.opens_turn(text):
        raise UsageError(
            f"“{canonical.one_line(text, 40)}” cannot start a turn: the client's own notes start like that",
            "Describe the purpose of the turn, as a person would.",
        )


def check_turn(turn: GivenTurn) -> None:
    """Raise UsageError if a whole turn is invalid; `check_tasks` checks the ids of its cells."""
    check_prompt(turn.prompt)
    check_time(turn.time)
    check_time(turn.ended)
    check_parts(turn.parts)
    check_words(turn.answer, turn.model, turn.tokens)


def check_parts(parts: Sequence[Part]) -> None:
    """Raise UsageError if a part of a turn is invalid; `check_tasks` checks the ids of cells."""
    for part in parts:
        check_time(part.task.created if isinstance(part, Step) else getattr(part, "time", None))
        match part:
            case Step(task, outcome):
                program_input.check_task(task)
                if outcome is not None:
                    check_outcome(outcome)
            case ToolCall():
                _check_tool(part)
            case Reason():
                check_reason(part)
            case Saying(text, model):
                check_words(text, model, {})
            case _:
                raise UsageError(f"{type(part).__name__} is not a part of a turn", _NOTHING_RECORDED)


def check_time(time: float | None) -> None:
    """Raise UsageError if the time is not in seconds since 1970."""
    if time is not None and not _is_number(time, _LATEST_TIME):
        raise UsageError(f"{time} is not a time in seconds since 1970", _NOTHING_RECORDED)


def check_words(text: str, model: str, tokens: Mapping[str, int]) -> None:
    """Raise UsageError if a text, its model, or the tokens that it used are invalid."""
    for what, value in (("the words", text), ("the name of the model", model)):
        if not isinstance(value, str):
            raise UsageError(f"{what} of a turn must be a text, not {type(value).__name__}", _NOTHING_RECORDED)
    _check_model(model)
    _check_tokens(tokens)


def check_outcome(outcome: Outcome) -> None:
    """Raise UsageError if the outcome of a cell is invalid."""
    if outcome.error is not None and not isinstance(outcome.error, str):
        raise UsageError(
            f"the error of a cell must be a text, not {type(outcome.error).__name__}", "Convert it with str()."
        )
    taken = outcome.execution_time_ms
    if taken is not None and not _is_number(taken, (1 << 53) - 1):
        raise UsageError(f"{taken} is not a number of milliseconds", _NOTHING_RECORDED)
    program_input.to_json_line(outcome.result, "the result of a cell")
    _check_model(outcome.model)
    _check_tokens(outcome.tokens)


def check_reason(reason: Reason) -> None:
    """Raise UsageError if a reason is invalid."""
    if reason.kind not in ("trace", "decision") or not isinstance(reason.text, str) or not reason.text.strip():
        raise UsageError("a reason must be a trace or a decision, as text", _NOTHING_RECORDED)
    if reason.confidence is not None and not _is_number(reason.confidence, 1):
        raise UsageError(f"{reason.confidence} is not a confidence", "Use a number from 0 to 1.")
    if not all(isinstance(word, str) for word in (*reason.evidence, *reason.options, reason.chosen)):
        raise UsageError("evidence and options of a reason must be cells or texts", _NOTHING_RECORDED)


def check_tasks(tasks: Sequence[Task], is_taken: Callable[[str], bool], session: str) -> list[Task]:
    """Return the tasks, each with an id; `is_taken` tells whether the session has a cell with an id.

    Raises UsageError if an id is used, a dependency is unknown, or they depend on each other in a cycle; its message
    has the path.
    """
    named = list[Task]()
    own: dict[str, tuple[str, ...]] = {}
    for task in tasks:
        if task.id and (task.id in own or is_taken(task.id)):
            raise UsageError(f"the cell {task.id} already exists", "Each cell of a session needs its own id.")
        named.append(
            task if task.id else replace(task, id="cell_" + "".join(secrets.choice(_LETTERS) for _ in range(8)))
        )
        own[named[-1].id] = task.dependencies
    for task in named:
        if lost := next((other for other in task.dependencies if other not in own and not is_taken(other)), ""):
            raise UsageError(
                f"{task.operation} depends on {lost}, which is not a cell of {session[:8]}", _UNKNOWN_DEPENDENCY_HINT
            )
    if way := dependency_graph.find_cycle(own):
        raise UsageError(f"the cells depend on each other in a cycle: {' → '.join(way)}", "Nothing was begun.")
    return named


def check_calls(parts: Sequence[Part], is_taken: Callable[[str], bool]) -> None:
    """Raise UsageError if the id of a call is used; `is_taken` tells whether the session has it."""
    own = set[str]()
    for part in parts:
        if isinstance(part, ToolCall) and part.id:
            if part.id in own or is_taken(part.id):
                raise UsageError(
                    f"the call {part.id} already exists", f"Each call needs its own id. {_NOTHING_RECORDED}"
                )
            own.add(part.id)


def _check_tool(call: ToolCall) -> None:
    if not isinstance(call.name, str) or not _NAME.fullmatch(call.name):
        raise UsageError(
            f"“{canonical.one_line(str(call.name), 40)}” is not a tool name",
            "Use at most 128 letters, digits, _ and -.",
        )
    if call.id and not (isinstance(call.id, str) and _NAME.fullmatch(call.id)):
        raise UsageError(f"“{canonical.one_line(str(call.id), 40)}” is not a call id", _NOTHING_RECORDED)
    if not isinstance(call.output, str):
        raise UsageError(
            f"the output of a tool must be a text, not {type(call.output).__name__}", "Convert it with json.dumps."
        )
    if not isinstance(call.input, Mapping):
        raise UsageError("the input of a tool must be an object with string keys", _NOTHING_RECORDED)
    program_input.to_json_line(dict(call.input), "the input of a tool")


def _check_model(name: Any) -> None:
    if not isinstance(name, str) or len(name) > program_input.LONGEST_NAME or not canonical.is_printable(name):
        raise UsageError(
            f"the name of a model must be one line of at most {program_input.LONGEST_NAME} characters",
            _NOTHING_RECORDED,
        )


def _check_tokens(tokens: Mapping[str, int]) -> None:
    for kind, count in tokens.items():
        if kind not in KINDS:
            raise UsageError(f"“{kind}” is not a kind of tokens", f"The kinds are {', '.join(KINDS)}.")
        if not isinstance(count, int) or not _is_number(count, 1 << 53):
            raise UsageError(f"{count!r} is not a token count", _NOTHING_RECORDED)


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
