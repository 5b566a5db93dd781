"""Files of the sandbox read and written by the tools for files, as the client has them.

Nothing outside is reached by any path: links are resolved, and the way to where they lead is gone step by step, so that
none that is made meanwhile leads elsewhere.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sessgit.model import canonical
from sessgit.replay.sandbox.file_search import number
from sessgit.replay.sandbox.workspace import below

_LARGEST = 32 << 20
_LINES = 2000
"""So many lines the client reads of a file where nobody says more."""


class DeclinedError(Exception):
    """What a tool may not do, or cannot; `leads_out` says that it would have reached outside of the sandbox."""

    def __init__(self, why: str, *, leads_out: bool = False) -> None:
        super().__init__(why)
        self.leads_out = leads_out


@dataclass(frozen=True, slots=True)
class Wrote:
    """What a file held before, None where it was not there, and after."""

    before: str | None
    after: str


def read(root: str, path: str, given: Mapping[str, Any]) -> list[tuple[int, str]]:
    """The lines that were asked for, by number from 1."""
    text = _read(root, path)
    first = max(1, number(given.get("offset"), 1))
    most = number(given.get("limit"), _LINES)
    lines = text.removesuffix("\n").split("\n") if text else []
    return list(enumerate(lines[first - 1 : first - 1 + most], start=first))


def notebook(root: str, path: str) -> list[str]:
    """The sources of a notebook's cells."""
    return [_source(cell) for cell in _cells(_notebook(_read(root, path)))]


def write(root: str, path: str, tool: str, given: Mapping[str, Any]) -> Wrote:
    """Does what a tool for writing was asked to do to a file."""
    before: str | None
    try:
        before = _read(root, path)
    except FileNotFoundError:
        before = None
    if tool == "Write":
        after = _said(given, "content")
    elif tool == "NotebookEdit":
        after = _with_cell(_there(before), given)
    else:
        after = _edited(before, given.get("edits") if tool == "MultiEdit" else [given])
    _write(root, path, after)
    return Wrote(before, after)


# What the tools do


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


# Files


def _read(root: str, path: str) -> str:
    with _folder_of(root, path, make=False) as (folder, name):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise DeclinedError("it is not a file")
        if found.st_size > _LARGEST:
            raise DeclinedError(f"the file is larger than {_LARGEST >> 20} MiB")
        data = file.read(_LARGEST)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DeclinedError("the file is not UTF-8 text") from error


def _write(root: str, path: str, text: str) -> None:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DeclinedError("the new text is not UTF-8") from error
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _folder_of(root, path, make=True) as (folder, name):
        handle = os.open(name, flags, 0o666, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DeclinedError("it is not a file")
        file.write(data)


def inside(root: str, path: str) -> str:
    """Return the path with its links resolved; raises DeclinedError if it leads out of the sandbox at `root`."""
    real = os.path.realpath(path)
    if not below(real, os.path.realpath(root)):
        shown = canonical.one_line(real, 200)
        raise DeclinedError(f"refused: a link leads out of the sandbox, to {shown}", leads_out=True)
    return real


@contextmanager
def _folder_of(root: str, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The folder of a file, open, and the file's name in it, with no link left on the way."""
    top, real = os.path.realpath(root), inside(root, path)
    *folders, name = real[len(top) :].strip("/").split("/")
    if not name:
        raise DeclinedError("it is a folder")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(top, flags)
    try:
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=at)
            below_it = os.open(folder, flags, dir_fd=at)
            os.close(at)
            at = below_it
        yield at, name
    finally:
        os.close(at)
