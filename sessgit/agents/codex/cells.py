"""What the lines of one turn of Codex say: cells, tools, files, tokens, prompt and answer."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.agents.codex.lines import CALLS, CONTEXT, EVENT, ITEM, USAGE, CodexLine, content_text, make, prompt_text
from sessgit.agents.line import Line
from sessgit.agents.values import OpenCell, ToolKind, Use
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import NO_TOKENS, Cell, Tokens, Turn, plausible_count
from sessgit.model.stored_fields import string

PATCH = "apply_patch"
_TOOLS: Mapping[str, ToolKind] = {
    PATCH: "write", "spawn_agent": "subagent",
    "exec_command": "shell", "shell": "shell", "shell_command": "shell", "local_shell_call": "shell",
    "container.exec": "shell",
}  # fmt: skip
_MCP = "mcp__"
"""How the names of tools begin that a server of the user has; only the server knows what they say."""
_COMMAND = re.compile(r"\ACommand: .*?\n(?=Chunk ID: )", re.DOTALL)
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_SECTION = re.compile(r"^\*\*\* (?=(?:Add|Update|Delete) File: )", re.MULTILINE)
_MOVE = "*** Move to: "
_PROGRAMS = (PATCH, "applypatch")
_HEREDOC = re.compile(
    r"^\s*(?:cd\s+(?P<quote>['\"]?)(?P<folder>[^\n;&|]+?)(?P=quote)\s*&&\s*)?apply_?patch\s+"
    r"<<-?\s*(?P<mark>['\"]?)(?P<end>\w+)(?P=mark)\n(?P<patch>.*?)\n(?P=end)\s*$",
    re.DOTALL,
)
"""How a model runs `apply_patch` by a shell; the client applies the patch itself."""
_APPLIED = "Success. Updated the following files:"
_ACCESS = {"Add": "w", "Update": "rw", "Delete": "rw", "Move to": "w"}


@dataclass
class _Reader:
    """Takes the lines of a turn. What the model says between two results of tools is one cell, as it is one response
    of the service."""

    key: str
    folder: str = ""
    model: str = ""
    answer: str = ""
    prompt: str = ""
    messages: int = 0
    order: list[OpenCell] = field(default_factory=list)
    calls: dict[str, OpenCell] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    changed: dict[str, None] = field(default_factory=dict)
    responses: list[Tokens] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    """The calls that failed as the client says."""
    by_total: dict[Tokens, Tokens] = field(default_factory=dict)
    """What each response used, by the sum of the session behind it: the client says the same one again."""
    message: OpenCell | None = None
    """The response that goes on."""
    is_aborted: bool = False

    def take(self, number: int, line: CodexLine) -> None:
        if line.type == CONTEXT:
            self.model = string(line.payload, "model") or self.model
            self.folder = line.cwd or self.folder
        elif line.type == USAGE:
            self.responses.append(tokens_of(line.payload.get("usage")))
        elif line.type == EVENT:
            self._event(line)
        elif line.is_result:
            self._result(number, line)
        elif line.is_work:
            self._response(number, line)

    def _event(self, line: CodexLine) -> None:
        self.is_aborted = self.is_aborted or line.kind == "turn_aborted"
        if line.is_spoken_prompt:
            self.messages += 1
            self.prompt = self.prompt or prompt_text(line)
        if line.item.get("status") in ("failed", "declined"):
            self.failed.add(string(line.item, "id"))
        info = line.payload.get("info") if line.kind == "token_count" else None
        if isinstance(info, dict):
            total, last = (tokens_of(info.get(name)) for name in ("total_token_usage", "last_token_usage"))
            self.by_total.setdefault(total, last if self.order else NO_TOKENS)  # of an earlier turn

    def _response(self, number: int, line: CodexLine) -> None:
        if self.message is None:
            self.messages += 1
            cell, model = ids.cell_id(self.key, f"response {number}"), self.model or "message"
            self.message = OpenCell(cell, "llm_call", model, tuple(self.results), [], ok=True)
            self.results = []
            self.order.append(self.message)
        self.message.lines.append(number)
        if line.is_answer:
            self.answer = content_text(line.payload.get("content")) or self.answer
        if line.kind in CALLS:
            self._call(number, line, self.message.id)

    def _call(self, number: int, line: CodexLine, message: str) -> None:
        key = call_id(line)
        if key in self.calls:
            return
        unit = OpenCell(ids.cell_id(self.key, key), "tool", tool(line), (message,), [number])
        self.calls[key] = unit
        self.order.append(unit)
        self.changed.update(dict.fromkeys(path for path, _ in patched_files(arguments(line), self.folder)))

    def _result(self, number: int, line: CodexLine) -> None:
        self.message = None
        self.messages += 1
        call = self.calls.get(call_id(line))
        if call is None or call.ok is not None:
            return
        call.lines.append(number)
        call.ok = call_id(line) not in self.failed and succeeded(output(line), call.operation)
        self.results.append(call.id)


def kind(tool: str) -> ToolKind | None:
    """Return what a tool does, or None for one that neither runs commands nor works on files."""
    return _TOOLS.get(tool)


def describe(body: Sequence[Line]) -> Turn:
    """Return the turn that a body says; the first line opens it."""
    reader = _Reader(replace(body[0], extent=Extent(0, 0)).prompt_id)
    for number, line in enumerate(body, start=1):
        if isinstance(line, CodexLine) and line.data is not None:
            reader.take(number, line)
    return _turn(reader, body)


def _turn(reader: _Reader, body: Sequence[Line]) -> Turn:
    used = reader.responses or [used for used in reader.by_total.values() if used.total]
    model = reader.model if used or reader.order else ""
    return Turn(
        prompt_uuid=reader.key,
        prompt=reader.prompt,
        answer=reader.answer,
        time=body[0].time,
        ended=max((line.time for line in body), default=""),
        model=model,
        cells=tuple(unit.cell for unit in reader.order),
        tools=dict(Counter(call.operation for call in reader.calls.values())),
        files_changed=tuple(reader.changed),
        tokens={model: sum(used, NO_TOKENS)} if model and used else {},
        calls={model: len(used)} if model and used else {},
        messages=reader.messages,
        interrupted=reader.is_aborted or any(call.ok is None for call in reader.calls.values()),
    )


def label(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Return for each line the tool, else the line's kind, and the path of the file that it is about, or ``""``."""
    calls: dict[str, tuple[str, str]] = {}
    out = []
    for line in lines:
        name, path = "line", ""
        if isinstance(line, CodexLine) and line.type:
            name = line.kind or line.type
            if line.type == ITEM and line.kind in CALLS:
                files = [path for path, _ in named_files(patch_of(arguments(line)))]
                name, path = calls[call_id(line)] = tool(line), files[0] if files else ""
            elif line.is_result:
                name, path = calls.get(call_id(line), (name, path))
        out.append((name, path))
    return out


def uses(body: Sequence[bytes], cells: Sequence[Cell], key: str) -> dict[int, Use]:
    """Return by the ordinals of cells what they are about: the files of a patch, or a command."""
    uses_by_ordinal = dict[int, Use]()
    contexts = ((number, make(raw)) for number, raw in enumerate(body, start=1) if b'"turn_context"' in raw)
    folders = [(number, line.cwd) for number, line in contexts if line.cwd]
    for ordinal, cell in enumerate(cells, start=1):
        if cell.type == "tool" and cell.lines and 0 < cell.lines[0] <= len(body):
            given = arguments(make(body[cell.lines[0] - 1]))
            root = next((cwd for number, cwd in reversed(folders) if number < cell.lines[0]), "")
            files = {path: _ACCESS[change] for path, change in patched_files(given, root)}
            command = command_of(given)
            if files:
                uses_by_ordinal[ordinal] = Use(files)
            elif command:
                uses_by_ordinal[ordinal] = Use(command=command)
    return uses_by_ordinal


def place(folder: str, path: str) -> str:
    """Return a path as the agent names it, absolute."""
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 - as the agent has it


def tool(line: CodexLine) -> str:
    """Return the name of the tool that a call is for; a shell command that only applies a patch is one of that tool."""
    name, namespace = string(line.payload, "name"), string(line.payload, "namespace")
    if namespace.startswith(_MCP):
        return f"{namespace}__{name}"
    return PATCH if patch_of(arguments(line)) else name or line.kind


def call_id(line: CodexLine) -> str:
    """Return the client's id for a call, on the line of the call or of its result."""
    return string(line.payload, "call_id")


def arguments(line: CodexLine) -> dict[str, Any]:
    """Return the arguments of a call; those of a custom tool are one text, `input`."""
    action = line.payload.get("action")
    if isinstance(action, dict):
        return action
    if line.kind == "custom_tool_call":
        return {"input": string(line.payload, "input")}
    try:
        value = json.loads(string(line.payload, "arguments") or "{}")
    except (ValueError, RecursionError):
        return {"arguments": string(line.payload, "arguments")}
    return value if isinstance(value, dict) else {"arguments": value}


def command_of(given: Mapping[str, Any]) -> str:
    """Return the shell command that a call runs, or ""."""
    command = given.get("cmd", given.get("command"))
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        return words[-1] if words[:2] and words[0].endswith("sh") else " ".join(words)
    return command if isinstance(command, str) else ""


def folder_of(given: Mapping[str, Any]) -> str:
    """Return the folder in which a call runs a command, "" if that is the turn's."""
    return string(given, "workdir")


def patch_of(given: Mapping[str, Any]) -> str:
    """Return the patch that a call applies, by the tool for it or by a shell command, or ""."""
    text, command = given.get("input"), given.get("command")
    if isinstance(command, list) and len(command) == 2 and command[0] in _PROGRAMS:
        text = command[1]
    if isinstance(text, str) and text.startswith("*** Begin Patch"):
        return text
    heredoc = _HEREDOC.match(command_of(given))
    return heredoc["patch"] if heredoc else ""


def patch_folder(given: Mapping[str, Any], folder: str) -> str:
    """Return the folder to which the paths of a call's patch are relative, in a turn with this working folder."""
    heredoc = _HEREDOC.match(command_of(given))
    return place(place(folder, folder_of(given)), (heredoc["folder"] if heredoc else "") or "")


def patched_files(given: Mapping[str, Any], folder: str) -> Iterator[tuple[str, str]]:
    """Yield the absolute path of each file that a call patches, and Add, Update, Delete or Move to; the working folder
    is the turn's."""
    patch = patch_of(given)
    root = patch_folder(given, folder) if patch else ""
    return ((place(root, path), change) for path, change in named_files(patch))


def named_files(patch: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file as a patch names it, and Add, Update, Delete or Move to."""
    for change, path, moved, _ in sections(patch):
        yield path, change
        if moved:
            yield moved, "Move to"


def sections(patch: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield what a patch does to each file: Add, Update or Delete, the path, the new path of a file that moves or "",
    and the lines."""
    for block in _SECTION.split(patch)[1:]:
        head, *lines = block.split("\n")
        change, _, path = head.partition(" File: ")
        moved = lines.pop(0).removeprefix(_MOVE).strip() if lines and lines[0].startswith(_MOVE) else ""
        yield change, path.strip(), moved, lines


def succeeded(text: str, tool: str) -> bool:
    """Return whether a call with this output did what it was asked for; the client says so of patches."""
    return _APPLIED in text if tool == PATCH else not exit_code(text, tool)


def output(line: CodexLine) -> str:
    """Return what a tool said to the model; where the client wrapped it as JSON, what is in that."""
    value = line.payload.get("output")
    if isinstance(value, dict):
        value = value.get("content")
    if not isinstance(value, str):
        return content_text(value)
    if value.startswith(('{"output":', '[{"type":')):
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if isinstance(inner, dict):
            code = inner.get("metadata", {}).get("exit_code") if isinstance(inner.get("metadata"), dict) else None
            said = f"Exit code: {code}\n" if isinstance(code, int) else ""
            return said + string(inner, "output")
        return content_text(inner) or value
    return value


def exit_code(text: str, tool: str) -> int | None:
    """Return the exit code that the output of a tool says, or None."""
    match = None if tool.startswith(_MCP) else _EXIT_CODE.search(_COMMAND.sub("", text))
    return int(match[1]) if match else None


def tokens_of(usage: object) -> Tokens:
    """Return the counts of a response: those of the input that came from a cache are counted apart."""
    counts = usage if isinstance(usage, dict) else {}
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
    given, out, cached, written = (plausible_count(counts.get(name)) for name in names)
    return Tokens(max(0, given - cached - written), out, cached, written)
