"""Which turns this process has open: of one session one at a time, whoever else would like to write."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from sessgit.errors import UsageError
from sessgit.store import locks
from sessgit.store.layout import StorePaths


@dataclass
class HeldTurn:
    """A turn that this process has open, by its prompt's uuid.

    A `loose` one is there for its cells alone, and ends with the last of them; any other is of the thread that opened
    it. `cells` are those that have no result, each with the thread that began it. No other thread begins cells in one
    that is `closing`.
    """

    handle: int
    thread: int
    key: str = ""
    loose: bool = False
    closing: bool = False
    cells: dict[str, int] = field(default_factory=dict)

    @property
    def is_mine(self) -> bool:
        """Whether it waits for this thread."""
        own = threading.get_ident()
        return own in self.cells.values() if self.loose else own == self.thread

    def begin(self, cells: Iterable[str]) -> None:
        """Takes cells that this thread begins."""
        self.cells |= dict.fromkeys(cells, threading.get_ident())

    def leave(self) -> None:
        """From now on it is there for the cells that other threads began, and still run."""
        others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        self.loose = self.closing = True
        self.cells = {cell: thread for cell, thread in self.cells.items() if thread in others}


_held: dict[tuple[str, str], HeldTurn] = {}
"""By store and session."""


def hold(beside: StorePaths, session: str) -> HeldTurn | None:
    """Holds what says that a turn of the session is open, until `let_go`; None where someone else does.

    Raises UsageError where this thread does, which would wait for itself.
    """
    key = (str(beside.locks), session)
    if key in _held and _held[key].is_mine:
        raise UsageError(
            f"this thread already has an open turn of {session[:8]}, or an open cell outside of turns",
            "Only one turn can be open at a time. End it first, or use the Session object that opened it.",
        )
    handle = locks.turn(beside, session)
    if not handle:
        return None
    _held[key] = HeldTurn(handle, threading.get_ident())
    return _held[key]


def let_go(beside: StorePaths, session: str, turn: HeldTurn) -> None:
    """Others may open a turn now."""
    _held.pop((str(beside.locks), session), None)
    locks.release(turn.handle)


def is_open(beside: StorePaths, session: str) -> bool:
    """Whether anybody has a turn of the session open."""
    if (str(beside.locks), session) in _held:
        return True
    if not locks.had_turn(beside, session):
        return False
    handle = locks.turn(beside, session)
    if handle:
        locks.release(handle)
    return not handle


def _after_fork() -> None:
    """A child has the parent's descriptors, and would keep its turns open when that is gone."""
    for turn in _held.values():
        os.close(turn.handle)  # not let go of: the lock is the parent's as well
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)
