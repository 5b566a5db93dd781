"""Locks between processes, on files in `state/locks/`.

Exclusive locks are filelock's. `_flock` takes the others, which are shared, or are descriptors that a child process
inherits or a process keeps to its end: flock(2) itself, which belongs to an open file, so that parent and child hold
the lock until both are gone. Both kinds end with their process.

A lock only saves work, and keeps packs and temporary files from being deleted under another process. What keeps the
conversations right is compare-and-swap on refs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import private_files
from sessgit.store.layout import StorePaths

_POLL_SECONDS = 0.01
_GENERATION_SIZE = 8
_SHORT_TIMEOUT = 5.0
"""Seconds to wait for work that takes milliseconds."""
PRUNE_TIMEOUT = 120.0
"""Seconds that a writer waits for a prune: longer than a recorder lives, whose events stay."""


# Exclusive locks


def session_lock(paths: StorePaths, name: str, timeout: float = 0) -> AbstractContextManager[bool]:
    """Hold the lock of a session; yields False if another process holds it for `timeout` seconds."""
    return _exclusive(paths.lock(f"session-{name}"), timeout)


def cells_lock(paths: StorePaths, name: str, timeout: float = 0) -> AbstractContextManager[bool]:
    """Hold the lock of the lines that programs add outside a session's transcript, as `session_lock` does."""
    return _exclusive(paths.lock(f"cells-{name}"), timeout)


def names_lock(paths: StorePaths, timeout: float = 0) -> AbstractContextManager[bool]:
    """Hold the lock for naming sessions, so that no two get the same name, as `session_lock` does."""
    return _exclusive(paths.lock("names"), timeout)


@contextmanager
def settings_lock(paths: StorePaths) -> Iterator[None]:
    """Hold the lock for changing the settings. Raises StoreError if another process holds it for seconds."""
    with _exclusive(paths.lock("settings"), _SHORT_TIMEOUT) as held:
        if not held:
            raise StoreError("another command is changing the settings", "Try again.")
        yield


@contextmanager
def _exclusive(path: Path, timeout: float) -> Iterator[bool]:
    from filelock import FileLock, Timeout  # a recorder that finds nothing to do ends without it

    try:
        private_files.make_folder(path.parent)
        lock = FileLock(path, timeout, mode=0o600)
        lock.acquire(poll_interval=_POLL_SECONDS)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise _lock_error(path, error) from error
    try:
        yield True
    finally:
        lock.release()


# Descriptors that hold a lock


@contextmanager
def maintenance_lock(paths: StorePaths, timeout: float = 0) -> Iterator[int]:
    """Hold the lock for packing; yields its descriptor, or 0 if another process holds it for `timeout` seconds.

    git inherits the descriptor, so that no other process packs before it ends even if its parent is killed. A process
    that waits for the lock holds another one, at which a background repack ends.
    """
    with (
        _held(_flock(paths.lock("maintenance-wanted"), _SHORT_TIMEOUT, shared=True) if timeout else 0),
        _held(_flock(paths.lock("maintenance"), timeout)) as lock,
    ):
        yield lock


def is_maintenance_wanted(paths: StorePaths) -> bool:
    """Return whether a process waits for the maintenance lock."""
    return _is_locked(paths.lock("maintenance-wanted"))


def repack_lock(paths: StorePaths) -> AbstractContextManager[int]:
    """Hold the lock of the background repack; yields 0 if another process holds it."""
    return _held(_flock(paths.lock("repacking"), _SHORT_TIMEOUT))


def is_repack_running(paths: StorePaths) -> bool:
    """Return whether a background repack is running."""
    return _is_locked(paths.lock("repacking"))


@contextmanager
def prune_lock(paths: StorePaths, timeout: float = 0) -> Iterator[int]:
    """Hold the lock for deleting unreachable objects; yields its descriptor, or 0 while another process writes."""
    with _held(_flock(paths.lock("objects"), timeout)) as lock:
        if lock:
            try:
                os.pwrite(lock, os.urandom(_GENERATION_SIZE), 0)
            except OSError as error:
                raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
        yield lock


def prune_generation(paths: StorePaths) -> bytes:
    """Return a value that changes with each prune, or b"" while one is running."""
    try:
        with paths.lock("objects").open("rb") as file:
            with suppress(OSError):  # without locks there is no prune
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return b""
            return file.read()
    except OSError:  # there was none yet
        return b""


def hold_off_prune(paths: StorePaths) -> int:
    """Return a descriptor that keeps others from pruning until its release.

    A writer does not write an object again that exists already, so that must stay until a ref leads to it.
    """
    lock = _flock(paths.lock("objects"), PRUNE_TIMEOUT, shared=True)
    if not lock:
        raise StoreError("sessgit gc is pruning the store", "Try again when it is done.")
    return lock


def no_writes(paths: StorePaths) -> AbstractContextManager[int]:
    """Yield 0 if another process is writing or fetching objects; else none begins before the context ends."""
    return _held(_try_flock(paths.lock("objects")))


def ref_move_lock(paths: StorePaths) -> AbstractContextManager[int]:
    """Show that this process is moving refs, as several may at once. Without locks nothing is shown."""
    return _held(_try_flock(paths.lock("refs"), _SHORT_TIMEOUT, shared=True))


def no_ref_moves(paths: StorePaths) -> AbstractContextManager[int]:
    """Yield 0 if another process is moving refs; else none begins before the context ends."""
    return _held(_try_flock(paths.lock("refs")))


def spool_reader_lock(paths: StorePaths) -> int:
    """Return a descriptor that holds the claim to read the spool next, or 0 if another process has it."""
    return _flock(paths.lock("spool"))


def recorder_lock(paths: StorePaths) -> int:
    """Return a descriptor that shows until the end of the process that a recorder is running."""
    return _flock(paths.lock("recorder"), _SHORT_TIMEOUT, shared=True)


def is_recorder_running(paths: StorePaths) -> bool:
    """Return whether a recorder is running, or locks do not tell."""
    with _held(_try_flock(paths.lock("recorder"))) as lock:
        return not lock


def turn_lock(paths: StorePaths, name: str) -> int:
    """Return a descriptor that shows that a program has a turn of the session open, or 0 if another process has one."""
    return _flock(paths.lock(f"turn-{name}"))


def turn_was_open(paths: StorePaths, name: str) -> bool:
    """Return whether a program ever had a turn of the session open on this machine."""
    return paths.lock(f"turn-{name}").exists()


def folder_lock(path: Path) -> int:
    """Return a descriptor that locks a folder by a file in it, or 0 if another process has it locked."""
    return _flock(path)


def append_lock(handle: int) -> None:
    """Lock an open file for appending until it is closed, if its file system has locks."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)


def release(handle: int) -> None:
    """Release the lock of a descriptor, and close it."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    with suppress(OSError):
        os.close(handle)


@contextmanager
def _held(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        if handle:
            release(handle)


def _flock(path: Path, timeout: float = 0, *, shared: bool = False) -> int:
    """Return a descriptor that holds the lock, or 0 after `timeout` seconds. Raises StoreError if locks do not work."""
    try:
        private_files.make_folder(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _lock_error(path, error) from error
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                return 0
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            os.close(handle)
            raise _lock_error(path, error) from error
        else:
            return handle


def _try_flock(path: Path, timeout: float = 0, *, shared: bool = False) -> int:
    """Return what `_flock` does, or 0 if locks do not work."""
    try:
        return _flock(path, timeout, shared=shared)
    except StoreError:
        return 0


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the lock; the file is not created."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _lock_error(path: Path, error: OSError) -> StoreError:
    is_denied = error.errno in (errno.EACCES, errno.EPERM, errno.ELOOP)
    message = f"cannot lock {path.stem}: {error.strerror or error}"
    return StoreError(message, f"Is {path.parent} yours and writable?" if is_denied else ROOM)
