"""Which turns this process has open: of one session one at a time, whoever else would like to write."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from sessgit.errors import UsageError
from sessgit.store import locks
from sessgit.store.layout import Beside

_held: dict[tuple[str, str], tuple[int, int]] = {}
"""By store and session the descriptor of the lock, and the thread that took it."""


@dataclass
class HeldTurn:
    """A turn that this process has open, by its prompt's uuid; `loose` is one that cells outside of turns made for
    themselves, and `cells` are those of it that have no result."""

    handle: int
    key: str
    loose: bool
    cells: set[str] = field(default_factory=set)


def hold(beside: Beside, session: str) -> int:
    """Holds what says that a turn of the session is open, until `let_go` of the descriptor; 0 where someone else does.

    Raises UsageError where this thread does, which would wait for itself.
    """
    key = (str(beside.locks), session)
    _, thread = _held.get(key, (0, 0))
    if thread == threading.get_ident():
        raise UsageError(
            f"this thread has a turn of {session[:8]} open already, or a cell outside of turns",
            "One turn is open at a time: end it first. What belongs to it goes through the Session that opened it.",
        )
    handle = locks.turn(beside, session)
    if handle:
        _held[key] = (handle, threading.get_ident())
    return handle


def let_go(beside: Beside, session: str, handle: int) -> None:
    """Others may open a turn now."""
    _held.pop((str(beside.locks), session), None)
    locks.release(handle)


def is_open(beside: Beside, session: str) -> bool:
    """Whether anybody has a turn of the session open."""
    if (str(beside.locks), session) in _held:
        return True
    handle = locks.turn(beside, session)
    if handle:
        locks.release(handle)
    return not handle


def _after_fork() -> None:
    """A child has the parent's descriptors, and would keep its turns open when that is gone."""
    for handle, _ in _held.values():
        os.close(handle)  # not let go of: the lock is the parent's as well
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)
