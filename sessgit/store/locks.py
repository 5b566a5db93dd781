"""File locks of a store: one for each session, held while its branch is written, and those of whoever packs and prunes.

The latter are flock(2) itself, which belongs to an open file: a child that inherits its descriptor holds the lock too,
until both are gone.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store.layout import Beside

_POLL = 0.02
_MARK = 8
LONGEST_PRUNE = 120.0
"""Seconds that a writer waits for a prune to end, which is longer than a recorder lives: its events stay."""


@contextmanager
def session(beside: Beside, name: str, timeout: float = 0) -> Iterator[bool]:
    """Holds the lock of a session; yields False where another process still holds it after `timeout` seconds.

    The lock saves double work. What keeps the store right is the compare-and-swap on its refs.
    """
    with _held(beside, f"session-{name}", timeout) as held:
        yield held


@contextmanager
def names(beside: Beside, timeout: float = 0) -> Iterator[bool]:
    """Holds the lock of whoever gives a name, so that no two sessions get the same; False where someone else does."""
    with _held(beside, "names", timeout) as held:
        yield held


@contextmanager
def maintenance(beside: Beside, timeout: float = 0) -> Iterator[int]:
    """Holds the lock of whoever packs the store; yields its descriptor, or 0 where someone else does.

    The git that packs inherits it: where its parent is killed, nobody else begins before it ends.
    """
    with _alone(beside.lock("maintenance"), timeout) as held:
        yield held


@contextmanager
def pruning(beside: Beside, timeout: float = 0) -> Iterator[int]:
    """Holds the lock under which objects go that no ref reaches; yields its descriptor, or 0 where objects are being
    written that no ref may reach yet."""
    with _alone(beside.lock("objects"), timeout) as held:
        if held:
            os.pwrite(held, os.urandom(_MARK), 0)
        yield held


def last_pruning(beside: Beside) -> bytes:
    """A mark that is another one after each time the store was pruned."""
    try:
        return beside.lock("objects").read_bytes()
    except OSError:  # it never was
        return b""


def writing(beside: Beside) -> int:
    """Keeps others from pruning until `release` of the descriptor, or the end of the process.

    Who writes an object may be told that it is there already: it must not go before a ref leads to it.
    """
    held = _acquire(beside.lock("objects"), LONGEST_PRUNE, shared=True)
    if not held:
        raise StoreError("sessgit gc has been pruning the store for minutes", "Try again when it is done.")
    return held


def turn(beside: Beside, name: str) -> int:
    """Holds what says that a program has a turn of the session open, until `release` of the descriptor or the end of
    the process; 0 where someone else does."""
    return _acquire(beside.lock(f"turn-{name}"), 0)


@contextmanager
def settings(beside: Beside, timeout: float = 5) -> Iterator[bool]:
    """Holds the lock of whoever changes the settings; yields False where someone else still does."""
    with _held(beside, "settings", timeout) as held:
        yield held


@contextmanager
def _held(beside: Beside, name: str, timeout: float) -> Iterator[bool]:
    # Loaded here: whoever opens a repository to read it needs no such lock.
    from filelock import FileLock, Timeout

    lock = FileLock(beside.lock(name), mode=0o600)
    try:
        beside.locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire(timeout=timeout, poll_interval=0.01)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise StoreError(
            f"the store cannot be written: {beside.lock(name)}: {error.strerror or error}", "Is the folder yours?"
        ) from error
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def _alone(path: Path, timeout: float) -> Iterator[int]:
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
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"cannot lock {path.stem}: {error}") from error
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                return 0
            time.sleep(_POLL)
        except OSError as error:
            os.close(handle)
            raise StoreError(f"cannot lock {path.stem}: {error}") from error
        else:
            return handle


def release(handle: int) -> None:
    """Lets go of the lock."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    with suppress(OSError):
        os.close(handle)
