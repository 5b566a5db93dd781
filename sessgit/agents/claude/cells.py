"""What the lines of one turn say: cells, tools, files, tokens, prompt and answer.

Everything here is computed from the turn's own lines, so that it is the same wherever the turn is read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sessgit.agents.claude.lines import (
    NO_MARK,
    SYNTHETIC,
    blocks,
    display_prompt,
    is_outside,
    is_stand_in,
    make,
    mark_of,
    message_id,
    message_key,
    message_of,
    noted_outcome,
    tool_calls,
    tool_results,
)
from sessgit.agents.line import Line
from sessgit.agents.values import FILE_KINDS, OpenCell, ToolKind, Use
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import NO_TOKENS, Cell, Tokens, Turn, plausible_count
from sessgit.model.program_input import Task
from sessgit.model.stored_fields import string

_READING = ("file_path", "notebook_path", "path")
_TOOLS: Mapping[str, ToolKind] = {
    "Bash": "shell", "PowerShell": "shell",
    "Read": "read", "NotebookRead": "read", "LS": "search", "Glob": "search", "Grep": "search",
    "Write": "write", "Edit": "write", "MultiEdit": "write", "NotebookEdit": "write",
    "Task": "subagent", "Agent": "subagent",
}  # fmt: skip
_REPLACING = "Write"
USAGE_KINDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_NO_MODEL = ("message", SYNTHETIC)
"""What stands for the model of a message that names none, and of one that the client wrote itself."""


def kind(tool: str) -> ToolKind | None:
    """Return what a tool does, or None for one that neither runs commands nor works on files."""
    return _TOOLS.get(tool)


def describe(body: Sequence[Line]) -> Turn:
    """Return the turn that a body says; the first line is its prompt.

    Cells are named after the prompt; where that has no uuid, after its bytes, wherever they were.
    """
    reader = _Reader(replace(body[0], extent=Extent(0, 0)).prompt_id)
    for number, line in enumerate(body, start=1):
        reader.take(number, line)
    return reader.turn(body)


def is_program(body: Sequence[Line], cell: Cell) -> bool:
    """Return whether a program made the cell itself, and no message of a model."""
    return bool(cell.lines) and mark_of(body[cell.lines[0] - 1]) != NO_MARK


def label(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Return for each line the tool, else the line's type, and the path of the file that it is about, or ``""``."""
    calls: dict[str, tuple[str, str]] = {}
    out = []
    for line in lines:
        name, path = line.type or "line", ""
        for block in blocks(line):
            if block.get("type") == "tool_use":
                name, path = calls[string(block, "id")] = called(block)
            elif block.get("type") == "tool_result":
                name, path = calls.get(string(block, "tool_use_id"), (name, path))
        out.append((name, path))
    return out


def uses(body: Sequence[bytes], cells: Sequence[Cell], key: str) -> dict[int, Use]:
    """Return by the ordinals of cells what they are about, for those whose tool is known; only the lines of these
    are parsed.

    `body` are a turn's lines as they are stored, long strings cut out: the name of a file is none of these, and of
    commands only those of several thousand characters are. `key` is the turn's.
    """
    line = cache(lambda number: make(body[number - 1]))
    uses_by_ordinal: dict[int, Use] = {}
    for ordinal, cell in enumerate(cells, start=1):
        is_known = cell.type == "tool" and kind(cell.operation) in ("shell", *FILE_KINDS)
        if is_known and cell.lines and 0 < cell.lines[0] <= len(body):
            block = _block(line(cell.lines[0]), cell, key)
            if block is None:  # cells of a prompt without a uuid have another key: see `describe`
                block = _block(line(cell.lines[0]), cell, line(1).prompt_id)
            use = _use(line(cell.lines[0]), block) if block is not None else None
            if use is not None:
                uses_by_ordinal[ordinal] = use
    return uses_by_ordinal


@dataclass
class _OpenCell(OpenCell):
    """A message of the model, which the client writes as a line for each block, or a call."""

    is_outside: bool = False
    """Whether it is none of the transcript, and the model does not wait for it."""
    usage: Tokens = NO_TOKENS


class _Reader:
    def __init__(self, key: str) -> None:
        self.key = key
        self.messages: dict[str, _OpenCell] = {}
        self.calls: dict[str, _OpenCell] = {}
        self.order: list[_OpenCell] = []
        self.results: list[str] = []
        self.read: dict[str, None] = {}
        self.changed: dict[str, None] = {}
        self.users = 0
        self.said = 0
        """Messages of a program, which are none of a model."""
        self.tasks: dict[str, _OpenCell] = {}
        """The cells of programs by the ids that these gave them."""
        self.spent: list[tuple[str, Tokens]] = []
        """What models used that a program called itself."""

    def take(self, number: int, line: Line) -> None:
        if line.data is None or line.is_sidechain:
            return
        if line.type == "assistant":
            self._answer(number, line)
            self.said -= is_outside(line)
        elif line.type == "user":
            self.users += not is_outside(line)
            waits = is_stand_in(line)
            ended = [self._result(number, block, waits=waits) for block in tool_results(line)]
            if True in ended and (noted := noted_outcome(line)) is not None and noted.model:
                self.spent.append((noted.model, Tokens.from_json(dict(noted.tokens))))

    def _answer(self, number: int, line: Line) -> None:
        mark = mark_of(line)
        if mark.task is not None:
            self.said += 1
            self._task(number, mark.task, mark.call, line)
        elif mark.result_of and (asked := self.tasks.get(mark.result_of)) is not None:
            self.said += 1
            self.calls.setdefault(mark.call, asked)
        elif mark == NO_MARK or mark.result_of:
            self._message(number, line)
        else:
            self.said += 1
            self._calls(number, line)

    def _message(self, number: int, line: Line) -> None:
        message = message_of(line)
        key = message_key(line, number)
        unit = self.messages.get(key)
        if unit is None:
            cell = ids.cell_id(self.key, key)
            model = string(message, "model") or "message"
            unit = self.messages[key] = _OpenCell(cell, "llm_call", model, tuple(self.results), [], ok=True)
            self.results = []
            self.order.append(unit)
        unit.lines.append(number)
        unit.usage = _usage(message) or unit.usage
        self._calls(number, line, unit.id)

    def _calls(self, number: int, line: Line, *messages: str) -> None:
        for block in tool_calls(line):
            key = string(block, "id")
            if key and key not in self.calls:
                name, path = called(block)
                unit = self.calls[key] = _OpenCell(ids.cell_id(self.key, key), "tool", name, messages, [number])
                unit.is_outside = is_outside(line)
                self.order.append(unit)
                self._touch(name, path)

    def _task(self, number: int, task: Task, key: str, line: Line) -> None:
        """A cell of a program."""
        if key in self.calls or task.id in self.tasks:
            return
        call = _OpenCell(
            task.id, task.type, task.operation, task.dependencies, [number], is_program=True,
            is_outside=is_outside(line),
        )  # fmt: skip
        self.tasks[task.id] = self.calls[key] = call
        self.order.append(call)
        for block in tool_calls(line):
            self._touch(*called(block))

    def _touch(self, name: str, path: str) -> None:
        if path and kind(name) == "write":
            self.changed[path] = None
        elif path and kind(name) == "read":
            self.read[path] = None

    def _result(self, number: int, block: dict[str, Any], *, waits: bool) -> bool:
        """Take the result of a call; returns whether it is the first one of a program's cell. A cell of a program
        `waits` with a result that only stands in for its own."""
        call = self.calls.get(string(block, "tool_use_id"))
        if call is None or call.ok is not None or (waits and call.is_program):
            return False
        call.lines.append(number)
        call.ok = block.get("is_error") is not True
        if not call.is_outside:
            self.results.append(call.id)
        return call.is_program

    def _units(self) -> list[_OpenCell]:
        """Return the cells in their order. An id that a program gave, though the agent's own cell has it, is that
        one's."""
        if not self.tasks:
            return self.order
        others = {unit.id for unit in self.order if not unit.is_program}
        return [unit for unit in self.order if not unit.is_program or unit.id not in others]

    def turn(self, body: Sequence[Line]) -> Turn:
        prompt, tokens = body[0], dict[str, Tokens]()
        for message in self.messages.values():
            if message.operation not in _NO_MODEL:
                self.spent.append((message.operation, message.usage))
        for model, used in self.spent:
            tokens[model] = tokens.get(model, NO_TOKENS) + used
        return Turn(
            prompt_uuid=self.key,
            prompt=display_prompt(prompt.message_text),
            answer=_last_answer(body),
            time=prompt.time,
            ended=max((line.time for line in body), default=""),
            model=next((m.operation for m in reversed(self.messages.values()) if m.operation in tokens), ""),
            cells=tuple(unit.cell for unit in self._units()),
            tools=dict(Counter(call.operation for call in self.order if call.type == "tool")),
            files_read=tuple(self.read),
            files_changed=tuple(self.changed),
            tokens=tokens,
            calls=dict(Counter(model for model, _ in self.spent)),
            messages=self.users + self.said + len(self.messages),
            interrupted=_interrupted(body)
            or any(call.ok is None and not call.is_outside for call in self.calls.values()),
        )


def called(block: dict[str, Any]) -> tuple[str, str]:
    """Return the tool's name and the file that the call is about, or ""."""
    arguments = block.get("input")
    paths = (string(arguments, key) for key in _READING) if isinstance(arguments, dict) else iter(())
    return string(block, "name") or "tool", next((p for p in paths if p), "")


def _last_answer(body: Sequence[Line]) -> str:
    """Return the text of the model's last message that has any, all its blocks together."""
    last, parts = None, list[str]()
    for line in reversed(body):
        if line.type != "assistant" or line.data is None or line.is_sidechain or is_outside(line):
            continue
        key, text = message_id(line) or line.uuid, line.message_text
        if last is None and text:
            last = key
        if key == last and text:
            parts.append(text)
    return "\n".join(reversed(parts))


def _interrupted(body: Sequence[Line]) -> bool:
    last = [line for line in body[-2:] if line.type == "user"]
    if body and is_outside(body[-1]):
        last = [line for line in body if line.type == "user" and not is_outside(line)][-2:]
    return any(line.message_text.startswith("[Request interrupted") for line in last)


def _usage(message: dict[str, Any]) -> Tokens | None:
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    return Tokens(*[plausible_count(usage.get(kind)) for kind in USAGE_KINDS])


def _block(line: Line, cell: Cell, key: str) -> dict[str, Any] | None:
    """Return the block of a line that the cell stands for."""
    mark = mark_of(line)
    for block in tool_calls(line):
        name = string(block, "id")
        if (name == mark.call and mark.task.id == cell.id) if mark.task else ids.cell_id(key, name) == cell.id:
            return block
    return None


def _use(line: Line, block: dict[str, Any]) -> Use | None:
    name, path = called(block)
    command = string(block.get("input"), "command")
    if kind(name) == "shell":
        return Use(command=command)
    if kind(name) not in FILE_KINDS or not path or "\0" in path:
        return None
    place = os.path.normpath(os.path.join(line.cwd, path))  # noqa: PTH118 - as the agent has it
    access = "r" if kind(name) == "read" else "w" if name == _REPLACING else "rw"
    return Use({place: access})
