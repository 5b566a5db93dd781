"""Processes of clients: whether one is running, and which one started it."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

UNKNOWN_PID = -1
_FLOCK = "=qqihh"
"""A `struct flock` of macOS: start, length, pid, type, whence."""
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


def flock_holders(paths: Sequence[Path]) -> dict[Path, int]:
    """Return those of the files that a process has locked by flock(2), with its pid, or UNKNOWN_PID on macOS, where
    the kernel does not tell. No lock is taken: a client that tried at the same moment would fail."""
    if sys.platform == "darwin":
        return {path: UNKNOWN_PID for path in paths if _is_locked(path)}
    try:
        lines = [line.split() for line in (_PROC / "locks").read_text().splitlines()] if paths else []
    except OSError:
        return {}
    holders = {int(words[5].rpartition(":")[2]): int(words[4]) for words in lines if words[1] == "FLOCK"}
    return {path: pid for path in paths if (pid := holders.get(_inode(path)))}


def _is_locked(path: Path) -> bool:
    """Return whether a process has locked a file by flock(2), as fcntl(2) tells on macOS, where both kinds of locks are
    in one list."""
    query = struct.pack(_FLOCK, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    try:
        with path.open("rb") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, query)
    except OSError:
        return False
    return bool(struct.unpack(_FLOCK, answer)[3] != fcntl.F_UNLCK)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _stat(pid: int) -> list[str] | None:
    """Return the fields of `/proc/<pid>/stat` after the name (proc(5)), or None if there is no such file."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
