"""Files of the sandbox read and written as a client's tools do.

No path reaches anything outside: links are resolved, and then the folders opened one by one without following links, so
that a link made in the meantime leads nowhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from sessgit.agents.values import DeclinedError
from sessgit.model import canonical
from sessgit.replay.sandbox.isolation import is_below

_MOST_BYTES = 32 << 20


Texts = Mapping[str, str | None]
"""The text of each file, None where there is none."""


def apply_write(root: str, paths: Mapping[str, str], edit: Callable[[Texts], Texts]) -> tuple[Texts, Texts]:
    """Write or delete what `edit` makes of the texts of files, whose paths are given by name; returns the texts before
    and after by name. If `edit` raises an error, no file is changed."""
    before = {name: _text_if_any(root, path) for name, path in paths.items()}
    after = edit(before)
    for name, text in after.items():
        if text is None:
            with _open_folder(root, paths[name], make=False) as (folder, file):
                os.unlink(file, dir_fd=folder)
        else:
            _write_text(root, paths[name], text)
    return before, after


def _text_if_any(root: str, path: str) -> str | None:
    try:
        return read_text(root, path)
    except FileNotFoundError:
        return None


def read_text(root: str, path: str) -> str:
    """Return the text of a file; raises DeclinedError if it is no regular file, too large, or no text."""
    with _open_folder(root, path, make=False) as (folder, name):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DeclinedError("it is not a file")
        if status.st_size > _MOST_BYTES:
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
    """Yield the open folder of a file and the file's name in it, reached without following a link."""
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
            below = os.open(folder, flags, dir_fd=at)
            os.close(at)
            at = below
        yield at, name
    finally:
        os.close(at)
