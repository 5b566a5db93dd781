"""Runs processes that see only a few folders, cannot escape, and leave nothing running.

bubblewrap on Linux, `sandbox-exec` on macOS hide everything else from them. On Linux a process sees only the folders of
the system, Python and what it is given; on macOS it sees the other files but for those in the home folder. It can write
in its own folders alone, and without `network` it reaches nothing. `supervisor.py`, a process of its own, limits what
they use and ends them.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from sessgit.errors import SessgitError
from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen
from sessgit.replay.sandbox import supervisor
from sessgit.replay.sandbox.supervisor import Limits

_PACKAGE = str(Path(__file__).parents[2])
_SYSTEM_FOLDERS = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/run/current-system", "/home/linuxbrew/.linuxbrew",
)  # fmt: skip
_RESOLVER_FOLDER = "/run/systemd/resolve"
"""Where `/etc/resolv.conf` leads on many systems."""
_UNSHARE_OPTIONS = (
    "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev",
)  # fmt: skip
_SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_PROFILE = """(version 1)(allow default)(deny file-write*)(deny file-read-data {hidden})
(allow file-read-data {readable})(allow file-write* {writable} (literal "/dev/null") (literal "/dev/zero"))"""
_UNCONFINED_HINT = "Or use `--unconfined` to run them without a sandbox."
_ROOT = str(Path(_PACKAGE).parent)
_RUN_MODULE_CODE = "import sys; sys.path.append({root!r}); from {package} import {module}; {module}.main()"
_STOP_SECONDS = 15.0
"""Seconds that the supervisor gets to end everything."""
_CHUNK_SIZE = 1 << 16
_LONGEST_ANSWER = 8 << 20


@frozen
class Confinement:
    """Where processes may write, what they may read besides the system, which folders are hidden from them; `env` is
    their whole environment. `unconfined` processes see and change what the user can. A process that must be ended gets
    `grace` seconds to end by itself."""

    writable: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    network: bool = False
    unconfined: bool = False
    grace: float = 0
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def unsandboxed(env: Mapping[str, str], seconds: float, grace: float = 0) -> Confinement:
    """Return the confinement of a command of the user's own, which may do what the user may. All processes that it
    starts are ended with it, and after so many seconds, 0 for no limit."""
    limits = Limits(seconds, memory=0, processes=0, disk=0, file=0, open_files=0)
    return Confinement((), env, limits, network=True, unconfined=True, grace=grace)


@frozen
class ProcessResult:
    """The exit code as a shell gives it, or None and in `why` what ended the process; and its output up to the
    limit."""

    code: int | None
    output: bytes
    why: str = ""


def python_command(module: str) -> list[str]:
    """Return the command that runs a module of this package by itself, whatever the user installed or set."""
    return [sys.executable, "-I", "-S", "-c", _RUN_MODULE_CODE.format(root=_ROOT, package=__package__, module=module)]


def run_process(
    command: Sequence[str], cwd: str, confinement: Confinement, data: bytes = b"", *, errors: bool = True
) -> ProcessResult:
    """Run a command to its end, or until it exceeds a limit, with `data` on its standard input. Its standard error is
    part of the output, or goes to the caller's own."""
    with start_process(command, cwd, confinement, data, errors=errors) as running:
        output, why = running.read(confinement.limits.output)
        code, ended = running.wait()
    return ProcessResult(None if why else code, output, why or ended)


def run_shell(command: str, cwd: str, env: Mapping[str, str], seconds: float, data: bytes) -> ProcessResult:
    """Run a shell command of the user's own, unsandboxed, with `data` on its standard input. Nothing is recorded of
    what it does."""
    free = unsandboxed({**env, "SESSGIT_OFF": "1"}, seconds)
    return run_process(["/bin/sh", "-c", command], cwd, free, data, errors=False)


def check_can_run(confinement: Confinement) -> None:
    """Raise SessgitError, which says what to install, if nothing can run so confined on this machine."""
    if not confinement.unconfined:
        result = run_process(["true"], confinement.writable[0], confinement)
        if result.code != 0:
            why = result.output.decode("utf-8", "replace").strip() or result.why or "it gave no reason"
            hint = f"Does this system or container forbid user namespaces? {_UNCONFINED_HINT}"
            raise SessgitError(f"cannot run commands in a sandbox: {why}", hint)


class RunningProcess:
    """A process that runs below its supervisor; `stdin` and `output` are descriptors."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: int, output: int, report: int, limits: Limits) -> None:
        self._process, self.stdin, self.output, self._report, self._limits = process, stdin, output, report, limits
        self._ended: tuple[int | None, str] | None = None

    def read(self, longest: int) -> tuple[bytes, str]:
        """Return its output up to its end; a process that prints more bytes is stopped, and the reason returned."""
        output = bytearray()
        while part := os.read(self.output, _CHUNK_SIZE):
            output += part
            if len(output) > longest:
                self.stop()
                return bytes(output[:longest]), f"it printed more than {humanize.format_size(longest)}"
        return bytes(output), ""

    def wait(self) -> tuple[int | None, str]:
        """Wait for its end and return the exit code, or None and the reason why there is none."""
        if self._ended is None:
            self._process.wait()
            self._ended = self._read_report()
        return self._ended

    def stop(self) -> None:
        """End it with all processes that it started, if it still runs."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.wait()

    def _read_report(self) -> tuple[int | None, str]:
        report: dict[str, Any] = {}
        for line in os.read(self._report, _CHUNK_SIZE).splitlines():
            with suppress(ValueError):
                report |= json.loads(line)
        if "refused" in report:
            return None, str(report["refused"])
        if "code" not in report:
            return None, "its sandbox was killed"
        limits, why = self._limits, str(report["why"])
        return report["code"], {
            "time": f"it took longer than {limits.seconds:g} s",
            "memory": f"it used more than {humanize.format_size(limits.memory)} of memory",
            "disk": f"it wrote more than {humanize.format_size(limits.disk)}",
            "processes": f"it started more than {limits.processes} processes",
        }.get(why, why)


class NoAnswerError(Exception):
    """There is no answer; the message says why."""


class JsonLines:
    """Asks a running process questions and reads its answers, a JSON object on a line each, in so many seconds."""

    def __init__(self, running: RunningProcess, seconds: float) -> None:
        self._running, self._seconds = running, seconds
        self._deadline = 0.0
        self._unread = bytearray()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send a question and return the first line of the answer; raises NoAnswerError like `read`."""
        self._deadline = time.monotonic() + self._seconds
        data, stdin = json.dumps(question).encode() + b"\n", self._running.stdin
        os.set_blocking(stdin, False)
        with suppress(OSError):  # then there is no line to read either
            while data and select.select([], [stdin], [], max(0, self._deadline - time.monotonic()))[1]:
                data = data[os.write(stdin, data) :]
        return self.read()

    def read(self) -> dict[str, Any]:
        """Return the next line of an answer. If there is none in time, stop the process and raise NoAnswerError."""
        part = bytes(self._unread)
        while b"\n" not in part and len(self._unread) <= _LONGEST_ANSWER:
            left = max(0, self._deadline - time.monotonic())
            if not select.select([self._running.output], [], [], left)[0]:
                break
            part = os.read(self._running.output, _CHUNK_SIZE)
            if not part:
                break
            self._unread += part
        line, newline, self._unread = self._unread.partition(b"\n")
        if not newline:
            raise NoAnswerError(self._silence())
        value = None
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
        if not isinstance(value, dict):
            self._running.stop()
            text = canonical.one_line(line[:400].decode("utf-8", "replace"), 100)
            raise NoAnswerError(f"it printed a line that is not a JSON object: {text}")
        return value

    def _silence(self) -> str:
        """Stop the process and return why there is no line."""
        is_late = time.monotonic() >= self._deadline
        self._running.stop()
        if is_late:
            return f"it took longer than {self._seconds:g} s"
        code, why = self._running.wait()
        if code is not None:
            return f"it exited with code {code} before it answered"
        return f"it printed a line of more than {humanize.format_size(_LONGEST_ANSWER)}" if why == "ended" else why


@contextmanager
def start_process(
    command: Sequence[str], cwd: str, confinement: Confinement, data: bytes | None = b"", *, errors: bool = True
) -> Iterator[RunningProcess]:
    """Yield the process; after the block it has ended.

    Its standard input is `data`, or what is written to `stdin` if that is None. Its standard error is part of
    the output, or goes to the caller's own.
    """
    isolated = list(command) if confinement.unconfined else _isolated_command(command, cwd, confinement)
    with ExitStack() as ours:
        report_end, report = os.pipe()
        ours.callback(os.close, report_end)
        with ExitStack() as theirs:
            theirs.callback(os.close, report)
            if data is None:
                stdin, stdin_end = os.pipe()
                theirs.callback(os.close, stdin)
                ours.callback(os.close, stdin_end)
            else:  # not a pipe: a process that prints and does not read would block the writer
                stdin, stdin_end = theirs.enter_context(_temporary_file(data)), -1
            job = supervisor.Job(
                isolated, cwd, dict(confinement.env), list(confinement.writable), report, os.getpid(), stdin,
                confinement.limits, confinement.grace,
            )  # fmt: skip
            try:
                process = subprocess.Popen(
                    python_command("supervisor"),
                    stdin=theirs.enter_context(_temporary_file(json.dumps(job).encode())),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT if errors else None, cwd="/",
                    env={"PATH": confinement.env.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
                    start_new_session=True, pass_fds=(report, stdin),
                )  # fmt: skip
            except OSError as error:
                raise SessgitError(
                    f"cannot start Python: {error.strerror}", f"It was expected at {sys.executable}."
                ) from error
        assert process.stdout is not None
        output = ours.enter_context(process.stdout).fileno()
        running = RunningProcess(process, stdin_end, output, report_end, confinement.limits)
        ours.callback(running.stop)
        yield running


@contextmanager
def _temporary_file(data: bytes) -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


# Isolation


def _isolation_tool(path: str) -> str:
    """Return the program that isolates processes here; raises SessgitError, which says what to install, if there is
    none. `path` is the PATH to look in."""
    if sys.platform == "darwin":
        if Path(_SANDBOX_EXEC).exists():
            return _SANDBOX_EXEC
        raise SessgitError(f"cannot run commands in a sandbox: {_SANDBOX_EXEC} is missing", _UNCONFINED_HINT)
    program = shutil.which("bwrap", path=path) if sys.platform == "linux" else None
    if program is None:
        raise SessgitError(
            "cannot run commands in a sandbox: bubblewrap is not installed",
            f"Install it with your package manager, such as apt-get install bubblewrap. {_UNCONFINED_HINT}",
        )
    return program


def _isolated_command(command: Sequence[str], cwd: str, confinement: Confinement) -> list[str]:
    """Return the command that runs `command` in isolation, in the folder `cwd`.

    No folder of `writable` may lie in another one: what runs could put a link in its place, and the next command would
    be given what that leads to.
    """
    writable, network = confinement.writable, confinement.network
    path, apart = confinement.env.get("PATH", os.defpath), [os.path.realpath(place) for place in confinement.hidden]
    programs = map(os.path.realpath, filter(os.path.isabs, path.split(os.pathsep)))
    shown = [place for place in programs if not any(is_below(place, one) for one in apart)]
    shown += [sys.prefix, sys.base_prefix, _PACKAGE, *confinement.readable]
    shown = [place for place in shown if place != "/" and not any(is_below(one, place) for one in apart)]
    if sys.platform == "darwin":
        hidden, readable, written = (  # of several rules that fit, the last one holds
            " ".join(f"(subpath {json.dumps(place)})" for place in places) or '(literal "/nowhere")'
            for places in (apart, [*shown, *writable], writable)
        )
        profile = _PROFILE.format(hidden=hidden, readable=readable, writable=written)
        return [_isolation_tool(path), "-p", profile if network else f"{profile}(deny network*)", *command]
    walls = [_isolation_tool(path), *_UNSHARE_OPTIONS]
    if network:
        shown.append(_RESOLVER_FOLDER)
    else:
        walls.append("--unshare-net")
    for place in _SYSTEM_FOLDERS:
        walls += ("--ro-bind-try", place, place)
    covered = [place for place in apart if any(is_below(place, system) for system in _SYSTEM_FOLDERS)]
    for place in covered:
        walls += ("--tmpfs", place)
    # What is bound there must not be replaceable by a link from inside, nor hold the places where the others are bound.
    own = confinement.env.get("TMPDIR", "")
    for place in ("/tmp", "/dev/shm") if own in writable else ():
        if not any(is_below(other, place) for other in (*shown, *writable)):
            walls += ("--bind", own, place)
    for place in shown:
        walls += ("--ro-bind-try", place, place)
    for place in writable:
        walls += ("--bind", place, place)
    for place in (*covered, "/dev", "/"):
        walls += ("--remount-ro", place)
    return [*walls, "--chdir", cwd, "--", *command]


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is the folder or lies in it; False for the root and an unknown folder, which no sandbox can
    replace."""
    return bool(folder.strip("/")) and (path == folder or path.startswith(f"{folder.rstrip('/')}/"))
