"""Runs cells again, one after another, and compares the results with the recorded ones."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.values import DeclinedError
from sessgit.errors import SessgitError
from sessgit.model import canonical
from sessgit.model.conversation.content import Call
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress
from sessgit.replay import compare, plan
from sessgit.replay.compare import Comparison, Outcome, Texts
from sessgit.replay.plan import PlanItem, ReplayPlan
from sessgit.replay.sandbox import processes
from sessgit.replay.sandbox.processes import JsonLines, NoAnswerError, is_below
from sessgit.replay.sandbox.workspace import Sandbox

_MOST_BYTES = 32 << 20
"""Bytes of a file that is read as a tool reads it."""
_PROMPT_ARGUMENTS = ("prompt", "query", "question", "input", "text")


@frozen
class RunOptions:
    """What runs cells that the sandbox cannot: `llm` is a shell command that gets a prompt on standard input, in the
    folder `cwd` with the environment `env`; `commands` are such by operation, which get the arguments as JSON and print
    the result as JSON or as text."""

    llm: str
    cwd: str
    env: Mapping[str, str]
    commands: Mapping[str, str]


@frozen
class CellResult:
    """The result of a cell. `why` is the reason if it `failed`, that is did not run to its end, or was skipped. `ms` is
    the time it took now, None if it did not run."""

    item: PlanItem
    outcome: Outcome
    why: str
    compared: Comparison | None = None
    ms: float | None = None


def run_plan(replay: ReplayPlan, sandbox: Sandbox, options: RunOptions, progress: Progress) -> tuple[CellResult, ...]:
    """Run all cells of a plan in their order. An error of a cell is its result and is not raised.

    Raises SessgitError, before any cell runs, if a cell needs a sandbox and this machine has none.
    """
    if any(item.kind in ("shell", "repl") for item in replay.items):
        processes.check_can_run(sandbox.confinement)
    with ExitStack() as stack:
        runner = _Runner(agents.of(replay.branch.state), sandbox, options, stack)
        results = []
        for number, item in enumerate(replay.items):
            progress(number, len(replay.items))
            results.append(runner.run(item))
    return tuple(results)


def skip_plan(replay: ReplayPlan) -> tuple[CellResult, ...]:
    """Return the results of a plan of which no cell can run."""
    return tuple(CellResult(item, "skipped", item.why) for item in replay.items)


class _FailedError(Exception):
    """A cell did not run to its end."""


class _SkippedError(Exception):
    """A cell cannot run here."""


class _Runner:
    def __init__(self, agent: Agent, sandbox: Sandbox, options: RunOptions, stack: ExitStack) -> None:
        self.agent, self.sandbox, self.options, self.stack = agent, sandbox, options, stack
        self.confinement = sandbox.confinement
        self.python: JsonLines | None = None
        """A Python process that keeps its names from cell to cell."""
        self.gone = ""
        """Why that gives no answers any more."""

    def run(self, item: PlanItem) -> CellResult:
        if item.kind is None or item.call is None:
            return CellResult(item, "skipped", item.why)
        run: Callable[[PlanItem, Call], Comparison] = {
            "shell": self._shell, "read": self._read, "write": self._write,
            "repl": self._repl, "model": self._model, "command": self._command,
        }[item.kind]  # fmt: skip
        began = time.monotonic()
        try:
            compared = run(item, item.call)
        except _SkippedError as error:
            return CellResult(item, "skipped", str(error))
        except (_FailedError, DeclinedError, SessgitError, OSError, ValueError, RecursionError) as error:
            return CellResult(item, "failed", _error_text(error), ms=(time.monotonic() - began) * 1000)
        ms = (time.monotonic() - began) * 1000
        return CellResult(item, "equal" if compared.equal else "differs", "", compared, ms)

    def _shell(self, item: PlanItem, call: Call) -> Comparison:
        command, folder = self.agent.tools.command(call.input)
        if not command or "\0" in command:
            raise _SkippedError("its arguments contain no command")
        shell = shutil.which("bash", path=self.confinement.env.get("PATH")) or "/bin/sh"
        recorded = str(Path(item.cwd, folder)) if folder else item.cwd
        cwd = self.sandbox.to_sandbox(recorded) if self.sandbox.is_inside(recorded) else self.sandbox.project
        if not Path(cwd).is_dir():
            raise _FailedError(f"its folder {recorded} does not exist")
        result = processes.run_process([shell, "-c", self.sandbox.to_sandbox(command)], cwd, self.confinement)
        if result.code is None:
            raise _FailedError(result.why)
        output = self.sandbox.to_recorded(result.output.decode("utf-8", "replace"))
        return compare.compare_shell(self.agent.tools, call, result.code, output)

    def _read(self, item: PlanItem, call: Call) -> Comparison:
        try:
            text = read_text(self.sandbox.project, self.sandbox.to_sandbox(item.paths[0]))
            sources = self.agent.tools.sources(call.tool, text)
            lines = self.agent.tools.lines(call.input, text) if sources is None else []
        except (DeclinedError, OSError) as error:
            return _compare_tool_error(call, error)
        if sources is not None:
            return compare.compare_contained(call, sources)
        recorded = [(number, self.sandbox.to_recorded(line)) for number, line in lines]
        return compare.compare_read(self.agent.tools, call, recorded)

    def _write(self, item: PlanItem, call: Call) -> Comparison:
        paths = {file: self.sandbox.to_sandbox(path) for file, path in zip(call.files, item.paths, strict=True)}
        edit = partial(self.agent.tools.written, call)
        try:
            before, after = apply_write(self.sandbox.project, paths, edit)
        except (DeclinedError, OSError) as error:
            return _compare_tool_error(call, error)
        if call.cell.ok is False:
            return Comparison(False, call.output, "it was written", compare.diff_lines(call.output, "it was written"))
        return compare.compare_written(self.agent, call, before, after)

    def _repl(self, item: PlanItem, call: Call) -> Comparison:
        if self.python is None:
            limits = self.confinement.limits._replace(seconds=0, address_space=True)
            running = processes.start_process(
                processes.python_command("worker"),
                self.sandbox.project,
                replace(self.confinement, limits=limits),
                None,
            )
            self.python = JsonLines(self.stack.enter_context(running), self.confinement.limits.seconds)
        if self.gone:
            raise _FailedError(f"the Python process with the variables is gone: {self.gone}")
        try:
            result = self.python.ask({"code": self.sandbox.to_sandbox(plan.cell_code(call) or "")})
        except NoAnswerError as silence:
            self.gone = str(silence)
            raise _FailedError(self.gone) from silence
        if result.get("memory"):
            raise _FailedError("it exceeded the memory limit")
        error, printed, shown = (
            self.sandbox.to_recorded(str(result.get(key, ""))) for key in ("error", "printed", "repr")
        )
        if error:
            return compare.compare_errors(call, error)
        printed = printed.rstrip()
        both = "\n".join(filter(None, (printed, shown)))
        value = _to_recorded_paths(result.get("json"), self.sandbox)
        return compare.compare_values(call, value, (printed, shown, both), is_value=bool(result.get("is_json")))

    def _model(self, item: PlanItem, call: Call) -> Comparison:
        prompts = (call.input[key] for key in _PROMPT_ARGUMENTS if isinstance(call.input.get(key), str))
        prompt = next(prompts, compare.as_text(dict(call.input)))
        return compare.compare_answers(call, self._ask(self.options.llm, prompt))

    def _command(self, item: PlanItem, call: Call) -> Comparison:
        arguments = json.dumps(dict(call.input), ensure_ascii=False)
        return compare.compare_answers(call, self._ask(self.options.commands[item.node.cell.operation], arguments))

    def _ask(self, command: str, text: str) -> str:
        """Return what a command of the user prints for a text on standard input."""
        options, seconds = self.options, self.confinement.limits.seconds
        result = processes.run_shell(command, options.cwd, options.env, seconds, text.encode())
        if result.code is None:
            raise _FailedError(result.why)
        if result.code:
            raise _FailedError(f"“{command}” exited with code {result.code}")
        return result.output.decode("utf-8", "replace").strip()


def _error_text(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__


def _compare_tool_error(call: Call, error: DeclinedError | OSError) -> Comparison:
    """Compare a tool's error with the recorded one; raises an error that is a way out of the sandbox."""
    if isinstance(error, DeclinedError) and error.leads_out:
        raise error
    if call.cell.ok is False:
        return Comparison(True, call.output, _error_text(error))
    return compare.compare_texts(call.output, _error_text(error))


def _to_recorded_paths(value: Any, sandbox: Sandbox) -> Any:
    if isinstance(value, str):
        return sandbox.to_recorded(value)
    if isinstance(value, dict):
        return {key: _to_recorded_paths(one, sandbox) for key, one in value.items()}
    return [_to_recorded_paths(one, sandbox) for one in value] if isinstance(value, list) else value


# Files of the sandbox, read and written as a client's tools do. No path reaches anything outside: links are resolved,
# and then the folders opened one by one without following links, so that a link made in the meantime leads nowhere.


def apply_write(root: str, paths: Mapping[str, str], edit: Callable[[Texts], Texts]) -> tuple[Texts, Texts]:
    """Write or delete what `edit` makes of the texts of files, whose paths are given by name; returns the texts before
    and after by name. If `edit` raises an error, no file is changed."""
    before = {name: _text_if_any(root, path) for name, path in paths.items()}
    after = edit(before)
    for name, text in after.items():
        if text is None:
            with _open_folder(root, paths[name], make=False) as (folder, file):
                os.unlink(file, dir_fd=folder)
        else:
            _write_text(root, paths[name], text)
    return before, after


def _text_if_any(root: str, path: str) -> str | None:
    try:
        return read_text(root, path)
    except FileNotFoundError:
        return None


def read_text(root: str, path: str) -> str:
    """Return the text of a file; raises DeclinedError if it is no regular file, too large, or no text."""
    with _open_folder(root, path, make=False) as (folder, name):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DeclinedError("it is not a file")
        if status.st_size > _MOST_BYTES:
            raise DeclinedError(f"the file is larger than {_MOST_BYTES >> 20} MiB")
        data = file.read(_MOST_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DeclinedError("the file is not UTF-8 text") from error


def _write_text(root: str, path: str, text: str) -> None:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DeclinedError("the new text is not UTF-8") from error
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _open_folder(root, path, make=True) as (folder, name):
        handle = os.open(name, flags, 0o666, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DeclinedError("it is not a file")
        file.write(data)


def resolve_inside(root: str, path: str) -> str:
    """Return the path with its links resolved; raises DeclinedError if it leads out of the sandbox at `root`."""
    real = os.path.realpath(path)
    if not is_below(real, os.path.realpath(root)):
        shown = canonical.one_line(real, 200)
        raise DeclinedError(f"refused: a link leads out of the sandbox, to {shown}", leads_out=True)
    return real


@contextmanager
def _open_folder(root: str, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """Yield the open folder of a file and the file's name in it, reached without following a link."""
    top, real = os.path.realpath(root), resolve_inside(root, path)
    *folders, name = real[len(top) :].strip("/").split("/")
    if not name:
        raise DeclinedError("it is a folder")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(top, flags)
    try:
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=at)
            below = os.open(folder, flags, dir_fd=at)
            os.close(at)
            at = below
        yield at, name
    finally:
        os.close(at)
