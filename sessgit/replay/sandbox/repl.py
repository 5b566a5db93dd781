"""The code of a REPL's cells, run in one Python process for all cells of a replay."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from sessgit.replay.sandbox import process_limits
from sessgit.replay.sandbox.process_limits import Channels, Confinement, LineReader, RunningProcess

_LONGEST_ANSWER = 4 << 20
"""Bytes of an answer; the process tells less."""


class Repl:
    """A Python process that keeps its names from cell to cell; `why` says what ended it, and then it is gone."""

    def __init__(self, running: RunningProcess, ask: int, answers: LineReader, held: Confinement) -> None:
        self._running, self._ask, self._answers, self._held = running, ask, answers, held
        self.why = ""

    def run(self, code: str) -> Mapping[str, Any] | None:
        """What came of a cell, as `worker.py` tells it, or None where it did not run to its end."""
        if self.why:
            return None
        seconds, began = self._held.limits.seconds, time.monotonic()
        try:
            process_limits.write_line(self._ask, json.dumps({"code": code}).encode(), seconds)
            line = self._answers.next(seconds, _LONGEST_ANSWER)
        except OSError:
            line = None
        if line is not None:
            with suppress(ValueError, RecursionError):  # the code may write there too
                found = json.loads(line)
                if isinstance(found, dict):
                    return found
        late = time.monotonic() - began >= seconds
        self._running.stop()
        ended = self._running.wait()[1]
        if late:
            self.why = f"it took longer than {seconds:g} s"
        else:
            self.why = "its process sent an invalid answer" if line is not None else ended or "its process exited"
        return None


@contextmanager
def start_repl(cwd: str, held: Confinement) -> Iterator[Repl]:
    """The process, for the block."""
    (stdin, ask), (answers, told) = os.pipe(), os.pipe()
    channels, theirs = Channels(stdin, (told,), quiet=True), [stdin, told]
    try:
        with process_limits.start_process(
            process_limits.python_command("worker"), cwd, held, channels, lasting=True
        ) as running:
            while theirs:
                os.close(theirs.pop())
            with suppress(OSError):
                process_limits.write_line(ask, json.dumps({"answers": told}).encode(), held.limits.seconds)
            yield Repl(running, ask, LineReader(answers), held)
    finally:
        for one in (*theirs, ask, answers):
            os.close(one)
