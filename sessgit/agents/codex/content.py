"""A turn of Codex as what was said and done, for people and for exports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessgit.agents.codex.cells import (
    arguments,
    call_id,
    command_of,
    describe,
    exit_code,
    named_files,
    output,
    patch_folder,
    patch_of,
    patched_files,
    place,
    sections,
    tool,
)
from sessgit.agents.codex.lines import CALLS, COMPACTED, ITEM, CodexLine, content_text, prompt_text
from sessgit.agents.line import Line
from sessgit.agents.values import Relation, Said
from sessgit.model import canonical, ids
from sessgit.model.conversation.content import Call, Change, Piece, Words
from sessgit.model.conversation.turn import Cell, Turn
from sessgit.model.stored_fields import string

_PATCH_ARGUMENTS = ("input", "cmd", "command")
"""The arguments that can hold a patch."""


def parse_turn(body: Sequence[Line]) -> tuple[Turn, list[Piece]]:
    """Return the turn that a body says, and its pieces in order; a body has one line at least."""
    turn = describe(body)
    cells = {cell.id: (ordinal, cell) for ordinal, cell in enumerate(turn.cells, start=1)}
    of_line = {
        number: ordinal for ordinal, cell in enumerate(turn.cells, 1) if cell.type != "tool" for number in cell.lines
    }
    pieces, folder = list[Piece](), ""
    for number, line in enumerate(body, start=1):
        if not isinstance(line, CodexLine) or line.data is None:
            continue
        folder = line.cwd or folder
        if line.is_spoken_prompt and prompt_text(line).strip():
            pieces.append(Words("person", prompt_text(line), line.time, line=number, images=_images(line)))
        elif line.type == COMPACTED and (summary := string(line.payload, "message")):
            pieces.append(Words("client", summary, line.time, line=number))
        elif line.type == ITEM and line.kind in CALLS:
            ordinal, cell = cells.get(ids.cell_id(turn.prompt_uuid, call_id(line)), (0, None))
            if cell is not None and cell.lines[0] == number:
                pieces.append(_call(body, line, ordinal, cell, folder))
        elif line.is_work and (text := _words(line)):
            pieces.append(Words("model", text, line.time, line.kind == "reasoning", of_line.get(number, 0), number))
    return turn, pieces


def _words(line: CodexLine) -> str:
    """Return what the model says on a line, or thinks: of that only a summary is there."""
    return content_text(line.payload.get("summary" if line.kind == "reasoning" else "content")).strip()


def _images(line: CodexLine) -> tuple[str, ...]:
    """Return the images of a prompt: data URLs are in the transcript, other addresses and files are not."""
    lists = (line.payload.get(key) for key in ("images", "local_images"))
    images = [one for many in lists if isinstance(many, list) for one in many]
    return tuple(one.partition(",")[2] if str(one).startswith("data:image/") else "" for one in images)


def _call(body: Sequence[Line], line: CodexLine, ordinal: int, cell: Cell, folder: str) -> Call:
    given = arguments(line)
    files = tuple(dict.fromkeys(path for path, _ in patched_files(given, folder)))
    number, *results = cell.lines
    call = Call(cell, ordinal, given, files=files, about=_about(given, files), time=line.time, line=number)
    if not results or not isinstance(answer := body[results[0] - 1], CodexLine):
        return call
    text = output(answer)
    changes = tuple(_changes(patch_of(given), patch_folder(given, folder))) if cell.ok else ()
    return replace(
        call, output=text, changes=changes, in_changes=_PATCH_ARGUMENTS if changes else (),
        exit_code=exit_code(text, call.tool), ended=answer.time, result_line=results[0],
    )  # fmt: skip


def _about(given: Mapping[str, Any], files: Sequence[str]) -> str:
    """Return what a call is about, on one line: the file of a patch, or its files as the patch names them, a command,
    else its arguments."""
    named = files if len(files) == 1 else [path for path, _ in named_files(patch_of(given))]
    about = ", ".join(named) or command_of(given) or json.dumps(canonical.bounded(dict(given)), ensure_ascii=False)
    return " ".join(about.split())


def _changes(patch: str, folder: str) -> Iterator[Change]:
    """Yield what a patch, whose paths are relative to the folder, did to each of its files."""
    for change, named, moved, lines in sections(patch):
        path, diff = place(folder, named), [line for line in lines if line[:1] in ("+", "-", " ", "@")]
        if change == "Delete":
            diff = ["deleted file"]
        elif change == "Update" and not "".join(diff[:1]).startswith("@"):
            diff = ["@@", *diff]
        if moved:
            yield Change(path, (f"rename to {moved}",))
            path, diff = place(folder, moved), [f"rename from {named}", *diff]
        yield Change(path, tuple(diff))


def texts(line: Line, number: int) -> Iterator[Said]:
    """Yield the texts of the `number`th line of a turn's body, from 1, in their order."""
    if not isinstance(line, CodexLine) or line.data is None:
        return
    if line.is_spoken_prompt:
        yield Said("prompt", prompt_text(line))
    elif line.type == COMPACTED:
        yield Said("notice", string(line.payload, "message"))
    elif line.is_result:
        yield Said("tool", canonical.without_sequences(output(line)), call_id(line))
    elif line.type == ITEM and line.kind in CALLS:
        given = arguments(line)
        yield Said("tool", patch_of(given) or command_of(given) or json.dumps(given), call_id(line), tool(line))
    elif line.is_work and (text := _words(line)):
        yield Said("thinking" if line.kind == "reasoning" else "answer", text)


def content_after(call: Call, file: str, before: str | None) -> str | None:
    """Return the whole text of a file after a patch that adds it, the same text after any other call but a patch, and
    None where the patch changes it: a patch names no line numbers."""
    if not call.changes or not call.cell.ok:
        return before
    diffs = [change.diff for change in call.changes if change.path == file]
    is_added = len(diffs) == 1 and all(line.startswith("+") for line in diffs[0])
    return "".join(f"{line[1:]}\n" for line in diffs[0]) if is_added else None


def left_by(call: Call, file: str) -> tuple[str | None, list[str]]:
    """Return the whole text of the file after a patch that adds it; of others the client notes nothing."""
    return content_after(call, file, None), []


def relation(a: Sequence[Line], b: Sequence[Line]) -> Relation:
    """Return how the bodies of two turns with the same id are related; a copy that the client makes has other times."""
    left, right = ([_without_time(line) for line in body] for body in (a, b))
    shorter = min(len(left), len(right))
    return "same" if left == right else "part" if left[:shorter] == right[:shorter] else "different"


def _without_time(line: Line) -> object:
    return (
        {key: value for key, value in line.data.items() if key not in ("timestamp", "ordinal")}
        if line.data
        else line.raw
    )


def comparable_parts(body: Sequence[Line]) -> Mapping[str, object]:
    """Return what a turn asks, what the model answers, and its calls with their results."""
    turn, pieces = parse_turn(body)
    calls = [(piece.tool, dict(piece.input), _stable(piece.output)) for piece in pieces if isinstance(piece, Call)]
    return {"prompt": turn.prompt, "answer": turn.answer, "calls": calls}


def _stable(text: str) -> str:
    """Return the output of a tool without what differs each time: the client's own ids and times."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(("Chunk ID: ", "Wall time: ")))
