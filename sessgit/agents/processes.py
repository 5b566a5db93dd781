"""Processes of clients: whether one is running, and which one started it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_ENDED = ("Z", "X")
"""The states of a process of which only the exit code is left (proc(5))."""


class LiveClient(NamedTuple):
    """A running client: its process, the agent's id of the session that it has open, and its working folder."""

    pid: int
    agent_id: str
    cwd: str


def is_running(pid: int, started: object) -> bool:
    """Return whether the process runs and began at that time, in the kernel's ticks: a pid is reused."""
    if pid <= 1:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no pid is that large
        return False
    except OSError:
        pass
    fields = _stat(pid)
    if fields is None:
        return True
    return fields[0] not in _ENDED and (not isinstance(started, str | int) or str(started) == fields[19])


def parent(pid: int) -> int:
    """Return the pid of the process that started another one; 0 if it is unknown."""
    fields = _stat(pid)
    if fields is not None:
        return int(fields[1])
    return os.getppid() if pid == os.getpid() else 0


def working_folder(pid: int) -> str:
    """Return the working folder of a process, or "" if it is unknown."""
    try:
        return str((_PROC / str(pid) / "cwd").readlink())
    except OSError:
        return ""


def flock_holders() -> dict[int, int]:
    """Return the pids of the processes that hold locks of flock(2), by the inodes of the locked files (proc_locks(5));
    none on a system that does not tell."""
    try:
        lines = [line.split() for line in (_PROC / "locks").read_text().splitlines()]
    except OSError:
        return {}
    return {int(words[5].rpartition(":")[2]): int(words[4]) for words in lines if words[1] == "FLOCK"}


def _stat(pid: int) -> list[str] | None:
    """Return the fields of `/proc/<pid>/stat` after the name (proc(5)), or None if there is no such file."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
