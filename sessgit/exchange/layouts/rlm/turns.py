"""Messages, tool outputs, cells and reasons of an RLM session, as turns.

Its system keeps them in lists of their own. What belongs to a turn is told by time alone: the turn is the last one that
had begun by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessgit.errors import UsageError
from sessgit.exchange.layouts import files
from sessgit.model import program_input
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Part, Reason, Saying, Step, Task, ToolCall

CELLS_PROMPT = "What a program ran outside of the conversation"
"""The prompt of what no turn can have."""
OPENING_PROMPT = "(said before the first prompt)"

_TEXT_KEYS = ("text", "content", "reasoning", "thought", "decision", "question", "step")
_CHOICE_KEYS = ("chosen", "choice", "selected", "outcome")
_TIME_KEYS = ("timestamp", "created_at", "time")


@dataclass
class _OpenTurn:
    """A turn in the making: its parts with their times, None for those that stand where they were said."""

    prompt: str
    time: float | None = None
    parts: list[tuple[float | None, Part]] = field(default_factory=list)

    def put(self, time: float | None, part: Part) -> None:
        """Adds a part behind those that are no later."""
        place = len(self.parts)
        while time is not None and place and (before := self.parts[place - 1][0]) is not None and before > time:
            place -= 1
        self.parts.insert(place, (time, part))

    def turn(self) -> GivenTurn:
        last = self.parts[-1] if self.parts else None
        if last is None or not isinstance(last[1], Saying):
            return GivenTurn(self.prompt, tuple(part for _, part in self.parts), time=self.time)
        parts = tuple(part for _, part in self.parts[:-1])
        return GivenTurn(self.prompt, parts, last[1].text, last[1].model, self.time, last[1].time)


@dataclass
class TurnBuilder:
    """The turns so far. What cannot be placed is returned by what adds it."""

    found: list[_OpenTurn] = field(default_factory=list)
    beside: _OpenTurn | None = None

    def messages(self, said: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Adds what was said, in its order; returns the messages that say nothing."""
        odd = []
        for message in said:
            role, time = files.text_or_empty(message.get("role")), entry_time(message)
            words = content_text(message.get("content"))
            if role in ("user", "human"):
                self.found.append(_OpenTurn(words, time))
                continue
            if not words:
                odd.append(message)
                continue
            if not self.found:
                self.found.append(_OpenTurn(OPENING_PROMPT, time))
            model = files.text_or_empty(message.get("model"))
            made: Part = Saying(words, model, time)
            if role == "tool":
                made = ToolCall(_tool_name(message), {}, words, time=time)
            self.found[-1].parts.append((time, made))
        return odd

    def outputs(self, said: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Adds what tools printed; returns those outputs of which nobody knows the turn."""
        odd = []
        for output in said:
            time = entry_time(output)
            turn = self._at(time)
            words = content_text(output.get("content", output.get("content_preview")))
            if turn is None or files.text_or_empty(output.get("cell_id")):
                odd.append(output)
                continue
            turn.put(time, ToolCall(_tool_name(output), {}, words, output.get("exit_code") not in (0, None), time=time))
        return odd

    def cells(self, steps: Iterable[Step]) -> None:
        """Adds cells, in the order in which they were made."""
        for step in sorted(steps, key=lambda one: one.task.created or 0):
            (self._at(step.task.created) or self._beside(step.task.created)).put(step.task.created, step)

    def reasons(self, reasons: Iterable[tuple[float | None, Reason]]) -> None:
        """Adds reasons; those without a time come behind all others."""
        for time, reason in reasons:
            last = self.found[-1] if self.found else None
            (self._at(time) or (last if time is None else None) or self._beside(time)).put(time, reason)

    def turns(self) -> tuple[GivenTurn, ...]:
        """The turns in their order; what no turn had comes where it was made."""
        out = list(self.found)
        if self.beside is not None:
            early = self.beside.time is not None and bool(out) and out[0].time is not None
            out.insert(0 if early else len(out), self.beside)
        return tuple(turn.turn() for turn in out)

    def _at(self, time: float | None) -> _OpenTurn | None:
        begun = [turn for turn in self.found if turn.time is not None and time is not None and turn.time <= time]
        return begun[-1] if begun else None

    def _beside(self, time: float | None) -> _OpenTurn:
        if self.beside is None:
            self.beside = _OpenTurn(CELLS_PROMPT, time)
        return self.beside


def entry_time(value: Mapping[str, Any]) -> float | None:
    """When something was, by whatever key says it."""
    return next((found for key in _TIME_KEYS if (found := files.parse_seconds(value.get(key))) is not None), None)


def content_text(value: object) -> str:
    """A text, or those of a list of blocks, or any other value as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in value):
        return "\n".join(one["text"] for one in value)
    return program_input.to_json_line(value, "a message")


def parse_step(document: Mapping[str, Any]) -> Step:
    """The cell that a document holds, pending where it has neither a result nor an error and took no time; raises
    UsageError that says what of it is wrong."""
    given, came = files.dict_or_empty(document.get("input")), files.dict_or_empty(document.get("output"))
    meta = files.dict_or_empty(document.get("metadata"))
    ident = files.text_or_empty(document.get("cell_id"))
    if not ident:
        raise UsageError("it has no id")
    task = Task(
        files.text_or_empty(document.get("type")), files.text_or_empty(given.get("operation")),
        dict(files.dict_or_empty(given.get("args"))),
        files.text_or_empty(given.get("source")),
        tuple(dict.fromkeys(files.nonempty_texts(document.get("dependencies")))), ident,
        entry_time(document), Metadata(files.count_or_zero(meta.get("depth")), files.text_or_empty(meta.get("model")),
                                   files.count_or_zero(meta.get("tokens_used"))),
    )  # fmt: skip
    error, result = came.get("error"), came.get("result")
    took = files.number_or_none(came.get("execution_time_ms"))
    if error is None and result is None and not took:
        return Step(program_input.check_task(task))
    outcome = Outcome(result, None if error is None else content_text(error) or "it failed", took or None)
    return Step(program_input.check_task(task), outcome)


def parse_reason(kind: str, line: Mapping[str, Any]) -> tuple[float | None, Reason] | None:
    """The trace or decision that a line says, with its time, or None."""
    words = next((found for key in _TEXT_KEYS if (found := files.text_or_empty(line.get(key)))), "")
    if not words:
        return None
    sure = files.number_or_none(line.get("confidence"))
    said = Reason(
        "decision" if kind == "decision" else "trace", words, _content_texts(line.get("evidence")),
        _content_texts(line.get("options")),
        next((one for key in _CHOICE_KEYS if (one := files.text_or_empty(line.get(key)))), ""),
        sure if sure is not None and 0 <= sure <= 1 else None, entry_time(line),
    )  # fmt: skip
    return entry_time(line), said


def _reason_line(found: Reason) -> dict[str, Any]:
    """The same as a line of the system's own log."""
    said: dict[str, Any] = {"text": found.text}
    said |= {key: list(getattr(found, key)) for key in ("evidence", "options") if getattr(found, key)}
    said |= {"chosen": found.chosen} if found.chosen else {}
    said |= {} if found.confidence is None else {"confidence": found.confidence}
    return said if found.time is None else {"timestamp": found.time, **said}


def _content_texts(value: object) -> tuple[str, ...]:
    return tuple(content_text(one) for one in files.list_or_empty(value) if content_text(one))


def _tool_name(said: Mapping[str, Any]) -> str:
    found = next(
        (name for key in ("tool_name", "tool", "name") if (name := files.text_or_empty(said.get(key)))), "tool"
    )
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in found)[:128]


def reason_lines(turns: Sequence[GivenTurn], kind: str) -> list[dict[str, Any]]:
    """The lines of the traces, or of the decisions, of all turns."""
    return [
        _reason_line(part) for turn in turns for part in turn.parts if isinstance(part, Reason) and part.kind == kind
    ]
