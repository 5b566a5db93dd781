"""Files of the sandbox read and written by the tools for files, as the client has them.

Nothing outside is reached by any path: links are resolved, and the way to where they lead is gone step by step, so that
none that is made meanwhile leads elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sessgit.agents.values import DeclinedError
from sessgit.model import canonical
from sessgit.replay.sandbox.file_search import int_argument
from sessgit.replay.sandbox.workspace import is_below

_MOST_BYTES = 32 << 20
_MOST_LINES = 2000
"""So many lines the client reads of a file where nobody says more."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a file held before, None where it was not there, and after."""

    before: str | None
    after: str


def lines(text: str, given: Mapping[str, Any]) -> list[tuple[int, str]]:
    """The lines that were asked for, by number from 1."""
    first = max(1, int_argument(given.get("offset"), 1))
    most = int_argument(given.get("limit"), _MOST_LINES)
    every = text.removesuffix("\n").split("\n") if text else []
    return list(enumerate(every[first - 1 : first - 1 + most], start=first))


def text(root: str, path: str) -> str:
    """The whole text of a file."""
    return _read_text(root, path)


def apply_write(root: str, path: str, edit: Callable[[str | None], str]) -> FileChange:
    """Puts into a file what `edit` makes of its text, which is None where there is no file."""
    before: str | None
    try:
        before = _read_text(root, path)
    except FileNotFoundError:
        before = None
    after = edit(before)
    _write_text(root, path, after)
    return FileChange(before, after)


def _read_text(root: str, path: str) -> str:
    with _open_folder(root, path, make=False) as (folder, name):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise DeclinedError("it is not a file")
        if found.st_size > _MOST_BYTES:
            raise DeclinedError(f"the file is larger than {_MOST_BYTES >> 20} MiB")
        data = file.read(_MOST_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DeclinedError("the file is not UTF-8 text") from error


def _write_text(root: str, path: str, text: str) -> None:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DeclinedError("the new text is not UTF-8") from error
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _open_folder(root, path, make=True) as (folder, name):
        handle = os.open(name, flags, 0o666, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DeclinedError("it is not a file")
        file.write(data)


def resolve_inside(root: str, path: str) -> str:
    """Return the path with its links resolved; raises DeclinedError if it leads out of the sandbox at `root`."""
    real = os.path.realpath(path)
    if not is_below(real, os.path.realpath(root)):
        shown = canonical.one_line(real, 200)
        raise DeclinedError(f"refused: a link leads out of the sandbox, to {shown}", leads_out=True)
    return real


@contextmanager
def _open_folder(root: str, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The folder of a file, open, and the file's name in it, with no link left on the way."""
    top, real = os.path.realpath(root), resolve_inside(root, path)
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
