"""Waiting until the client has written what a hook was told of.

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
"""Seconds without growth after which a file is taken as written, where nobody says what to wait for."""
LONGEST = 1.0
_STEP = 0.005
_TAIL = 200
_WINDOW = 4 << 20


def wait(path: Path, offset: int, answer: str | None, since: float) -> bool:
    """Waits until the file holds the answer behind `offset`, or until it rests; False where time ran out first.

    `since` is the time, in seconds since 1970, at which the client began its hook.
    """
    wanted = json.dumps(answer, ensure_ascii=False)[1:-1][-_TAIL:].encode("utf-8", "replace") if answer else b""
    if wanted:
        return _until(lambda: _holds(path, offset, wanted), LONGEST)
    return _until(lambda: time.time() - max(since, _modified(path)) > QUIET, LONGEST)


def _until(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


def _holds(path: Path, offset: int, wanted: bytes) -> bool:
    """Whether the bytes stand in the file behind `offset`, on a line that is complete."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(offset, size - _WINDOW))
            data = file.read()
    except OSError:
        return False
    found = data.rfind(wanted)
    return found >= 0 and (data.find(b"\n", found) >= 0 or parse(data[data.rfind(b"\n") + 1 :]) is not None)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
