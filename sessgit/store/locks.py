"""File locks of a store: one for each session, held while its branch is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from sessgit.errors import StoreError
from sessgit.store.layout import Beside


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
def maintenance(beside: Beside, timeout: float = 0) -> Iterator[bool]:
    """Holds the lock of whoever packs the store; yields False where someone else does."""
    with _held(beside, "maintenance", timeout) as held:
        yield held


@contextmanager
def settings(beside: Beside, timeout: float = 5) -> Iterator[bool]:
    """Holds the lock of whoever changes the settings; yields False where someone else still does."""
    with _held(beside, "settings", timeout) as held:
        yield held


@contextmanager
def _held(beside: Beside, name: str, timeout: float) -> Iterator[bool]:
    lock = FileLock(beside.lock(name), mode=0o600)
    try:
        beside.locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire(timeout=timeout, poll_interval=0.01)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise StoreError(f"cannot lock {name}: {error}") from error
    try:
        yield True
    finally:
        lock.release()
