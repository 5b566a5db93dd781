"""The files of agents on disk: what lies where, new files, and bytes appended to a transcript and taken off again.

A new file is whole or not there at all; it never replaces another one, and no link is followed. The caller makes sure
that no other process has a transcript open whose end changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

from sessgit import agents
from sessgit.errors import ROOM, ConflictError, SessgitError
from sessgit.store import private_files

_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.tmp", re.DOTALL)
_AT_ONCE = 1 << 20
"""Bytes that are written at once: the parts are turns, of which there can be thousands."""
_STALE = 600.0
"""Seconds after which no process still writes a temporary file."""


def file_end(path: Path, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, and its size; nothing if it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            return file.read(min(size, most)), size
    except OSError:
        return b"", 0


def entries(folder: Path) -> list[Path]:
    """Return what lies in a folder, by name; nothing if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def resolved_in(folder: Path, path: Path) -> Path | None:
    """Return where a path that someone else names leads, links resolved, relative to the folder; None if there is no
    file below the folder, or a link is in its place."""
    try:
        real, top = path.resolve(strict=True), folder.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    is_file = real.is_relative_to(top) and real.is_file() and not path.is_symlink()
    return real.relative_to(top) if is_file else None


def is_real_folder(path: Path) -> bool:
    """Return whether there is a folder, and no link to one."""
    try:
        return not path.is_symlink() and path.is_dir()
    except OSError:
        return False


def holds_bytes(path: Path) -> bool:
    """Return whether there is a regular file that is not empty; the client may delete it at any time."""
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_size > 0


# New files


def make_folder(path: Path) -> None:
    """Create the folder for a file of an agent, private to its owner; raise OSError, or SessgitError if a link leads
    to it."""
    link = next(filter(None, (agent.home.link_above(path) for agent in agents.every())), None)
    if link is not None:
        raise SessgitError(f"{link} is a link; sessgit does not write through links", "Replace it with its target.")
    private_files.make_folder(path.parent)


def write(path: Path, *parts: bytes) -> None:
    """Put a new file at `path`, whole or not at all, and never over one that is there; raises ConflictError."""
    import uuid  # which takes a millisecond, and who only reads a transcript writes none

    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        make_folder(path)
        sweep(path.parent)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb", _AT_ONCE) as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        # A link and not a rename: it fails where a file is, however late that came.
        path.hardlink_to(temporary)
    except FileExistsError as error:
        raise ConflictError(f"{path} already exists", "It was not changed.") from error
    except (OSError, ValueError) as error:
        raise SessgitError(f"cannot write {path}: {getattr(error, 'strerror', '') or error}", ROOM) from error
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Delete what others left here who were killed before their files were whole."""
    for left in folder.glob(".*.????????.tmp"):
        with suppress(OSError):
            if _UNFINISHED.fullmatch(left.name) and abs(time.time() - left.lstat().st_mtime) > _STALE:
                left.unlink()


# The end of a transcript


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


def find_end(path: Path, length: int, sha256: str) -> int | None:
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
    if agents.is_packed(path):
        raise ConflictError(
            f"{path} is compressed", "Nothing was changed. Resume it once in the client, which unpacks it."
        )
    try:
        return os.open(path, how | _NOFOLLOW)
    except OSError as error:
        raise SessgitError(f"cannot {what} {path}: {error.strerror or error}", "Nothing was changed.") from error
