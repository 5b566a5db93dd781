"""The turns that this process has open: one at a time of a session, among all processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from sessgit.errors import UsageError
from sessgit.store import locks
from sessgit.store.layout import StorePaths


@dataclass
class OpenTurnLock:
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
        """Return whether it waits for this thread."""
        own = threading.get_ident()
        return own in self.cells.values() if self.loose else own == self.thread

    def begin(self, cells: Iterable[str]) -> None:
        """Add cells that this thread begins."""
        self.cells |= dict.fromkeys(cells, threading.get_ident())

    def detach_thread(self) -> None:
        """Keep it open only for the cells that other threads began, and still run."""
        others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        self.loose = self.closing = True
        self.cells = {cell: thread for cell, thread in self.cells.items() if thread in others}


_open_turns: dict[tuple[str, str], OpenTurnLock] = {}
"""By store and session."""


def open_turn(paths: StorePaths, session: str) -> OpenTurnLock | None:
    """Open a turn of the session until `close_turn`; return None if another process or thread has one open.

    Raises UsageError if this thread has one open, since it would wait for itself.
    """
    key = (str(paths.locks), session)
    if key in _open_turns and _open_turns[key].is_mine:
        raise UsageError(
            f"this thread already has an open turn of {session[:8]}, or an open cell outside of turns",
            "Only one turn can be open at a time. End it first, or use the Session object that opened it.",
        )
    handle = locks.turn_lock(paths, session)
    if not handle:
        return None
    _open_turns[key] = OpenTurnLock(handle, threading.get_ident())
    return _open_turns[key]


def close_turn(paths: StorePaths, session: str, turn: OpenTurnLock) -> None:
    """Let others open a turn."""
    _open_turns.pop((str(paths.locks), session), None)
    locks.release(turn.handle)


def is_open(paths: StorePaths, session: str) -> bool:
    """Return whether any process has a turn of the session open."""
    if (str(paths.locks), session) in _open_turns:
        return True
    if not locks.turn_was_open(paths, session):
        return False
    handle = locks.turn_lock(paths, session)
    if handle:
        locks.release(handle)
    return not handle


def _forget_in_child() -> None:
    """Close the parent's descriptors in a child: they would keep its turns open after its end."""
    for turn in _open_turns.values():
        os.close(turn.handle)  # not released: the lock is the parent's as well
    _open_turns.clear()


os.register_at_fork(after_in_child=_forget_in_child)
