"""The tools of the client: what kind they are, what their arguments name, and what those for files do."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from typing import Any

from sessgit.agents.values import DeclinedError, ToolKind
from sessgit.model.conversation.content import Call

_TOOLS: Mapping[str, ToolKind] = {
    "Bash": "shell",
    "Read": "read", "NotebookRead": "read", "LS": "search", "Glob": "search", "Grep": "search",
    "Write": "write", "Edit": "write", "MultiEdit": "write", "NotebookEdit": "write",
}  # fmt: skip
_PATHS = ("file_path", "notebook_path", "path")
_UNCHANGED = ("File unchanged since", "<system-reminder>File unchanged since", "Wasted call")
_NEVER_RAN = (
    "The user doesn't want to", "<tool_use_error>File has not been read", "File has not been read",
    "<tool_use_error>File has been modified since", "File has been modified since",
    "<tool_use_error>InputValidationError", "InputValidationError",
    "Permission to use", "<tool_use_error>Cancelled", "[Request interrupted",
    "<tool_use_error>No such tool", "Claude requested permissions", "This command requires approval", "PreToolUse:",
)  # fmt: skip
"""How results begin of calls that the client did not let run."""


def kind(tool: str) -> ToolKind | None:
    """What a tool does, or None where that cannot be done again."""
    return _TOOLS.get(tool)


def path(arguments: Mapping[str, Any]) -> str:
    """The file or folder that a call names, or ``""``."""
    return next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), "")


def was_refused(call: Call) -> bool:
    """Whether the client did not let the call run."""
    return call.cell.ok is False and call.output.startswith(_NEVER_RAN)


def why_not(call: Call) -> str:
    """Why a call cannot be compared with what it does now, or ``""``."""
    if call.input.get("run_in_background") is True:
        return "it ran in the background"
    if call.output.startswith(_UNCHANGED) and call.tool == "Read":
        return "the client printed no lines, because it had printed them before"
    return ""


def sources(tool: str, text: str) -> list[str] | None:
    """The cells of a file, where the tool reads these and not its lines."""
    return [_source(cell) for cell in _cells(_notebook(text))] if tool == "NotebookRead" else None


def written(tool: str, arguments: Mapping[str, Any], before: str | None) -> str:
    """What a tool for writing makes of a file's text, None where there is none. Raises DeclinedError where it does not,
    FileNotFoundError where the file must be there."""
    if tool == "Write":
        return _said(arguments, "content")
    if tool == "NotebookEdit":
        return _with_cell(_there(before), arguments)
    return _edited(before, arguments.get("edits") if tool == "MultiEdit" else [arguments])


def _edited(before: str | None, edits: Any) -> str:
    if not isinstance(edits, list) or not all(isinstance(edit, Mapping) for edit in edits):
        raise DeclinedError("its arguments contain no edits")
    text = before
    for edit in edits:
        old, new = _said(edit, "old_string"), _said(edit, "new_string")
        if not old:
            if text:
                raise DeclinedError("the file already exists, and the text to replace is empty")
            text = new
            continue
        text = _there(text)
        found = text.count(old)
        if not found:
            raise DeclinedError("the text to replace is not in the file")
        everywhere = edit.get("replace_all") is True
        if found > 1 and not everywhere:
            raise DeclinedError(f"the text to replace occurs {found} times in the file")
        text = text.replace(old, new)
    return text or ""


def _with_cell(text: str, given: Mapping[str, Any]) -> str:
    book = _notebook(text)
    cells = _cells(book)
    mode, name = given.get("edit_mode", "replace"), given.get("cell_id")
    place = next((n for n, cell in enumerate(cells) if name in (cell.get("id"), f"cell-{n}")), None)
    if place is None and not (mode == "insert" and name is None):
        raise DeclinedError("the notebook has no such cell")
    source = _said(given, "new_source") if mode != "delete" else ""
    if mode == "delete" and place is not None:
        del cells[place]
    elif mode == "insert":
        kind = given.get("cell_type", "code")
        more: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
        cells.insert(0 if place is None else place + 1, {"cell_type": kind, "metadata": {}, "source": source, **more})
    elif place is not None:
        cells[place]["source"] = source
        if cells[place].get("cell_type") == "code":
            cells[place] |= {"outputs": [], "execution_count": None}
    return json.dumps(book, indent=1, ensure_ascii=False)


def _notebook(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise DeclinedError("it is not a notebook")
    return found


def _cells(book: Mapping[str, Any]) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = book["cells"]
    if not all(isinstance(cell, dict) for cell in cells):
        raise DeclinedError("it is not a notebook")
    return cells


def _source(cell: Mapping[str, Any]) -> str:
    found = cell.get("source", "")
    return "".join(map(str, found)) if isinstance(found, list) else str(found)


def _said(given: Mapping[str, Any], key: str) -> str:
    found = given.get(key)
    if not isinstance(found, str):
        raise DeclinedError(f"its arguments have no {key}")
    return found


def _there(text: str | None) -> str:
    if text is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return text
