"""The tools of Codex: what a shell printed, and what a patch does to files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sessgit.agents.codex import cells
from sessgit.agents.codex.cells import (
    arguments,
    call_id,
    command_of,
    exit_code,
    folder_of,
    patch_of,
    patched_files,
    place,
)
from sessgit.agents.codex.lines import CALLS, ITEM, make
from sessgit.agents.values import DeclinedError, FileEdit
from sessgit.model.conversation.content import Call

_HEADER = re.compile(
    r"\A(?:(?:Command|Chunk ID|Wall time|Exit code|Process [a-z ]+|Original token count|Total output lines)\b.*\n)+"
    r"Output:\n?"
)
_TRUNCATION_NOTE = re.compile(r"\n?…\d+ (?:tokens|chars|lines) truncated…\n?")
_MARKER = b"*** Begin Patch"


class FilePatch(NamedTuple):
    """What a patch does to a file: the change, Add, Update or Delete, the path, the new path of a file that moves or
    "", and the hunks of an update: the text that each is below, and the lines that it replaces and puts there."""

    change: str
    path: str
    moved: str
    hunks: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        """Return the whole text of a file that is added."""
        return "".join(f"{line}\n" for _, _, new in self.hunks for line in new)


def file_patches(patch: str) -> Iterator[FilePatch]:
    """Yield what a patch does to each file."""
    for block in re.split(r"^\*\*\* (?=(?:Add|Update|Delete) File: )", patch, flags=re.MULTILINE)[1:]:
        head, *rest = block.split("\n")
        change, _, path = head.partition(" File: ")
        moved, hunks = "", list[tuple[str, list[str], list[str]]]()
        for line in rest:
            if line.startswith("*** Move to: "):
                moved = line.removeprefix("*** Move to: ").strip()
            elif line.startswith("@@"):
                hunks.append((line[2:].strip(), [], []))
            elif line[:1] in ("+", "-", " ") or (not line and change == "Update"):
                if not hunks:
                    hunks.append(("", [], []))
                _, old, new = hunks[-1]
                old += [line[1:]] if line[:1] != "+" else []
                new += [line[1:]] if line[:1] != "-" else []
        while hunks and hunks[-1][1:] and hunks[-1][1][-1:] == hunks[-1][2][-1:] == [""]:
            hunks[-1][1].pop()
            hunks[-1][2].pop()  # the newline behind the patch
        yield FilePatch(change, path.strip(), moved, tuple((at, tuple(old), tuple(new)) for at, old, new in hunks))


def edits(lines: Sequence[bytes]) -> Iterator[FileEdit]:
    """Yield what the patches on these lines, a turn's, did to files, in the order of their results. Patches that failed
    or have no result are left out."""
    pending = dict[str, tuple[int, dict[str, Any], str]]()
    folder = ""
    for number, raw in enumerate(lines, start=1):
        if not (b'"turn_context"' in raw or _MARKER in raw or (pending and b"_output" in raw)):
            continue
        line = make(raw)
        folder = line.cwd or folder
        if line.type == ITEM and line.kind in CALLS and patch_of(arguments(line)):
            given = arguments(line)
            pending.setdefault(call_id(line), (number, given, place(folder, folder_of(given))))
        elif line.is_result and call_id(line) in pending:
            at, given, root = pending.pop(call_id(line))
            if not exit_code(cells.output(line)):
                yield from _edits(FileEdit(call_id(line), root, at, line.time, "", ()), patch_of(given))


def _edits(edit: FileEdit, patch: str) -> Iterator[FileEdit]:
    for each in file_patches(patch):
        is_whole = each.change == "Add"
        changes = [("\n".join(old), "\n".join(new)) for _, old, new in each.hunks]
        if changes and each.change != "Delete":
            file = place(edit.file, each.moved or each.path)
            yield FileEdit(edit.call, file, edit.line, edit.time, "", tuple(changes), is_whole)


def why_not(call: Call) -> str:
    """Return why a call cannot be compared with what it does now, or ""."""
    changes = [change for _, change in patched_files(call.input)]
    if changes and changes not in (["Add"], ["Update"]):
        return "it patches several files, or moves or deletes one"
    if call.tool == "write_stdin" or "\nProcess running with session ID " in f"\n{call.output}":
        return "it ran in the background"
    return ""


def command(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the command that a call of a shell runs, "" if there is none, and the folder that it names, or ""."""
    return command_of(arguments), folder_of(arguments)


def output(text: str) -> str:
    """Return what a command printed, without what the client says before it."""
    while header := _HEADER.match(text):
        text = text[header.end() :]
    return text.strip("\n").rstrip()


def kept_ends(text: str) -> tuple[str, str] | None:
    """Return the beginning and the end that the client kept of an output that was too long; None for any other."""
    note = _TRUNCATION_NOTE.search(text)
    return (text[: note.start()], text[note.end() :]) if note else None


def written(tool: str, arguments: Mapping[str, Any], before: str | None) -> str:
    """Return what a patch of one file makes of its text, None if there is none. Raises DeclinedError where it does not
    apply, FileNotFoundError where the file must be there."""
    (patch,) = file_patches(patch_of(arguments))
    if patch.change == "Add":
        return patch.text
    if before is None:
        raise FileNotFoundError(patch.path)
    text, at = before.split("\n"), 0
    for below, old, new in patch.hunks:
        if below:
            at = _find(text, (below,), at) + 1
        at = _find(text, old, at) if old else len(text) - (text[-1:] == [""])
        text[at : at + len(old)] = new
        at += len(new)
    return "\n".join(text)


def _find(text: Sequence[str], lines: Sequence[str], start: int) -> int:
    """Return where lines are in a text; white space at their ends does not count, as for the client."""
    wanted = [line.rstrip() for line in lines]
    for at in range(start, len(text) - len(lines) + 1):
        if [line.rstrip() for line in text[at : at + len(lines)]] == wanted:
            return at
    raise DeclinedError("the text to replace is not in the file")


# There are no tools for reading: models read by shell commands.


def numbered_lines(text: str) -> list[tuple[int, str]]:
    return []


def lines(arguments: Mapping[str, Any], text: str) -> list[tuple[int, str]]:
    return []


def sources(tool: str, text: str) -> list[str] | None:
    return None
