"""A turn's lines as what was said and done, for people and for exports."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessgit.agents.claude.cells import called, describe, display_prompt, message_key, message_of, time_of
from sessgit.agents.claude.lines import Line, blocks
from sessgit.model import ids
from sessgit.model.content import Call, Change, Piece, Speaker, Words
from sessgit.model.turn import Cell, Tokens, Turn, count

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,3})\b")
_COMMANDS = ("Bash", "BashOutput", "PowerShell")
_REPLACED = "[redacted:"
_HUNK = ("oldStart", "oldLines", "newStart", "newLines")
_MOST_LINES = 20_000
"""A diff of longer texts is not computed: it would take minutes. The client's own is shown whatever its length."""


def pieces(body: Sequence[Line]) -> list[Piece]:
    """What a turn's body says, in order; the first piece is the prompt, if that has text or images.

    Ordinals are those of `describe(body)`.
    """
    return told(body)[1]


def told(body: Sequence[Line]) -> tuple[Turn, list[Piece]]:
    """The turn that a body says, and its pieces; a body has one line at least."""
    turn = describe(body)
    reader = _Reader(turn.prompt_uuid, turn.cells)
    for number, line in enumerate(body, start=1):
        if line.data is not None and not line.data.get("isSidechain"):
            reader.take(number, line)
    return turn, reader.out


def tokens(body: Sequence[Line], cell: Cell) -> Tokens:
    """What a message of the model used; nothing for a tool call."""
    if cell.type != "llm_call":
        return Tokens()
    return describe([body[number - 1] for number in cell.lines]).total


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


class _Reader:
    def __init__(self, key: str, cells: Sequence[Cell]) -> None:
        self.key = key
        self.cells = {cell.id: (ordinal, cell) for ordinal, cell in enumerate(cells, start=1)}
        self.out: list[Piece] = []
        self._calls: dict[str, int] = {}
        """The place in `out` of each call, by the agent's id for it."""

    def take(self, number: int, line: Line) -> None:
        if line.type == "assistant":
            self._answer(number, line)
        elif line.type == "user":
            self._user(number, line)
        elif line.type == "attachment":
            self._attachment(number, line)

    def _answer(self, number: int, line: Line) -> None:
        found = self.cells.get(ids.cell_id(self.key, message_key(line, number)))
        ordinal = found[0] if found else 0
        time = time_of(line)
        for block in blocks(line):
            kind = block.get("type")
            if kind in ("text", "thinking") and isinstance(block.get(kind), str) and block[kind].strip():
                self.out.append(Words("model", block[kind], time, kind == "thinking", ordinal, number))
            elif kind == "tool_use" and isinstance(block.get("id"), str):
                self._call(number, time, block)

    def _call(self, number: int, time: str, block: dict[str, Any]) -> None:
        found = self.cells.get(ids.cell_id(self.key, block["id"]))
        if found is None or block["id"] in self._calls:
            return
        place, cell = found
        given = block.get("input")
        self._calls[block["id"]] = len(self.out)
        shown = given if isinstance(given, dict) else {}
        self.out.append(Call(cell, place, shown, file=called(block)[1], time=time, line=number))

    def _user(self, number: int, line: Line) -> None:
        results = [block for block in blocks(line) if block.get("type") == "tool_result"]
        for block in results:
            self._result(number, line, block, alone=len(results) == 1)
        text, images = text_of(message_of(line).get("content"))
        if results or not (text.strip() or images):
            return
        by: Speaker = "person" if number == 1 else "client"
        self.out.append(Words(by, display_prompt(text), time_of(line), line=number, images=images))

    def _result(self, number: int, line: Line, block: dict[str, Any], *, alone: bool) -> None:
        place = self._calls.get(str(block.get("tool_use_id")))
        call = self.out[place] if place is not None else None
        if place is None or not isinstance(call, Call) or call.result_line:
            return
        output, images = text_of(block.get("content"))
        result = line.data.get("toolUseResult") if alone and line.data else None
        self.out[place] = replace(
            call,
            output=output,
            result=result,
            images=images,
            changes=tuple(_changes(call, result)) if call.cell.ok else (),
            exit_code=_exit_code(call, output, result),
            ended=time_of(line),
            result_line=number,
        )

    def _attachment(self, number: int, line: Line) -> None:
        """A prompt that was given while the agent was at work; the other kinds are the client's housekeeping."""
        attached = line.data.get("attachment") if line.data else None
        if isinstance(attached, dict) and attached.get("type") == "queued_command":
            text, images = text_of(attached.get("prompt"))
            by: Speaker = "client" if attached.get("commandMode") == "task-notification" else "person"
            if text.strip() or images:
                self.out.append(Words(by, display_prompt(text), time_of(line), line=number, images=images))


def _exit_code(call: Call, output: str, result: object) -> int | None:
    if call.tool not in _COMMANDS:
        return None
    noted = result if isinstance(result, dict) else {}
    if isinstance(noted.get("exitCode"), int):
        return int(noted["exitCode"])
    match = _EXIT_CODE.match(output)
    if match:
        return int(match[1])
    # These ended otherwise than with 0, or not yet, and the client calls them no error.
    unknown = any(noted.get(key) for key in ("returnCodeInterpretation", "backgroundTaskId", "interrupted"))
    return 0 if call.cell.ok and not unknown and call.tool != "BashOutput" else None


def _changes(call: Call, result: object) -> Iterator[Change]:
    """What a call changed: as the client noted it, else as its arguments say."""
    if not call.file:
        return
    noted = result.get("structuredPatch") if isinstance(result, dict) else None
    lines = [*_noted(noted)] if isinstance(noted, list) else []
    if not lines:
        for before, after in _edits(call):
            lines += _diff(before, after)
    if lines:
        yield Change(call.file, tuple(lines))


def _noted(hunks: Sequence[object]) -> Iterator[str]:
    for hunk in hunks:
        if isinstance(hunk, dict) and isinstance(hunk.get("lines"), list):
            yield "@@ -{},{} +{},{} @@".format(*(count(hunk.get(key)) for key in _HUNK))
            yield from (line for line in hunk["lines"] if isinstance(line, str))


def _edits(call: Call) -> Iterator[tuple[str, str]]:
    """Each replaced text and what took its place, from the arguments of the tools that change files."""
    if call.tool == "Write" and isinstance(call.input.get("content"), str):
        yield "", call.input["content"]
        return
    if call.tool == "NotebookEdit":
        new = call.input.get("new_source")
        yield "", new if isinstance(new, str) and call.input.get("edit_mode") != "delete" else ""
        return
    many = call.input.get("edits")
    for edit in many if isinstance(many, list) else [call.input]:
        if isinstance(edit, Mapping) and isinstance(edit.get("new_string"), str):
            before = edit.get("old_string")
            yield before if isinstance(before, str) else "", edit["new_string"]


def content_after(call: Call, before: str | None) -> str | None:
    """The whole text of the call's file after the call, where the lines tell it; `before` is what it was before.

    A text in which a secret was replaced is not the file's.
    """
    after = _content_after(call, before)
    return None if after is not None and _REPLACED in after else after


def _content_after(call: Call, before: str | None) -> str | None:
    noted = call.result if isinstance(call.result, dict) else {}
    if not call.cell.ok:
        return before
    if call.tool == "Write":
        written = call.input.get("content")
        return written if isinstance(written, str) else None
    if call.tool == "Read":
        whole = _whole(noted.get("file"))
        return before if whole is None else whole
    if call.tool not in ("Edit", "MultiEdit"):
        return None if call.tool == "NotebookEdit" else before
    original = next((noted[k] for k in ("originalFile", "originalFileContents") if isinstance(noted.get(k), str)), None)
    start = before if original is None else original
    if start is None:
        return None
    if noted.get("userModified"):
        return _patched(start, noted.get("structuredPatch"))
    return _edited(start, call)


def _whole(file: object) -> str | None:
    """The content of a file that was read from its first line to its last."""
    if not isinstance(file, dict) or not isinstance(file.get("content"), str) or file.get("startLine") != 1:
        return None
    return str(file["content"]) if file.get("numLines") == file.get("totalLines") is not None else None


def _edited(text: str, call: Call) -> str | None:
    many = call.input.get("edits")
    for edit in many if isinstance(many, list) else [call.input]:
        old, new = (edit.get(k) for k in ("old_string", "new_string")) if isinstance(edit, Mapping) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str) or (old not in text if old else bool(text)):
            return None
        text = text.replace(old, new, -1 if edit.get("replace_all") is True else 1) if old else new
    return text


def _patched(text: str, hunks: object) -> str | None:
    """The text with a noted patch applied, or None where the patch does not fit."""
    lines, out, done = text.split("\n"), list[str](), 0
    for hunk in hunks if isinstance(hunks, list) else ():
        noted = hunk.get("lines") if isinstance(hunk, dict) else None
        if not isinstance(noted, list) or not all(isinstance(line, str) for line in noted):
            return None
        start = max(0, count(hunk.get("oldStart")) - 1)
        old = [line[1:] for line in noted if line[:1] in (" ", "-")]
        if start < done or lines[start : start + len(old)] != old:
            return None
        out += [*lines[done:start], *(line[1:] for line in noted if line[:1] in (" ", "+"))]
        done = start + len(old)
    return "\n".join([*out, *lines[done:]]) if hunks else None


def _diff(before: str, after: str) -> list[str]:
    if after.endswith("\n") and (not before or before.endswith("\n")):
        before, after = before.removesuffix("\n"), after.removesuffix("\n")
    a, b = before.split("\n") if before else [], after.split("\n") if after else []
    if not a and not b:
        return []
    if not a or not b or len(a) + len(b) > _MOST_LINES:
        heading = f"@@ -{min(1, len(a))},{len(a)} +{min(1, len(b))},{len(b)} @@"
        return [heading, *(f"-{line}" for line in a), *(f"+{line}" for line in b)]
    return list(difflib.unified_diff(a, b, n=3, lineterm=""))[2:]


def arguments(call: Call) -> str:
    """The one argument that tells best what a call is about, on one line: a command, a file, a pattern, a question."""
    for key in ("command", "file_path", "notebook_path", "pattern", "query", "url", "description", "prompt", "path"):
        value = call.input.get(key)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    return json.dumps(call.input, ensure_ascii=False) if call.input else ""
