"""Waiting until the client has written the end of a turn, which it does up to 100 ms after the Stop hook returned."""

from __future__ import annotations

import time
from pathlib import Path

from sessgit.agents.codex import lines

QUIET = 0.15
"""Seconds without growth after which a file is taken as written, if no end of a turn is to be waited for."""
LONGEST = 1.0
_STEP = 0.005
_WINDOW = 1 << 20
"""The end of a turn repeats the answer, so its line may be long."""


def wait(path: Path, offset: int, answer: str | None, since: float) -> bool:
    """Wait until the file ends with the end of a turn after `offset`, or, without an answer to wait for, until it
    rests; return False at the time limit."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        size, modified = _size_and_time(path)
        if answer is None and time.time() - max(since, modified) > QUIET:
            return True
        if answer is not None and size > offset and _ends_turn(path):
            return True
        time.sleep(_STEP)
    return False


def _ends_turn(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _WINDOW))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return False
    return lines.make(last).is_end


def _size_and_time(path: Path) -> tuple[int, float]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0.0
    return status.st_size, status.st_mtime
