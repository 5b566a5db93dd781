"""The end of the agent's file: bytes appended to it in one write, and taken off again.

The caller makes sure that no other process has the file open.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from sessgit.agents.transcript import is_packed
from sessgit.errors import ROOM, ConflictError, SessgitError

_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


def append(path: Path, size: int, data: bytes, *, durable: bool = True) -> None:
    """Append the bytes in one write to a file that still has that size, or leaves it as it is.

    With `durable` a loss of power does not undo it.

    Raises ConflictError where it has another size, SessgitError where it cannot be written.
    """
    handle = _opened(path, os.O_WRONLY | os.O_APPEND, "append to")
    try:
        if os.fstat(handle).st_size != size:
            raise ConflictError(f"{path} was just changed", "Nothing was changed. Try again.")
        written, safe = 0, False
        try:
            written = os.write(handle, data)
            if durable:
                os.fsync(handle)
            safe = written == len(data)
        except OSError as error:
            raise SessgitError(f"cannot append to {path}: {error.strerror or error}", ROOM) from error
        finally:
            if not safe and os.fstat(handle).st_size == size + written:
                os.ftruncate(handle, size)
        if written != len(data):
            raise SessgitError(f"cannot append to {path}: the disk is full", "Nothing was changed.")
    finally:
        os.close(handle)


def found_at(path: Path, length: int, sha256: str) -> int | None:
    """Return where the last `length` bytes of the file begin, if that is their hash; None where they are others, or
    fewer.

    Raises SessgitError where the file cannot be read.
    """
    handle = _opened(path, os.O_RDONLY, "read")
    try:
        return _start(handle, length, sha256)
    finally:
        os.close(handle)


def cut(path: Path, length: int, sha256: str) -> None:
    """Take the last `length` bytes, which have that hash, off the file in one step: a kill leaves it whole.

    Raises ConflictError, with nothing changed, where it ends otherwise.
    """
    handle = _opened(path, os.O_RDWR, "shorten")
    try:
        start = _start(handle, length, sha256)
        if start is None or os.fstat(handle).st_size != start + length:
            raise ConflictError(f"{path} was just changed", "Nothing was changed. Try again.")
        os.ftruncate(handle, start)
        os.fsync(handle)
    except OSError as error:
        raise SessgitError(f"cannot shorten {path}: {error.strerror or error}", ROOM) from error
    finally:
        os.close(handle)


def _start(handle: int, length: int, sha256: str) -> int | None:
    start = os.fstat(handle).st_size - length
    if start < 0 or length <= 0:
        return None
    with os.fdopen(os.dup(handle), "rb") as file:
        file.seek(start)
        return start if hashlib.sha256(file.read(length)).hexdigest() == sha256 else None


def _opened(path: Path, how: int, what: str) -> int:
    if is_packed(path):
        raise ConflictError(
            f"{path} is compressed", "Nothing was changed. Resume it once in the client, which unpacks it."
        )
    try:
        return os.open(path, how | _NOFOLLOW)
    except OSError as error:
        raise SessgitError(f"cannot {what} {path}: {error.strerror or error}", "Nothing was changed.") from error
