"""Runs commands for the suite, one at a time, and says how long each took and how much memory it had.

A process of its own, started first and small: the kernel counts what the process that starts a command has in use as
the command's, and a large one takes longer to start another. A line of JSON comes in for each command, one goes out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_SAMPLES = 0.02
"""Seconds between two looks at the memory of all processes of a command."""


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Seconds by the clock and of the processors, exit code, the last of what the command said on stderr, and its peak
    memory in bytes: of the largest of its processes, or, where `whole` is asked for, of all of them at once."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as told:
        given.write(asked["given"].encode())
        given.seek(0)
        started = time.perf_counter()
        process = subprocess.Popen(
            asked["command"], cwd=asked["cwd"], env=asked["env"], stdin=given, stdout=subprocess.DEVNULL, stderr=told
        )
        whole = _Whole(process.pid) if asked["whole"] else None
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        told.seek(max(0, told.seek(0, os.SEEK_END) - 1000))
        said = told.read().decode(errors="replace")
    if whole is not None:
        peak = max(peak, whole.end())
    work = used.ru_utime + used.ru_stime
    return {"seconds": seconds, "work": work, "code": process.returncode, "said": said, "peak": peak}


class _Whole:
    """Looks again and again at the memory of a process and of all that it started; what they share counts once."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak, self.ended = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def end(self) -> int:
        self.ended.set()
        self.thread.join()
        return self.peak

    def _look(self) -> None:
        while not self.ended.wait(_SAMPLES):
            self.peak = max(self.peak, tree(self.pid))


def tree(pid: int) -> int:
    """Bytes that a process and its descendants have in use; 0 where the system does not tell."""
    used = 0
    with suppress(OSError, ValueError, IndexError):
        process = Path(f"/proc/{pid}")
        lines = (process / "smaps_rollup").read_bytes().splitlines()
        used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
        for task in (process / "task").iterdir():
            used += sum(tree(int(child)) for child in (task / "children").read_bytes().split())
    return used


if __name__ == "__main__":
    main()
