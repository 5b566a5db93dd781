"""The claim of the one recorder that is about to read the spool: it will find every event that is there by then.

The claim is a file lock, which the kernel releases when its holder dies. The stub cannot ask for file locks: for it the
holder's pid is in the file `waiting`, which it believes only while that process runs as a recorder of this store.

The order that keeps the last event of a burst from being left: the stub renames the event into place, and then looks
for a claim; a recorder gives its claim up, and then reads the spool.

Loaded at every event: only the standard library's light modules.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store import locks
from sessgit.store.layout import StorePaths

_CLAIM_TIMEOUT = 60.0
"""Seconds after which a claim does not count: no recorder runs for longer, so its holder was stopped."""


class Claim:
    """What one recorder has of the claim."""

    def __init__(self, beside: StorePaths) -> None:
        self._beside = beside
        self._lock = 0

    def take(self, now: float) -> bool:
        """Return whether this recorder is to read the spool; if not, another process is about to read it.

        Where nothing can be locked, each recorder reads it: the locks of the sessions and their refs keep that right.
        """
        if self._lock:
            return True
        try:
            self._lock = locks.spool_reader_lock(self._beside)
        except StoreError:
            return True
        if not self._lock:
            return not _is_recent(self._beside.waiting, now)
        with suppress(OSError):
            _write_pid(self._beside.waiting)
        return True

    def give_up(self) -> None:
        """Give up the claim if this recorder has it; to be called before the spool is read.

        A stub that was held up may name this process after that, so that one is to read the spool again at its end.
        """
        if _read_pid(self._beside.waiting) == os.getpid():
            with suppress(OSError):
                self._beside.waiting.unlink()
        if self._lock:
            locks.release(self._lock)
            self._lock = 0


def _write_pid(waiting: Path) -> None:
    """Write this process's pid into the file, in one step: a stub that sees no pid starts another recorder."""
    new = waiting.with_name(f"{os.getpid()}.{waiting.name}.tmp")
    with suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(b"%d\n" % os.getpid())
    new.replace(waiting)


def _is_recent(waiting: Path, now: float) -> bool:
    try:
        return abs(now - waiting.lstat().st_mtime) < _CLAIM_TIMEOUT
    except OSError:
        return True


def _read_pid(waiting: Path) -> int:
    """Return the pid in the file, or 0; no link is followed, and no pipe is waited for."""
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(waiting, flags), "rb") as file:
            text = file.read(32).strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0
