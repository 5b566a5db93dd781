"""The turns that programs have open, one at a time of a session, and the cells that they add to the turns of others."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.errors import SessgitError, UsageError
from sessgit.history import turn_log
from sessgit.model import humanize
from sessgit.model.conversation.session import Session
from sessgit.record.edit_commit import StateEdit, write_edit
from sessgit.store import layout, locks, operations, refs, secret_filter
from sessgit.store.context import Context
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store


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


# Cells outside the transcript of a session that a client has open
#
# A program appends their lines to `state/<id>.cells` and goes on. Whoever records the transcript next commits them: by
# then the transcript shows in which turn they were added.

LOCK_TIMEOUT = 10.0
"""Seconds that a process waits for another one that adds or records such lines."""
_WRITE_QUEUE_SECONDS = 0.25
"""Seconds after which the client has written what it had to say when a line was added; measured: 0.08 at most."""


def wait_for_client(paths: layout.StorePaths, session: str) -> None:
    """Wait until the client has written the lines before those that wait, a quarter of a second at most."""
    with suppress(OSError):
        age = time.time() - paths.waiting_cells(session).stat().st_mtime
        time.sleep(max(0.0, min(_WRITE_QUEUE_SECONDS, _WRITE_QUEUE_SECONDS - age)))


def record_waiting(context: Context, session: str) -> None:
    """Commit the lines that wait, each with the turn that was running when it was added; a result goes to its cell.

    Without a turn they keep waiting. The transcript has been recorded right before.
    """
    store = context.store
    path = store.paths.waiting_cells(session)
    with locks.cells_lock(store.paths, session, LOCK_TIMEOUT) as is_locked:
        if not is_locked or not path.exists():
            return
        raw = [line for line in path.read_bytes().split(b"\n") if line]
        ref = layout.head_ref(session)

        def attempt() -> bool:
            tip = refs.read(store.path, ref)
            if tip is None:
                return False
            state = store.state(tip)
            edit = _edit(context, tip, state, agents.of(state).parsed(raw))
            if edit is None:
                return False
            seconds = max(int(context.now()), store.commit(tip).time)
            store.repo.move(ref, tip, write_edit(store, session, tip, edit, seconds))
            return True

        if operations.retry_moved(store, f"the branch of {session} kept changing while cells were added", attempt):
            path.unlink(missing_ok=True)
            context.index.sync(session)


def _edit(context: Context, tip: str, state: Session, added: Sequence[Line]) -> StateEdit | None:
    """Return the edit that adds the lines to the turns of a branch; None if it has no turn."""
    store, agent = context.store, agents.of(state)
    context.index.sync(state.id)
    rows = context.index.turns(state.id)
    if not rows:
        return None
    known = {
        name: [line for line in store.repo.blob(oid).split(b"\n") if line]
        for name, (oid, _) in turn_log.program_line_files(store, tip).items()
    }
    parsed = [(name, line) for name, lines in known.items() for line in agent.parsed(lines)]
    uuids = {line.uuid for _, line in parsed}
    begun = {cell: name for name, line in parsed for cell, ends in [agent.programs.cell_of(line)] if cell and not ends}
    clean = secret_filter.line_cleaner(store.paths, state.rules, agent.protected_keys)
    place, start = len(rows) - 1, ""
    files: dict[str, list[bytes]] = {}
    numbers: dict[int, None] = {}
    for line in reversed(added):  # from the last turn backwards, so that few turns are read
        while place and line.time < (start := start or _start(store, tip, state, rows[place].turn)):
            place, start = place - 1, ""
        if line.uuid not in uuids:
            cell, ends = agent.programs.cell_of(line)
            name = (begun.get(cell) if ends else "") or turn_log.program_file_name(rows[place].prompt)
            files.setdefault(name, []).append(clean(line.raw)[0])
            numbers[rows[place].turn] = None
    changes = {
        f"{layout.PAD}/{name}": (
            store.repo.write_blob(b"".join(line + b"\n" for line in [*known.get(name, ()), *reversed(lines)])),
            False,
        )
        for name, lines in files.items()
    }
    where = f"turn {next(iter(numbers))}" if len(numbers) == 1 else humanize.format_count(len(numbers), "turn")
    count = humanize.format_count(sum(map(len, files.values())), "line")
    return StateEdit(f"{count} of a program outside {where}", state, changes)


def _start(store: Store, tip: str, state: Session, number: int) -> str:
    """Return the time of a turn's prompt."""
    with suppress(SessgitError, IndexError):
        return agents.of(state).parsed(store.lines(tip, number).body[:1])[0].time
    return ""
