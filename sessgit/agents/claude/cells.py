"""What the lines of one turn say: cells, tools, files, tokens, prompt and answer.

Everything here is computed from the turn's own lines, so that it is the same wherever the turn is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from sessgit.agents.claude.lines import blocks, parsed, prompt_uuid, said, tool_results
from sessgit.agents.claude.writer import marks
from sessgit.agents.line import Line
from sessgit.agents.values import Use
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import NO_TOKENS, Cell, Tokens, Turn, plausible_count
from sessgit.model.program_input import Task

_READING = ("file_path", "notebook_path", "path")
_CHANGING_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_READING_TOOLS = ("Read", "NotebookRead")
FILE_TOOLS = (*_READING_TOOLS, *_CHANGING_TOOLS)
"""The tools of which it is known what they do to the file that they name."""
SUBAGENT_TOOLS = ("Task", "Agent")
SHELLS = ("Bash", "PowerShell")
_REPLACING = "Write"
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_SYNTHETIC = "<synthetic>"


def describe(body: Sequence[Line]) -> Turn:
    """The turn that a body says; the first line is its prompt.

    Cells are named after the prompt; where that has no uuid, after its bytes, wherever they stood.
    """
    reader = _Reader(prompt_uuid(replace(body[0], extent=Extent(0, 0))))
    for number, line in enumerate(body, start=1):
        reader.take(number, line)
    return reader.turn(body)


def is_program(body: Sequence[Line], cell: Cell) -> bool:
    """Whether a program made the cell itself, and no message of a model."""
    return bool(cell.lines) and marks.of(body[cell.lines[0] - 1]) != marks.NONE


def label(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """For each line the tool, else the line's type, and the path of the file that it is about, or ``""``."""
    calls: dict[str, tuple[str, str]] = {}
    out = []
    for line in lines:
        name, path = line.type or "line", ""
        for block in blocks(line):
            if block.get("type") == "tool_use":
                name, path = calls[_text(block, "id")] = called(block)
            elif block.get("type") == "tool_result":
                name, path = calls.get(_text(block, "tool_use_id"), (name, path))
        out.append((name, path))
    return out


def time_of(line: Line) -> str:
    """The line's own time, RFC 3339 in UTC with milliseconds, or ``""``."""
    return line.time


def display_prompt(text: str) -> str:
    """A prompt as a person typed it: a slash command as `/name arguments`."""
    is_command = text.lstrip().startswith(("<command-message>", "<command-name>"))
    command = _COMMAND.search(text) if is_command else None
    if command is None:
        return text
    arguments = _ARGUMENTS.search(text)
    return f"{command[1]} {arguments[1]}".strip() if arguments else command[1]


def uses(body: Sequence[bytes], cells: Sequence[Cell], key: str, folder: str) -> dict[int, Use]:
    """By the ordinals of cells what they are about, for those whose tool is known; only the lines of these are parsed.

    `body` are a turn's lines as they are stored, long strings cut out: the name of a file is none of these, and of
    commands only those of several thousand characters are. `key` is the turn's; `folder` stands in for the working
    folder where a line names none.
    """
    line = cache(lambda number: parsed([body[number - 1]])[0])
    found: dict[int, Use] = {}
    for ordinal, cell in enumerate(cells, start=1):
        is_known = cell.type == "tool" and (cell.operation in FILE_TOOLS or cell.operation in SHELLS)
        if is_known and cell.lines and 0 < cell.lines[0] <= len(body):
            block = _block(line(cell.lines[0]), cell, key)
            if block is None:  # cells of a prompt without a uuid have another key: see `describe`
                block = _block(line(cell.lines[0]), cell, prompt_uuid(line(1)))
            use = _use(line(cell.lines[0]), block, folder) if block is not None else None
            if use is not None:
                found[ordinal] = use
    return found


@dataclass
class _Message:
    """One message of the model, which the client writes as a line for each block."""

    id: str
    model: str
    lines: list[int] = field(default_factory=list)
    depends: tuple[str, ...] = ()
    usage: Tokens = NO_TOKENS
    is_given = False


@dataclass
class _Call:
    id: str
    name: str
    depends: tuple[str, ...]
    lines: list[int]
    ok: bool | None = None
    type: str = "tool"
    is_given: bool = False
    """Whether a program gave it its id."""


class _Reader:
    def __init__(self, key: str) -> None:
        self.key = key
        self.messages: dict[str, _Message] = {}
        self.calls: dict[str, _Call] = {}
        self.order: list[_Message | _Call] = []
        self.results: list[str] = []
        self.read: dict[str, None] = {}
        self.changed: dict[str, None] = {}
        self.users = 0
        self.said = 0
        """Messages of a program, which are none of a model."""
        self.tasks: dict[str, _Call] = {}
        """The cells of programs by the ids that these gave them."""
        self.spent: list[tuple[str, Tokens]] = []
        """What models used that a program called itself."""

    def take(self, number: int, line: Line) -> None:
        if line.data is None or line.data.get("isSidechain"):
            return
        if line.type == "assistant":
            self._answer(number, line)
        elif line.type == "user":
            self.users += 1
            waits = marks.is_stand_in(line)
            ended = [self._result(number, block, waits=waits) for block in tool_results(line)]
            if True in ended and (noted := marks.outcome(line)) is not None and noted.model:
                self.spent.append((noted.model, Tokens.from_json(dict(noted.tokens))))

    def _answer(self, number: int, line: Line) -> None:
        mark = marks.of(line)
        if mark.task is not None:
            self.said += 1
            self._task(number, mark.task, mark.call, line)
        elif mark.result_of and (asked := self.tasks.get(mark.result_of)) is not None:
            self.said += 1
            self.calls.setdefault(mark.call, asked)
        elif mark == marks.NONE or mark.result_of:
            self._message(number, line)
        else:
            self.said += 1
            for block in blocks(line):
                if block.get("type") == "tool_use" and _text(block, "id"):
                    self._call(number, block)

    def _message(self, number: int, line: Line) -> None:
        message = message_of(line)
        key = message_key(line, number)
        found = self.messages.get(key)
        if found is None:
            cell = ids.cell_id(self.key, key)
            found = self.messages[key] = _Message(cell, _text(message, "model"), depends=tuple(self.results))
            self.results = []
            self.order.append(found)
        found.lines.append(number)
        found.usage = _usage(message) or found.usage
        for block in blocks(line):
            if block.get("type") == "tool_use" and _text(block, "id"):
                self._call(number, block, found.id)

    def _call(self, number: int, block: dict[str, Any], *messages: str) -> None:
        key = _text(block, "id")
        if key in self.calls:
            return
        name, path = called(block)
        call = self.calls[key] = _Call(ids.cell_id(self.key, key), name, messages, [number])
        self.order.append(call)
        self._touch(name, path)

    def _task(self, number: int, task: Task, key: str, line: Line) -> None:
        """A cell of a program."""
        if key in self.calls or task.id in self.tasks:
            return
        call = _Call(task.id, task.operation, task.dependencies, [number], None, task.type, is_given=True)
        self.tasks[task.id] = self.calls[key] = call
        self.order.append(call)
        for block in blocks(line):
            if block.get("type") == "tool_use":
                self._touch(*called(block))

    def _touch(self, name: str, path: str) -> None:
        if path and name in _CHANGING_TOOLS:
            self.changed[path] = None
        elif path and name in _READING_TOOLS:
            self.read[path] = None

    def _result(self, number: int, block: dict[str, Any], *, waits: bool) -> bool:
        """Takes the result of a call; returns whether it is the first one of a program's cell. A cell of a program
        `waits` with a result that only stands in for its own."""
        call = self.calls.get(_text(block, "tool_use_id"))
        if call is None or call.ok is not None or (waits and call.is_given):
            return False
        call.lines.append(number)
        call.ok = block.get("is_error") is not True
        self.results.append(call.id)
        return call.is_given

    def _units(self) -> list[_Message | _Call]:
        """The cells in their order. An id that a program gave, though the agent's own cell has it, is that one's."""
        if not self.tasks:
            return self.order
        others = {unit.id for unit in self.order if not unit.is_given}
        return [unit for unit in self.order if not unit.is_given or unit.id not in others]

    def turn(self, body: Sequence[Line]) -> Turn:
        prompt, tools = body[0], dict[str, int]()
        for call in self.order:
            if isinstance(call, _Call) and call.type == "tool":
                tools[call.name] = tools.get(call.name, 0) + 1
        tokens: dict[str, Tokens] = {}
        calls: dict[str, int] = {}
        for message in self.messages.values():
            if message.model and message.model != _SYNTHETIC:
                tokens[message.model] = tokens.get(message.model, NO_TOKENS) + message.usage
                calls[message.model] = calls.get(message.model, 0) + 1
        for model, used in self.spent:
            tokens[model] = tokens.get(model, NO_TOKENS) + used
            calls[model] = calls.get(model, 0) + 1
        return Turn(
            prompt_uuid=self.key,
            prompt=display_prompt(said(prompt)),
            answer=_last_answer(body),
            time=time_of(prompt),
            ended=max((time_of(line) for line in body), default=""),
            model=next((m.model for m in reversed(self.messages.values()) if m.model in tokens), ""),
            cells=tuple(_cell(unit) for unit in self._units()),
            tools=tools,
            files_read=tuple(self.read),
            files_changed=tuple(self.changed),
            tokens=tokens,
            calls=calls,
            messages=self.users + self.said + len(self.messages),
            interrupted=_interrupted(body) or any(call.ok is None for call in self.calls.values()),
        )


def _cell(unit: _Message | _Call) -> Cell:
    if isinstance(unit, _Message):
        return Cell(unit.id, "llm_call", unit.model or "message", tuple(unit.lines), unit.depends, True)
    return Cell(unit.id, unit.type, unit.name, tuple(unit.lines), unit.depends, unit.ok, unit.is_given)


def called(block: dict[str, Any]) -> tuple[str, str]:
    """The tool's name and the file that the call is about, or ``""``."""
    arguments = block.get("input")
    paths = (_text(arguments, key) for key in _READING) if isinstance(arguments, dict) else iter(())
    return _text(block, "name") or "tool", next((p for p in paths if p), "")


def _last_answer(body: Sequence[Line]) -> str:
    """The text of the model's last message that has any, all its blocks together."""
    last, parts = None, list[str]()
    for line in reversed(body):
        if line.type != "assistant" or line.data is None or line.data.get("isSidechain"):
            continue
        key, text = _text(message_of(line), "id") or line.uuid, said(line)
        if last is None and text:
            last = key
        if key == last and text:
            parts.append(text)
    return "\n".join(reversed(parts))


def _interrupted(body: Sequence[Line]) -> bool:
    return any(said(line).startswith("[Request interrupted") for line in body[-2:] if line.type == "user")


def message_key(line: Line, number: int) -> str:
    """What the lines of one message of the model have in common; `number` is the line's in its turn, from 1."""
    return _text(message_of(line), "id") or line.uuid or str(number)


def message_of(line: Line) -> dict[str, Any]:
    """The line's message, or an empty one."""
    message = line.data.get("message") if line.data else None
    return message if isinstance(message, dict) else {}


def text_of(content: object) -> tuple[str, int]:
    """The text of a message's or a result's content, a string or blocks, and the number of images in it."""
    if isinstance(content, str):
        return content, 0
    texts, images = [], 0
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            images += block.get("type") == "image"
            if isinstance(block.get("text"), str):
                texts.append(block["text"])
    return "\n".join(texts), images


def _usage(message: dict[str, Any]) -> Tokens | None:
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    return Tokens(
        plausible_count(usage.get("input_tokens")),
        plausible_count(usage.get("output_tokens")),
        plausible_count(usage.get("cache_read_input_tokens")),
        plausible_count(usage.get("cache_creation_input_tokens")),
    )


def _text(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _block(line: Line, cell: Cell, key: str) -> dict[str, Any] | None:
    """The block of a line that the cell stands for."""
    mark = marks.of(line)
    if mark.task is not None:
        key, named = "", mark.call if mark.task.id == cell.id else ""
        return next((b for b in blocks(line) if b.get("type") == "tool_use" and _text(b, "id") == named), None)
    calls = (block for block in blocks(line) if block.get("type") == "tool_use")
    return next((block for block in calls if ids.cell_id(key, _text(block, "id")) == cell.id), None)


def _use(line: Line, block: dict[str, Any], folder: str) -> Use | None:
    name, path = called(block)
    command = _text(block.get("input"), "command")
    if name in SHELLS:
        return Use(command=command)
    if name not in FILE_TOOLS or not path or "\0" in path:
        return None
    place = os.path.normpath(os.path.join(line.text("cwd") or folder, path))  # noqa: PTH118 - as the agent has it
    return Use(place, reads=name != _REPLACING, writes=name in _CHANGING_TOOLS)
