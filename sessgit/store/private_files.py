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
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            write_all(file, data)
            if durable:
                os.fsync(file.fileno())
        if mode != 0o600:
            temporary.chmod(mode)
        temporary.replace(path)
        if durable:
            with suppress(OSError):  # some file systems refuse, and the file is on the disk already
                sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror or error}", ROOM) from error


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


def path_exists(path: Path | str) -> bool:
    """Return whether the file or folder exists; False for a text that cannot be a path, as in a foreign document."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises for some texts
