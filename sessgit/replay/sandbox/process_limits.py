"""Runs processes that see only a few folders, cannot escape, and leave nothing running.

`isolation.py` hides everything else from them; `supervisor.py`, a process of its own, limits what they use and ends
them. They have no network unless the caller allows it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from sessgit.errors import SessgitError
from sessgit.model import humanize
from sessgit.replay.sandbox import isolation, supervisor

_ROOT = str(Path(isolation.PACKAGE).parent)
_RUN_MODULE_CODE = "import sys; sys.path.append({root!r}); from {package} import {module}; {module}.main()"
_GRACE_SECONDS = 15.0
"""Seconds that the cage gets to end all that is in it."""
_CHUNK_SIZE = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a process may use, with all that it starts: seconds of time, bytes of memory, processes at once, bytes
    written to the disk in all and to one file, bytes of output, files that one process has open."""

    seconds: float = 60
    memory: int = 2 << 30
    processes: int = 256
    disk: int = 4 << 30
    file: int = 1 << 30
    output: int = 8 << 20
    open_files: int = 1024


@dataclass(frozen=True, slots=True)
class Confinement:
    """Where processes may write, what else than the system they may read, which folders are hidden from them, and what
    they may do; `env` is all of their environment. Where they have to be ended, they get seconds of `grace` to do that
    themselves."""

    writable: tuple[str, ...]
    env: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)
    network: bool = False
    unconfined: bool = False
    grace: float = 0
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def unsandboxed(env: Mapping[str, str], seconds: float, grace: float = 0) -> Confinement:
    """For a command of the person's own, which may do what the person may: only all that it starts is ended with it,
    after so many seconds, 0 for any time."""
    limits = Limits(seconds, memory=0, processes=0, disk=0, file=0, open_files=0)
    return Confinement((), env, limits, network=True, unconfined=True, grace=grace)


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process ended: its exit code as a shell tells it, or None and in `why` what ended it.

    `output` is what it printed on both of its channels, no more than the limit. `ms` is how long it took.
    """

    code: int | None
    output: bytes = b""
    why: str = ""
    ms: float = 0


def python_command(module: str) -> list[str]:
    """The command for a module of this package that stands alone; what a person installed or set does not reach it."""
    return [sys.executable, "-I", "-S", "-c", _RUN_MODULE_CODE.format(root=_ROOT, package=__package__, module=module)]


def run_process(
    command: Sequence[str], cwd: str, held: Confinement, given: bytes = b"", *, errors: bool = True
) -> ProcessResult:
    """Runs a command to its end, or until a limit ends it; `given` is on its standard input. Its `errors` are part of
    its output, or go where the caller's own go."""
    began = time.monotonic()
    channels = Channels(errors=errors)
    with (
        _stdin_file(given) as source,
        start_process(command, cwd, held, replace(channels, stdin=source.fileno())) as running,
    ):
        output, why = running.read(held.limits.output)
        code, ended = running.wait()
    return ProcessResult(None if why else code, output, why or ended, (time.monotonic() - began) * 1000)


def check_can_run(held: Confinement) -> None:
    """Raises SessgitError, which says what to install, where nothing can be run in such a confinement."""
    if not held.unconfined:
        done = run_process(["true"], held.writable[0], held)
        if done.code != 0:
            raise isolation.isolation_error(done.output.decode("utf-8", "replace").strip() or done.why)


class RunningProcess:
    """A process that is running in its cage. `stop` ends it with all that it started."""

    def __init__(self, process: subprocess.Popen[bytes], report: IO[bytes], limits: Limits) -> None:
        self._process, self._report, self._limits = process, report, limits
        self._ended: tuple[int | None, str] | None = None

    def read(self, most: int) -> tuple[bytes, str]:
        """What it prints until it ends; where that is more than `most` bytes, it is ended and it is said why."""
        found = bytearray()
        while part := os.read(self.output, _CHUNK_SIZE):
            found += part
            if len(found) > most:
                self.stop()
                return bytes(found[:most]), f"it printed more than {humanize.format_size(most)}"
        return bytes(found), ""

    def wait(self) -> tuple[int | None, str]:
        """The exit code, or None and why there is none."""
        if self._ended is None:
            self._process.wait()
            self._ended = self._told()
        return self._ended

    @property
    def output(self) -> int:
        """The descriptor of what it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def stop(self) -> None:
        """Ends it, if it has not ended yet."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.wait()

    def _told(self) -> tuple[int | None, str]:
        said: dict[str, Any] = {}
        for line in self._report.read().splitlines():
            with suppress(ValueError):
                said |= json.loads(line)
        if "refused" in said:
            return None, str(said["refused"])
        if "code" not in said:
            return None, "its sandbox was killed"
        return said["code"], self._limit(str(said["why"]))

    def _limit(self, why: str) -> str:
        limits = self._limits
        return {
            "time": f"it took longer than {limits.seconds:g} s",
            "memory": f"it used more than {humanize.format_size(limits.memory)} of memory",
            "disk": f"it wrote more than {humanize.format_size(limits.disk)}",
            "processes": f"it started more than {limits.processes} processes",
        }.get(why, why)


@dataclass(frozen=True, slots=True)
class Channels:
    """What a process reads and where it speaks: `stdin` is a descriptor, or -1 for nothing; those in `keep` it
    inherits. It is `quiet` where nobody hears it; its `errors` go with its output, or where the caller's own go."""

    stdin: int = -1
    keep: tuple[int, ...] = ()
    quiet: bool = False
    errors: bool = True


@contextmanager
def start_process(
    command: Sequence[str], cwd: str, held: Confinement, channels: Channels, *, lasting: bool = False
) -> Iterator[RunningProcess]:
    """The process while it runs; at the end of the block it has ended. The time that it has is for one that is not
    `lasting`."""
    limits = held.limits
    walls = isolation.isolated_command(
        command, cwd, held.env, writable=held.writable, readable=held.readable, hidden=held.hidden,
        network=held.network,
    ) if not held.unconfined else list(command)  # fmt: skip
    reading, report = os.pipe()
    job = supervisor.Job(
        command=walls, cwd=cwd, env=dict(held.env), writable=list(held.writable), report=report,
        parent=os.getpid(), stdin=channels.stdin, keep=list(channels.keep),
        seconds=0 if lasting else limits.seconds, memory=limits.memory, address_space=lasting,
        processes=limits.processes, disk=limits.disk, file=limits.file, open_files=limits.open_files,
        grace=held.grace,
    )  # fmt: skip
    try:
        with _stdin_file(json.dumps(_job_fields(job)).encode()) as source:
            process = subprocess.Popen(
                python_command("supervisor"), stdin=source,
                stdout=subprocess.DEVNULL if channels.quiet else subprocess.PIPE,
                stderr=subprocess.STDOUT if channels.errors else None, cwd="/",
                env={"PATH": held.env.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}, start_new_session=True,
                pass_fds=[one for one in (report, channels.stdin, *channels.keep) if one >= 0],
            )  # fmt: skip
    except OSError as error:
        os.close(reading)
        raise SessgitError(f"cannot start Python: {error.strerror}", f"It was expected at {sys.executable}.") from error
    finally:
        os.close(report)
    with os.fdopen(reading, "rb") as told, process.stdout or nullcontext():
        running = RunningProcess(process, told, limits)
        try:
            yield running
        finally:
            running.stop()


class LineReader:
    """The lines that a process writes to a descriptor, one after the other."""

    def __init__(self, source: int) -> None:
        self._source, self._found = source, bytearray()

    def next(self, seconds: float, most: int) -> bytes | None:
        """The next line without its newline; None where there is none, or none whole within `seconds` and `most`
        bytes."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._found:
            left = deadline - time.monotonic()
            if left <= 0 or len(self._found) > most or not select.select([self._source], [], [], left)[0]:
                return None
            part = os.read(self._source, _CHUNK_SIZE)
            if not part:
                return None
            self._found += part
        line, _, rest = self._found.partition(b"\n")
        self._found = bytearray(rest)
        return bytes(line)


def write_line(target: int, line: bytes, seconds: float) -> None:
    """Writes a line to a descriptor; raises OSError where nobody takes it in time."""
    data, deadline = line + b"\n", time.monotonic() + seconds
    os.set_blocking(target, False)
    while data:
        if not select.select([], [target], [], max(0, deadline - time.monotonic()))[1]:
            raise TimeoutError
        data = data[os.write(target, data) :]


@contextmanager
def _stdin_file(data: bytes) -> Iterator[IO[bytes]]:
    """A file to read the bytes from: who does not read a pipe, and speaks, would wait for ever."""
    with tempfile.TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        yield source


def _job_fields(job: supervisor.Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__dataclass_fields__}
