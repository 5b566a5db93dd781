"""Converts messages, tool outputs, cells and reasons of an RLM session to turns.

RLM stores each in a list of its own. An item belongs to the last turn that had begun at its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.errors import UsageError
from sessgit.exchange import mapping, values
from sessgit.model import program_input
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Part, Reason, Saying, Step, Task, ToolCall

CELLS_PROMPT = "What a program ran outside of the conversation"
"""The prompt of a turn for what belongs to no other turn."""
OPENING_PROMPT = "(said before the first prompt)"
_TEXT_KEYS = ("text", "content", "reasoning", "thought", "decision", "question", "step")
_CHOICE_KEYS = ("chosen", "choice", "selected", "outcome")
_TIME_KEYS = ("timestamp", "created_at", "time")


@dataclass
class _OpenTurn:
    """A turn in the making, with its parts and their times; messages keep their order."""

    prompt: str
    time: float | None = None
    parts: list[tuple[float | None, Part]] = field(default_factory=list)

    def put(self, time: float | None, part: Part) -> None:
        """Insert a part after those that are not later."""
        place = len(self.parts)
        while time is not None and place and (before := self.parts[place - 1][0]) is not None and before > time:
            place -= 1
        self.parts.insert(place, (time, part))


@dataclass
class TurnBuilder:
    """Collects turns; `other` is the turn for what belongs to none of `open`."""

    open: list[_OpenTurn] = field(default_factory=list)
    other: _OpenTurn | None = None

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Add messages in their order, without empty ones."""
        for message in messages:
            role, time = values.text(message, "role"), values.seconds(message, *_TIME_KEYS)
            text = _content_text(message.get("content"))
            if role in ("user", "human"):
                self.open.append(_OpenTurn(text, time))
            elif text:
                if not self.open:
                    self.open.append(_OpenTurn(OPENING_PROMPT, time))
                part: Part = Saying(text, values.text(message, "model"), time)
                if role == "tool":
                    part = ToolCall(_tool_name(message), {}, text, time=time)
                self.open[-1].parts.append((time, part))

    def outputs(self, outputs: Iterable[Mapping[str, Any]]) -> None:
        """Add outputs of tools, without those of cells and those of which the turn is unknown."""
        for output in outputs:
            time = values.seconds(output, *_TIME_KEYS)
            turn = self._at(time)
            if turn is not None and not values.text(output, "cell_id"):
                text = _content_text(output.get("content", output.get("content_preview")))
                is_error = output.get("exit_code") not in (0, None)
                turn.put(time, ToolCall(_tool_name(output), {}, text, is_error, time=time))

    def cells(self, steps: Iterable[Step]) -> None:
        """Add cells by the time when they were made."""
        for step in sorted(steps, key=lambda step: step.task.created or 0):
            (self._at(step.task.created) or self._other(step.task.created)).put(step.task.created, step)

    def reasons(self, reasons: Iterable[Reason]) -> None:
        """Add reasons; those without a time go to the end of the last turn."""
        for reason in reasons:
            last = self.open[-1] if self.open and reason.time is None else None
            (self._at(reason.time) or last or self._other(reason.time)).put(reason.time, reason)

    def turns(self) -> tuple[GivenTurn, ...]:
        """Return the turns in order; the turn of other items comes first if it is older than all."""
        turns = list(self.open)
        if self.other is not None:
            is_first = self.other.time is not None and bool(turns) and turns[0].time is not None
            turns.insert(0 if is_first else len(turns), self.other)
        return tuple(
            mapping.with_answer(GivenTurn(turn.prompt, tuple(part for _, part in turn.parts), time=turn.time))
            for turn in turns
        )

    def _at(self, time: float | None) -> _OpenTurn | None:
        begun = [turn for turn in self.open if turn.time is not None and time is not None and turn.time <= time]
        return begun[-1] if begun else None

    def _other(self, time: float | None) -> _OpenTurn:
        self.other = self.other or _OpenTurn(CELLS_PROMPT, time)
        return self.other


def _content_text(value: object) -> str:
    """Return a text, the texts of a list of blocks, or any other value as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(values.value_at(block, "text"), str) for block in value):
        return "\n".join(block["text"] for block in value)
    return program_input.to_json_line(value, "a message")


def _content_texts(value: list[Any]) -> tuple[str, ...]:
    return tuple(filter(None, map(_content_text, value)))


def _tool_name(item: Mapping[str, Any]) -> str:
    name = values.text(item, "tool_name", "tool", "name") or "tool"
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)[:128]


def parse_step(document: Mapping[str, Any]) -> Step:
    """Return the cell of a document, pending if it has no result, no error and took no time; raises UsageError if it is
    invalid."""
    if not values.text(document, "cell_id"):
        raise UsageError("it has no id")
    task = program_input.check_task(
        Task(
            values.text(document, "type"),
            values.text(document, "input.operation"),
            dict(values.mapping(document, "input.args")),
            values.text(document, "input.source"),
            tuple(dict.fromkeys(values.texts(document, "dependencies"))),
            values.text(document, "cell_id"),
            values.seconds(document, *_TIME_KEYS),
            Metadata(
                values.count(document, "metadata.depth"),
                values.text(document, "metadata.model"),
                values.count(document, "metadata.tokens_used"),
            ),
        )
    )
    error, result = values.value_at(document, "output.error"), values.value_at(document, "output.result")
    taken = values.to_number(values.value_at(document, "output.execution_time_ms")) or None
    if error is None and result is None and not taken:
        return Step(task)
    return Step(task, Outcome(result, None if error is None else _content_text(error) or "it failed", taken))


def step_document(step: Step) -> dict[str, Any]:
    """Return the document of a cell as an export writes it directly after its import, without `dependents`."""
    task, outcome = step.task, step.outcome or Outcome()
    return {
        "cell_id": task.id,
        "created_at": task.created,
        "type": task.type,
        "input": {"source": task.source, "operation": task.operation, "args": dict(task.args)},
        "output": {
            "result": outcome.result, "error": outcome.error, "execution_time_ms": outcome.execution_time_ms,
        },
        "dependencies": list(task.dependencies),
        "metadata": {
            "depth": task.metadata.depth, "model": task.metadata.model or None,
            "tokens_used": task.metadata.tokens_used,
        },
    }  # fmt: skip


def parse_reason(kind: str, line: Mapping[str, Any]) -> Reason | None:
    """Return the trace or decision on a line, None if it has no text."""
    text = values.text(line, *_TEXT_KEYS)
    if not text:
        return None
    confidence = values.to_number(line.get("confidence"))
    return Reason(
        "decision" if kind == "decision" else "trace", text, _content_texts(values.items(line, "evidence")),
        _content_texts(values.items(line, "options")), values.text(line, *_CHOICE_KEYS),
        confidence if confidence is not None and 0 <= confidence <= 1 else None, values.seconds(line, *_TIME_KEYS),
    )  # fmt: skip


def reason_line(reason: Reason) -> dict[str, Any]:
    """Return a trace or a decision as a line of RLM's log."""
    return (
        ({} if reason.time is None else {"timestamp": reason.time})
        | {"text": reason.text}
        | {key: list(texts) for key in ("evidence", "options") if (texts := getattr(reason, key))}
        | ({"chosen": reason.chosen} if reason.chosen else {})
        | ({} if reason.confidence is None else {"confidence": reason.confidence})
    )


def reason_lines(
    turns: Sequence[GivenTurn], kind: str, original: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:  # fmt: skip
    """Return the traces, or the decisions, of all turns as lines of RLM's log, as they were in the original lines if
    they still say the same."""
    reasons = [part for turn in turns for part in turn.parts if isinstance(part, Reason) and part.kind == kind]
    known = [(parse_reason(kind, line), line) for line in original]
    lines = list[Mapping[str, Any]]()
    for reason in reasons:
        # Recording keeps only the milliseconds of a time.
        same = (n for n, (parsed, _) in enumerate(known) if parsed and replace(parsed, time=reason.time) == reason)
        number = next(same, None)
        lines.append(reason_line(reason) if number is None else known.pop(number)[1])
    return lines
