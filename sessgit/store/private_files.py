"""Files and folders that only the store's owner can read.

Every file is created with an explicit mode, so neither the umask of the process nor a change of it by another thread
matters. git children get `UMASK`.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from sessgit.errors import ROOM, StoreError

UMASK = 0o077
"""The umask of child processes that write into a store."""
_SYNC_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)
"""The errors of file systems that cannot sync folders."""


def make_folder(path: Path) -> None:
    """Make the folder and its missing parents, all with mode 0700. Raises OSError."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def open_file(path: Path, flags: int) -> FileIO:
    """Open a file unbuffered for writing, created with mode 0600 if `flags` has O_CREAT; no link is followed."""
    return os.fdopen(os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb", 0)


def open_append(path: Path) -> FileIO:
    """Open a file for appending, and create it if it is missing. Raises OSError."""
    return open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def write_private(path: Path, data: bytes, *, durable: bool = False, mode: int = 0o600) -> None:
    """Replace a file by one with these bytes, atomically. Raises StoreError.

    A `durable` write is on the disk when this returns. Without it a power loss may leave an empty file, which suits
    what can be derived again.
    """
    temporary = _temporary_path(path)
    try:
        _write(temporary, data, durable=durable)
        if mode != 0o600:
            temporary.chmod(mode)
        temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        raise _write_failure(path, temporary, error) from error


def rewrite_locked(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Durably replace a file of git's by what `change` makes of its bytes, under git's own lock. Raises OSError,
    FileExistsError if another process holds the lock."""
    lock = path.with_name(f"{path.name}.lock")
    with open_file(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
        try:
            write_all(file, change(path.read_bytes()))
            os.fsync(file.fileno())
            lock.replace(path)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")


def _write(path: Path, data: bytes, *, durable: bool) -> None:
    with open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
        write_all(file, data)
        if durable:
            os.fsync(file.fileno())


def _write_failure(path: Path, temporary: Path, error: OSError) -> StoreError:
    with suppress(OSError):
        temporary.unlink(missing_ok=True)
    return StoreError(f"cannot write {path}: {error.strerror or error}", ROOM)


def write_all(file: FileIO, data: bytes) -> None:
    """Write all bytes to an unbuffered file: a disk that becomes full takes a part, and fails at the next write."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Sync a folder if this is possible: some file systems refuse, and the file in it is on the disk already."""
    with suppress(OSError):
        sync(path)


# Checks of paths


def path_exists(path: Path | str) -> bool:
    """Return whether the file or folder exists; False for a text that cannot be a path, as in a foreign document."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long, or with NUL or half a character in it
        return False


def is_inside(folder: Path, path: Path) -> bool:
    """Return whether a path from a document leads into the folder, whether or not it exists."""
    return path.is_relative_to(folder) and ".." not in path.parts
