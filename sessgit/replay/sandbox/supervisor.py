"""The process between sessgit and what is run again: it limits what that may use, watches it, and ends it.

It stands alone: a bare interpreter runs `main`, with what to do as JSON on standard input. The command's output goes to
this process's own, what became of it to the descriptor `report`. It ends nothing but what it started, and all of that.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

_POLL_SECONDS = 0.02
_NICENESS = 5
"""Whoever watches shall come first."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)
"""Of Linux alone."""
_PARENT_DIES, _SUBREAPER = 1, 36


@dataclass(frozen=True)
class Job:
    """What to run, where it may write, and how much it may use; sizes in bytes, `seconds` of time, 0 for no limit.

    Where it has to be ended, it is asked to end itself first, if it gets seconds of `grace` for that.
    """

    command: list[str]
    cwd: str
    env: dict[str, str]
    writable: list[str]
    report: int
    parent: int
    stdin: int = -1
    keep: list[int] = field(default_factory=list)
    seconds: float = 0
    memory: int = 0
    address_space: bool = False
    processes: int = 0
    disk: int = 0
    file: int = 0
    open_files: int = 0
    grace: float = 0


def main() -> None:
    """Runs the job that standard input says."""
    with os.fdopen(os.dup(0), "rb") as source:
        job = Job(**json.loads(source.read()))
    for one in (job.report, job.stdin):
        if one >= 0:
            os.set_inheritable(one, False)
    _die_with_parent(signal.SIGTERM)
    if os.getppid() != job.parent:
        return
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    adopts = _PRCTL is not None and _PRCTL(_SUBREAPER, 1, 0, 0, 0) == 0
    child = os.fork()
    if child == 0:
        _exec_command(job)
    sweep = _kill_descendants if adopts else lambda _: _kill_group(child)
    code, why = _wait_with_limits(job, child, watched, sweep)
    _report(job.report, {"code": code, "why": why})


# Inside


def _exec_command(job: Job) -> NoReturn:
    """Turns into the command."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _die_with_parent(signal.SIGKILL)
        os.setsid()
        os.nice(_NICENESS)
        _set_limits(job)
        os.chdir(job.cwd)
        os.dup2(job.stdin if job.stdin >= 0 else os.open(os.devnull, os.O_RDONLY), 0)
        for kept in job.keep:
            os.set_inheritable(kept, True)
        os.execvpe(job.command[0], job.command, job.env)
    except (OSError, ValueError) as error:
        _report(job.report, {"refused": f"{error.strerror if isinstance(error, OSError) else error}"})
    raise SystemExit(125)


def _die_with_parent(how: int) -> None:
    if _PRCTL is not None:
        _PRCTL(_PARENT_DIES, how, 0, 0, 0)


def _set_limits(job: Job) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: job.open_files,
        resource.RLIMIT_FSIZE: job.file,
        # Many programs ask for far more addresses than memory: what they can write to is what counts.
        resource.RLIMIT_AS if job.address_space else resource.RLIMIT_DATA: job.memory,
    }
    for kind, most in wanted.items():
        if most or kind == resource.RLIMIT_CORE:
            hard = resource.getrlimit(kind)[1]
            limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with suppress(ValueError, OSError):  # a system that has no such limit
                resource.setrlimit(kind, (limit, limit))


# Outside


def _wait_with_limits(
    job: Job, child: int, watched: Iterable[int], sweep: Callable[[int], None]
) -> tuple[int | None, str]:
    """The exit code, or None and why it was ended; nothing that it started is left."""
    began, born, free = time.monotonic(), time.time(), _free_disk(job)
    why = ""
    while True:
        told = _is_end_requested(watched)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            sweep(0)
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code, ""
        if told:
            why = "ended"
        elif job.seconds and time.monotonic() - began > job.seconds:
            why = "time"
        else:
            why = _exceeded_limit(job, free, born)
        if why:
            _terminate(child, job.grace)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            sweep(child)
            return None, why


def _terminate(child: int, grace: float) -> None:
    """Waits so many seconds at most for the command to end itself, with those that stayed in its process group."""
    deadline = time.monotonic() + grace
    with suppress(OSError):
        if grace:
            os.killpg(child, signal.SIGTERM)
        while time.monotonic() < deadline and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(_POLL_SECONDS)


def _is_end_requested(watched: Iterable[int]) -> bool:
    """Whether somebody wants this to end; waits a moment for that, or for the command to end."""
    if not hasattr(signal, "sigtimedwait"):  # macOS
        time.sleep(_POLL_SECONDS)
        return bool(set(signal.sigpending()) - {signal.SIGCHLD})
    got = signal.sigtimedwait(watched, _POLL_SECONDS)
    return got is not None and got.si_signo != signal.SIGCHLD


def _exceeded_limit(job: Job, free: int, began: float) -> str:
    """`processes`, `memory`, `disk`: what of it was used up, or `""`."""
    if (
        job.disk
        and (gone := free - _free_disk(job)) > job.disk
        and (gone > 4 * job.disk or _bytes_written(job, began) > job.disk)
    ):
        return "disk"
    found = _descendants(os.getpid(), _parents_by_pid())
    if job.processes and len(found) > job.processes:
        return "processes"
    if job.memory and sum(map(_resident_memory, found)) > job.memory:
        return "memory"
    return ""


def _kill_descendants(child: int) -> None:
    """Ends all that is left of what this process started, also what made itself a session of its own."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = _descendants(os.getpid(), _parents_by_pid())
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, how)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _kill_group(child: int) -> None:
    """Ends what stayed in the command's process group: where this process adopts nothing, it knows of no more."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def _parents_by_pid() -> Mapping[int, int]:
    """The parent of each process; of those that are dead already too, until somebody has asked how they ended."""
    found: dict[int, int] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - the bare interpreter is faster without pathlib
    except OSError:
        return found
    for name in names:
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def _descendants(top: int, parents: Mapping[int, int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [top]
    while waiting:
        own = children.get(waiting.pop(), [])
        found += own
        waiting += own
    return found


def _resident_memory(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * _PAGE_SIZE
    return 0


def _bytes_written(job: Job, since: float) -> int:
    """The bytes in files that were changed since then: others may have filled the disk meanwhile."""
    found = 0
    for folder in job.writable:
        for place, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    file = os.lstat(f"{place}/{name}")
                    found += file.st_blocks * 512 if file.st_ctime >= since - 1 else 0
    return found


def _free_disk(job: Job) -> int:
    with suppress(OSError):
        found = os.statvfs(job.writable[0] if job.writable else job.cwd)
        return found.f_bavail * found.f_frsize
    return 0


def _report(report: int, what: Mapping[str, Any]) -> None:
    with suppress(OSError):
        os.write(report, json.dumps(what).encode() + b"\n")
