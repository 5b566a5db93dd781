"""The tools of Codex: what a shell printed, and what a patch does to files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sessgit.agents.codex import cells
from sessgit.agents.codex.cells import (
    arguments,
    call_id,
    command_of,
    folder_of,
    patch_folder,
    patch_of,
    place,
    sections,
    succeeded,
)
from sessgit.agents.codex.lines import CALLS, ITEM, make
from sessgit.agents.values import DeclinedError, FileEdit, existing
from sessgit.model.conversation.content import Call

_HEADER = re.compile(
    r"\A(?:Command: (?s:.*?)\n(?=Chunk ID: ))?"
    r"(?:(?:Chunk ID|Wall time|Exit code|Process [a-z ]+|Original token count|Total output lines)\b.*\n)+"
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
    for change, path, moved, lines in sections(patch):
        hunks = list[tuple[str, list[str], list[str]]]()
        for line in lines:
            if line.startswith("@@"):
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
        yield FilePatch(change, path, moved, tuple((at, tuple(old), tuple(new)) for at, old, new in hunks))


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
            pending.setdefault(call_id(line), (number, given, patch_folder(given, folder)))
        elif line.is_result and call_id(line) in pending:
            at, given, root = pending.pop(call_id(line))
            if succeeded(cells.output(line), cells.PATCH):
                yield from _edits(FileEdit(call_id(line), root, at, line.time, "", ()), patch_of(given))


def _edits(edit: FileEdit, patch: str) -> Iterator[FileEdit]:
    for each in file_patches(patch):
        changes: list[tuple[str | None, str]] = [("\n".join(old), "\n".join(new)) for _, old, new in each.hunks]
        if each.change == "Delete" or each.moved:
            yield replace(edit, file=place(edit.file, each.path), changes=((None, ""),), is_whole=True)
        if changes and each.change != "Delete":
            file = place(edit.file, each.moved or each.path)
            yield replace(edit, file=file, changes=tuple(changes), is_whole=each.change == "Add")


def why_not(call: Call) -> str:
    """Return why a call cannot be compared with what it does now, or ""."""
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


def written(call: Call, before: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the text of each file that a patch changes, None of one that it deletes or moves; `before` has those of
    the call's files, None where there is none. Raises DeclinedError where the patch does not apply, FileNotFoundError
    where a file must be there."""
    after, patches = dict[str, str | None](), list(file_patches(patch_of(call.input)))
    if len(patches) + sum(bool(patch.moved) for patch in patches) != len(before):
        raise DeclinedError("it patches a file twice")
    files = iter(before)
    for patch in patches:
        path = next(files)
        if patch.change == "Add":
            after[path] = patch.text
            continue
        text = existing(before[path])
        after[path] = _updated(text, patch) if patch.change == "Update" and not patch.moved else None
        if patch.moved:
            after[next(files)] = _updated(text, patch)
    return after


def _updated(before: str, patch: FilePatch) -> str:
    if not patch.hunks:
        raise DeclinedError(f"the patch of {patch.path} is empty")
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
