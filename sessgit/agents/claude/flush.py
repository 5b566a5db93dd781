"""Waiting until the client has written the answer that a hook event names.

The client's transcript lags: at Stop its last answer is usually not on disk yet and lands up to about 100 ms later,
while the hook still runs or after it. Who reads at once records a turn without its end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from sessgit.agents.line import parse

QUIET = 0.15
"""Seconds without growth after which a file is taken as written, if no answer is known to wait for."""
LONGEST = 1.0
_STEP = 0.005
_TAIL = 200
_WINDOW = 4 << 20


def wait(path: Path, offset: int, answer: str | None, since: float) -> bool:
    """Wait until the file holds the answer behind `offset`, or until it rests; False where time ran out first.

    `since` is the time, in seconds since 1970, at which the client began its hook.
    """
    expected = json.dumps(answer, ensure_ascii=False)[1:-1][-_TAIL:].encode("utf-8", "replace") if answer else b""
    if expected:
        return _until(lambda: _holds(path, offset, expected), LONGEST)
    return _until(lambda: time.time() - max(since, _modified(path)) > QUIET, LONGEST)


def _until(is_reached: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


def _holds(path: Path, offset: int, expected: bytes) -> bool:
    """Return whether the bytes are in the file after `offset`, on a line that is complete."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(offset, size - _WINDOW))
            data = file.read()
    except OSError:
        return False
    place = data.rfind(expected)
    return place >= 0 and (data.find(b"\n", place) >= 0 or parse(data[data.rfind(b"\n") + 1 :]) is not None)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
