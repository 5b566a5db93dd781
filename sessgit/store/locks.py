"""File locks of a store: one for each session, held while its branch is written, and those of whoever packs and prunes.

They are flock(2) itself, which belongs to an open file: a child that inherits its descriptor holds the lock too, until
both are gone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store.files import private
from sessgit.store.layout import StorePaths

_POLL_SECONDS = 0.01
_GENERATION_SIZE = 8
_LOOK_TIMEOUT = 5.0
"""Seconds that somebody may look for what a killed process left among the refs, which takes milliseconds."""
_CHANGE_TIMEOUT = 5.0
"""Seconds that somebody may change the settings, which takes milliseconds."""
PRUNE_TIMEOUT = 120.0
"""Seconds that a writer waits for a prune to end, which is longer than a recorder lives: its events stay."""


@contextmanager
def session_lock(beside: StorePaths, name: str, timeout: float = 0) -> Iterator[bool]:
    """Holds the lock of a session; yields False where another process still holds it after `timeout` seconds.

    The lock saves double work. What keeps the store right is the compare-and-swap on its refs.
    """
    with _wait_for_lock(beside, f"session-{name}", timeout) as held:
        yield held


@contextmanager
def names_lock(beside: StorePaths, timeout: float = 0) -> Iterator[bool]:
    """Holds the lock of whoever gives a name, so that no two sessions get the same; False where someone else does."""
    with _wait_for_lock(beside, "names", timeout) as held:
        yield held


@contextmanager
def append_lock(handle: int) -> Iterator[None]:
    """Holds the end of an open file for who appends to it, until that is closed; in vain where nothing can be locked,
    as on some network's disk."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    yield


def spool_reader_lock(beside: StorePaths) -> int:
    """Return a descriptor that holds the claim to read the spool next, until `release` or the end of the process; 0
    while another process holds it."""
    return _acquire(beside.lock("spool"), 0)


def recorder_lock(beside: StorePaths) -> int:
    """Return a descriptor that says until the end of the process that a recorder is running, as many may be."""
    return _acquire(beside.lock("recorder"), _LOOK_TIMEOUT, shared=True)


def is_recorder_running(beside: StorePaths) -> bool:
    """Return whether a recorder is running."""
    with _try_exclusive(beside.lock("recorder")) as alone:
        return not alone


@contextmanager
def maintenance_lock(beside: StorePaths, timeout: float = 0) -> Iterator[int]:
    """Holds the lock of whoever packs the store; yields its descriptor, or 0 where someone else does.

    The git that packs inherits it: where its parent is killed, nobody else begins before it ends. A process that waits
    for the lock says so by another one, and a packing in the background ends for it.
    """
    asking = _acquire(beside.lock("maintenance-wanted"), _LOOK_TIMEOUT, shared=True) if timeout else 0
    try:
        with _exclusive_lock(beside.lock("maintenance"), timeout) as held:
            yield held
    finally:
        if asking:
            release(asking)


def is_maintenance_wanted(beside: StorePaths) -> bool:
    """Return whether a process waits for the maintenance lock."""
    return _is_locked(beside.lock("maintenance-wanted"))


@contextmanager
def repack_lock(beside: StorePaths) -> Iterator[bool]:
    """Holds the lock of the process that packs in the background; yields False where another process does."""
    with _wait_for_lock(beside, "repacking", _LOOK_TIMEOUT) as held:
        yield held


def is_repack_running(beside: StorePaths) -> bool:
    """Return whether a process packs in the background."""
    return _is_locked(beside.lock("repacking"))


@contextmanager
def prune_lock(beside: StorePaths, timeout: float = 0) -> Iterator[int]:
    """Holds the lock under which objects go that no ref reaches; yields its descriptor, or 0 where objects are being
    written that no ref may reach yet."""
    with _exclusive_lock(beside.lock("objects"), timeout) as held:
        if held:
            try:
                os.pwrite(held, os.urandom(_GENERATION_SIZE), 0)
            except OSError as error:
                raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
        yield held


def prune_generation(beside: StorePaths) -> bytes:
    """A mark that is another one after each time the store was pruned; while that is being done none, ``b""``."""
    try:
        with beside.lock("objects").open("rb") as file:
            with suppress(OSError):  # where nothing can be locked, nobody can prune either
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return b""
            return file.read()
    except OSError:  # it never was
        return b""


def hold_off_prune(beside: StorePaths) -> int:
    """Keeps others from pruning until `release` of the descriptor, or the end of the process.

    Who writes an object may be told that it is there already: it must not go before a ref leads to it.
    """
    held = _acquire(beside.lock("objects"), PRUNE_TIMEOUT, shared=True)
    if not held:
        raise StoreError("sessgit gc is pruning the store", "Try again when it is done.")
    return held


def turn_lock(beside: StorePaths, name: str) -> int:
    """Holds what says that a program has a turn of the session open, until `release` of the descriptor or the end of
    the process; 0 where someone else does."""
    return _acquire(beside.lock(f"turn-{name}"), 0)


def turn_was_open(beside: StorePaths, name: str) -> bool:
    """Whether a program ever had a turn of the session open on this machine; where none had, no lock is made."""
    return beside.lock(f"turn-{name}").exists()


@contextmanager
def ref_move_lock(beside: StorePaths) -> Iterator[None]:
    """Tells that a process is just moving refs, as many others may; where that cannot be told, nothing is said."""
    try:
        handle = _acquire(beside.lock("refs"), _LOOK_TIMEOUT, shared=True)
    except StoreError:
        handle = 0
    try:
        yield
    finally:
        if handle:
            release(handle)


@contextmanager
def no_ref_moves(beside: StorePaths) -> Iterator[bool]:
    """Whether no process of ours is moving refs, nor begins to before this ends."""
    with _try_exclusive(beside.lock("refs")) as alone:
        yield alone


@contextmanager
def no_writes(beside: StorePaths) -> Iterator[bool]:
    """Whether no process of ours is writing or fetching objects, nor begins to before this ends."""
    with _try_exclusive(beside.lock("objects")) as alone:
        yield alone


def folder_lock(path: Path) -> int:
    """Holds the lock of who works in a folder, until `release` of the descriptor or the end of the process; 0 where
    someone else does."""
    return _acquire(path, 0)


@contextmanager
def settings_lock(beside: StorePaths) -> Iterator[bool]:
    """Holds the lock of whoever changes the settings; yields False where someone else does so for seconds."""
    with _wait_for_lock(beside, "settings", _CHANGE_TIMEOUT) as held:
        yield held


@contextmanager
def _wait_for_lock(beside: StorePaths, name: str, timeout: float) -> Iterator[bool]:
    with _exclusive_lock(beside.lock(name), timeout) as handle:
        yield bool(handle)


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the lock, without waiting for it. No file is made."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _try_exclusive(path: Path) -> Iterator[bool]:
    """Holds the lock alone, if nobody has it; yields whether it does. Where nothing can be locked, somebody may."""
    try:
        handle = _acquire(path, 0)
    except StoreError:
        handle = 0
    try:
        yield bool(handle)
    finally:
        if handle:
            release(handle)


@contextmanager
def _exclusive_lock(path: Path, timeout: float) -> Iterator[int]:
    """Holds the lock alone; yields its descriptor, for children to inherit, or 0 where another process still holds
    it after `timeout` seconds."""
    handle = _acquire(path, timeout)
    try:
        yield handle
    finally:
        if handle:
            release(handle)


def _acquire(path: Path, timeout: float, *, shared: bool = False) -> int:
    """The descriptor that holds the lock until `release`, or 0. Raises StoreError where nothing can be locked."""
    try:
        private.folder(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _lock_error(f"cannot lock {path.stem}", error) from error
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
            raise _lock_error(f"cannot lock {path.stem}", error) from error
        else:
            return handle


def _lock_error(what: str, error: OSError) -> StoreError:
    mine = error.errno in (errno.EACCES, errno.EPERM, errno.ELOOP)
    return StoreError(f"{what}: {error.strerror or error}", "Is the folder yours?" if mine else ROOM)


def release(handle: int) -> None:
    """Lets go of the lock."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    with suppress(OSError):
        os.close(handle)
