"""The process between sessgit and a command that is run again: it limits what the command may use, and ends it.

A bare interpreter runs `main`, with the job as JSON on standard input, so only the standard library is imported, and
not `dataclasses`, which would slow its start by a third. The command's output goes to this process's own, its exit code
to the descriptor `report`. It kills nothing but the processes that it started, and all of those.
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
from typing import Any, NamedTuple, NoReturn

_POLL_SECONDS = 0.02
_NICENESS = 5
"""So that the supervisor runs first."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)
"""Of Linux alone."""
_PARENT_DIES, _SUBREAPER = 1, 36


class Limits(NamedTuple):
    """How much a command may use with all processes that it starts, 0 for no limit: seconds of time, bytes of memory,
    number of processes, bytes written to the disk in all and to one file, bytes of output, open files of one process.

    With `address_space` the limit on memory also counts addresses that are reserved and not used.
    """

    seconds: float = 60
    memory: int = 2 << 30
    processes: int = 256
    disk: int = 4 << 30
    file: int = 1 << 30
    output: int = 8 << 20
    open_files: int = 1024
    address_space: bool = False


class Job(NamedTuple):
    """A command to run, where it may write, and its limits. `report` is a descriptor, `stdin` another one.

    A command that must be ended gets `grace` seconds to end by itself.
    """

    command: list[str]
    cwd: str
    env: dict[str, str]
    writable: list[str]
    report: int
    parent: int
    stdin: int
    limits: Limits
    grace: float = 0


def main() -> None:
    """Run the job that standard input describes."""
    with os.fdopen(os.dup(0), "rb") as source:
        fields = json.loads(source.read())
    job = Job(*fields)
    job = job._replace(limits=Limits(*job.limits))
    for descriptor in (job.report, job.stdin):
        os.set_inheritable(descriptor, False)
    _die_with_parent(signal.SIGTERM)
    if os.getppid() != job.parent:
        return
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    adopts = _PRCTL is not None and _PRCTL(_SUBREAPER, 1, 0, 0, 0) == 0
    child = os.fork()
    if child == 0:
        _exec_command(job)
    code, why = _wait_with_limits(job, child, watched, _kill_descendants if adopts else lambda: _kill_group(child))
    _report(job.report, {"code": code, "why": why})


def _exec_command(job: Job) -> NoReturn:
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _die_with_parent(signal.SIGKILL)
        os.setsid()
        os.nice(_NICENESS)
        _set_limits(job.limits)
        os.chdir(job.cwd)
        os.dup2(job.stdin, 0)
        os.execvpe(job.command[0], job.command, job.env)
    except (OSError, ValueError) as error:
        _report(job.report, {"refused": f"{error.strerror if isinstance(error, OSError) else error}"})
    raise SystemExit(125)


def _die_with_parent(how: int) -> None:
    if _PRCTL is not None:
        _PRCTL(_PARENT_DIES, how, 0, 0, 0)


def _set_limits(limits: Limits) -> None:
    values = {
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file,
        # Many programs reserve far more addresses than they use memory: usually writable memory is what counts.
        resource.RLIMIT_AS if limits.address_space else resource.RLIMIT_DATA: limits.memory,
    }
    for kind, value in ((resource.RLIMIT_CORE, 0), *((kind, value) for kind, value in values.items() if value)):
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(kind, (limit, limit))


def _wait_with_limits(
    job: Job, child: int, watched: Iterable[int], kill_rest: Callable[[], None]
) -> tuple[int | None, str]:
    """Return the exit code, or None and why the command was ended; no process that it started is left."""
    began, clock, free = time.monotonic(), time.time(), _free_disk(job)
    while True:
        is_ended = _is_end_requested(watched)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            kill_rest()
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code, ""
        if is_ended:
            why = "ended"
        elif job.limits.seconds and time.monotonic() - began > job.limits.seconds:
            why = "time"
        else:
            why = _exceeded_limit(job, free, clock)
        if why:
            _terminate(child, job.grace)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            kill_rest()
            return None, why


def _terminate(child: int, grace: float) -> None:
    """Ask the command and its process group to end, and wait `grace` seconds at most."""
    deadline = time.monotonic() + grace
    with suppress(OSError):
        if grace:
            os.killpg(child, signal.SIGTERM)
        while time.monotonic() < deadline and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(_POLL_SECONDS)


def _is_end_requested(watched: Iterable[int]) -> bool:
    """Wait a moment for a signal, and return whether it was one that asks this process to end."""
    if not hasattr(signal, "sigtimedwait"):  # macOS
        time.sleep(_POLL_SECONDS)
        return bool(set(signal.sigpending()) - {signal.SIGCHLD})
    got = signal.sigtimedwait(watched, _POLL_SECONDS)
    return got is not None and got.si_signo != signal.SIGCHLD


def _exceeded_limit(job: Job, free: int, began: float) -> str:
    """Return which limit was exceeded, `processes`, `memory` or `disk`, or ``""``."""
    limits = job.limits
    if limits.disk:
        used = free - _free_disk(job)  # by other programs as well, so the files are looked at too
        if used > 4 * limits.disk or (used > limits.disk and _bytes_written(job, began) > limits.disk):
            return "disk"
    pids = _descendants() if limits.processes or limits.memory else []
    if limits.processes and len(pids) > limits.processes:
        return "processes"
    if limits.memory and sum(map(_resident_memory, pids)) > limits.memory:
        return "memory"
    return ""


def _kill_descendants() -> None:
    """Kill all that is left of the processes that this one started, in whatever session they are."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        pids = _descendants()
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, how)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _kill_group(child: int) -> None:
    """Kill what stayed in the command's process group: without a subreaper, other processes are not known."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def _descendants() -> list[int]:
    """Return the processes below this one, those that are dead and not yet waited for included."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - the bare interpreter is faster without pathlib
            if name.isdigit():
                with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                    children.setdefault(parent, []).append(int(name))
    pids = children.get(os.getpid(), [])
    for pid in pids:  # grows on the way
        pids += children.get(pid, [])
    return pids


def _resident_memory(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * _PAGE_SIZE
    return 0


def _bytes_written(job: Job, since: float) -> int:
    """Return the size of the writable files that changed since a time."""
    total = 0
    for folder in job.writable:
        for place, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    file = os.lstat(f"{place}/{name}")
                    total += file.st_blocks * 512 if file.st_ctime >= since - 1 else 0
    return total


def _free_disk(job: Job) -> int:
    with suppress(OSError):
        disk = os.statvfs(job.writable[0] if job.writable else job.cwd)
        return disk.f_bavail * disk.f_frsize
    return 0


def _report(report: int, what: Mapping[str, Any]) -> None:
    with suppress(OSError):
        os.write(report, json.dumps(what).encode() + b"\n")
