"""The tools of the client: what kind they are, what their arguments name, and what those for files do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessgit.agents.claude.cells import called, kind
from sessgit.agents.claude.content import edited, said
from sessgit.agents.claude.lines import make, tool_calls, tool_results
from sessgit.agents.line import Line
from sessgit.agents.values import DeclinedError, FileEdit, existing
from sessgit.model.conversation.content import Call
from sessgit.model.conversation.turn import plausible_count
from sessgit.model.stored_fields import string

_UNCHANGED = ("File unchanged since", "<system-reminder>File unchanged since", "Wasted call")
_NEVER_RAN = (
    "The user doesn't want to", "<tool_use_error>File has not been read", "File has not been read",
    "<tool_use_error>File has been modified since", "File has been modified since",
    "<tool_use_error>InputValidationError", "InputValidationError",
    "Permission to use", "<tool_use_error>Cancelled", "[Request interrupted",
    "<tool_use_error>No such tool", "Claude requested permissions", "This command requires approval", "PreToolUse:",
)  # fmt: skip
"""How results begin of calls that the client did not let run."""
_MOST_LINES = 2000
"""Lines that the client reads of a file by default."""

_EDIT_CALL = re.compile(rb'"name": ?"(?:Edit|MultiEdit|Write|NotebookEdit)"')
_RESULT = b'"tool_result"'

# What the client adds to results
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_NO_OUTPUT_TEXTS = ("(Bash completed with no output)", "Tool ran without output or errors", "(no content)")
_EXIT_CODE_LINE = re.compile(r"\A(?:Error: )?Exit code \d{1,3}(?:\n|\Z)")
_CWD_RESET_LINE = re.compile(r"\n?Shell cwd was reset to [^\n]*\Z")
_TRUNCATION_NOTE = re.compile(r"\s*\.\.\. \[\d+ (?:lines|characters) truncated\] \.\.\.\s*")
_PERSISTED_PREVIEW = re.compile(
    r"\A<persisted-output>\n.*?\n\nPreview \(first [^)]*\):\n(.*?)(?:\n\.\.\.)?\n</persisted-output>\Z", re.DOTALL
)
_NUMBERED_LINE = re.compile(r"^ *(\d+)(?:→|\t)(.*)$", re.MULTILINE)


def edits(lines: Sequence[bytes]) -> Iterator[FileEdit]:
    """Yield what the calls on these lines, a turn's or a subagent's, did to files, in the order of their results.

    Calls that failed, were refused or have no result are left out.
    """
    pending: dict[str, tuple[int, Line, dict[str, Any]]] = {}
    for number, raw in enumerate(lines, start=1):
        if _EDIT_CALL.search(raw):
            line = make(raw)
            for block in tool_calls(line):
                if kind(string(block, "name")) == "write":
                    pending.setdefault(string(block, "id"), (number, line, block))
        elif pending and _RESULT in raw:
            line = make(raw)
            answers = tool_results(line)
            for answer in answers:
                call = pending.pop(string(answer, "tool_use_id"), None)
                if call is not None and answer.get("is_error") is not True:
                    noted = line.data.get("toolUseResult") if line.data and len(answers) == 1 else None
                    yield from _edit(*call, noted if isinstance(noted, dict) else {}, line.time)


def _edit(number: int, line: Line, block: dict[str, Any], noted: Mapping[str, Any], time: str) -> Iterator[FileEdit]:
    """Yield what a call did; `noted` is what the client noted of its result."""
    (tool, file), given = called(block), block.get("input")
    if not file or "\0" in file or not isinstance(given, dict):
        return
    if tool == "Write":
        content = string(given, "content")
        changes = [(_overwritten(content, noted), content)]
    elif tool == "NotebookEdit":
        changes = _cell_lines(string(given, "new_source")) if given.get("edit_mode") != "delete" else []
    else:
        many = given.get("edits") if tool == "MultiEdit" else [given]
        original = noted.get("originalFile")
        changes = _replaced(many if isinstance(many, list) else [], original if isinstance(original, str) else None)
    if changes:
        where = os.path.normpath(os.path.join(line.cwd, file))  # noqa: PTH118 - as the agent has it
        own = string(block, "id")
        yield FileEdit(own, where, number, time or line.time, line.git_branch, tuple(changes), tool == "Write")


def _replaced(edits: Sequence[object], text: str | None) -> list[tuple[str | None, str]]:
    """Return each text that the edits replace and the new one: as whole lines as long as the file's `text` is known."""
    changes: list[tuple[str | None, str]] = []
    for edit in (each for each in edits if isinstance(each, Mapping)):
        old, new = edit.get("old_string"), edit.get("new_string")
        if not isinstance(old, str) or not isinstance(new, str):
            continue
        if not old or text is None or old not in text:
            changes.append((old, new))
            text = None if old else new
            continue
        everywhere = edit.get("replace_all") is True
        changes += _widened(text, old, new, everywhere=everywhere)
        text = text.replace(old, new, -1 if everywhere else 1)
    return changes


def _widened(text: str, old: str, new: str, *, everywhere: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text in which `old` is replaced, and what they become."""
    place = text.find(old)
    while place >= 0:
        first = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place + len(old))
        lines = text[first : end if end >= 0 else len(text)]
        if not everywhere:
            yield lines, lines[: place - first] + new + lines[place - first + len(old) :]
            return
        yield lines, lines.replace(old, new)
        place = text.find(old, first + len(lines))


def _overwritten(content: str, noted: Mapping[str, Any]) -> str | None:
    """Return what a file held that was written as a whole, or None if that is unknown.

    From 2.1.205 on the client does not note the text of a large file; then its patch says which lines are new. That is
    made to be shown, with two spaces for a tab, so the lines that went out are not exact.
    """
    if isinstance(noted.get("originalFile"), str):
        return str(noted["originalFile"])
    if noted.get("type") == "create":
        return ""
    hunks, lines = noted.get("structuredPatch"), content.split("\n")
    if not isinstance(hunks, list) or not hunks:
        return None
    before, end = list[str](), 0
    for hunk in hunks:
        shown = hunk.get("lines") if isinstance(hunk, dict) else None
        start = plausible_count(hunk.get("newStart")) - 1 if isinstance(hunk, dict) else -1
        if not isinstance(shown, list) or not end <= start <= len(lines):
            return None
        before += lines[end:start]
        end = start
        for line in shown:
            if str(line).startswith("-"):
                before.append(str(line)[1:])
            elif str(line).startswith("+"):
                end += 1
            elif str(line).startswith(" "):
                before += lines[end : end + 1]
                end += 1
    return "\n".join(before + lines[end:])


def _cell_lines(source: str) -> list[tuple[str | None, str]]:
    """Return the lines of a notebook's file that hold a cell's source: as the client writes it, one string, the last
    value of its cell or not; and as Jupyter does, a string for each line."""
    whole = f'   "source": {json.dumps(source, ensure_ascii=False)}'
    parts = [f"    {json.dumps(part, ensure_ascii=False)}" for part in source.splitlines(keepends=True)]
    return [("", whole), ("", f"{whole},"), ("", ",\n".join(parts))] if source else []


def why_not(call: Call) -> str:
    """Return why a call cannot be compared with what it does now, or ""."""
    if call.cell.ok is False and call.output.startswith(_NEVER_RAN):
        return "it did not run: the client refused it"
    if call.input.get("run_in_background") is True:
        return "it ran in the background"
    if call.tool == "PowerShell":
        return "there is no PowerShell here"
    if call.output.startswith(_UNCHANGED) and call.tool == "Read":
        return "the client printed no lines, because it had printed them before"
    return ""


def command(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the command that a call of a shell runs, "" if there is none; it names no folder."""
    return string(arguments, "command"), ""


def output(text: str) -> str:
    """Return what a tool printed, without what the client adds to it."""
    text = _EXIT_CODE_LINE.sub("", _REMINDER.sub("\n", text).strip("\n").rstrip())
    text = _CWD_RESET_LINE.sub("", text).strip("\n")
    return "" if text.strip() in _NO_OUTPUT_TEXTS else text


def kept_ends(text: str) -> tuple[str, str] | None:
    """Return the beginning and the end that the client kept of an output that was too long; None for any other."""
    preview = _PERSISTED_PREVIEW.match(text)
    if preview:
        return preview[1].rstrip(), ""
    parts = _TRUNCATION_NOTE.split(text)
    return (parts[0], parts[1]) if len(parts) == 2 else None


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of a file, and their numbers, in the result of a tool for reading."""
    return [(int(match[1]), match[2]) for match in _NUMBERED_LINE.finditer(output(text))]


def lines(arguments: Mapping[str, Any], text: str) -> list[tuple[int, str]]:
    """Return the lines of a file that a tool for reading is asked for, by number from 1."""
    first = plausible_count(arguments.get("offset")) or 1
    most = plausible_count(arguments.get("limit")) or _MOST_LINES
    every = text.removesuffix("\n").split("\n") if text else []
    return list(enumerate(every[first - 1 : first - 1 + most], start=first))


def sources(tool: str, text: str) -> list[str] | None:
    """Return the cells of a file, where the tool reads these and not its lines."""
    return [_source(cell) for cell in _cells(_notebook(text))] if tool == "NotebookRead" else None


def written(call: Call, before: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return what a tool for writing makes of its file's text, None if there is none. Raises DeclinedError where it
    does not, FileNotFoundError where the file must be there."""
    return {file: _written(call.tool, call.input, text) for file, text in before.items()}


def _written(tool: str, arguments: Mapping[str, Any], before: str | None) -> str:
    if tool == "Write":
        return said(arguments, "content")
    if tool == "NotebookEdit":
        return _with_cell(existing(before), arguments)
    return edited(before, arguments.get("edits") if tool == "MultiEdit" else [arguments])


def _with_cell(text: str, arguments: Mapping[str, Any]) -> str:
    book = _notebook(text)
    cells = _cells(book)
    mode, name = arguments.get("edit_mode", "replace"), arguments.get("cell_id")
    place = next((n for n, cell in enumerate(cells) if name in (cell.get("id"), f"cell-{n}")), None)
    if place is None and not (mode == "insert" and name is None):
        raise DeclinedError("the notebook has no such cell")
    source = said(arguments, "new_source") if mode != "delete" else ""
    if mode == "delete" and place is not None:
        del cells[place]
    elif mode == "insert":
        kind = arguments.get("cell_type", "code")
        more: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
        cells.insert(0 if place is None else place + 1, {"cell_type": kind, "metadata": {}, "source": source, **more})
    elif place is not None:
        cells[place]["source"] = source
        if cells[place].get("cell_type") == "code":
            cells[place] |= {"outputs": [], "execution_count": None}
    return json.dumps(book, indent=1, ensure_ascii=False)


def _notebook(text: str) -> dict[str, Any]:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        notebook = None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise DeclinedError("it is not a notebook")
    return notebook


def _cells(book: Mapping[str, Any]) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = book["cells"]
    if not all(isinstance(cell, dict) for cell in cells):
        raise DeclinedError("it is not a notebook")
    return cells


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)
