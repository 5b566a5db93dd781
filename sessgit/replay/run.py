"""Runs cells again, one after another, and compares the results with the recorded ones."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.values import DeclinedError
from sessgit.errors import SessgitError
from sessgit.model.conversation.content import Call
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.replay import compare, files, plan
from sessgit.replay.compare import Comparison, Outcome
from sessgit.replay.plan import PlanItem, ReplayPlan
from sessgit.replay.sandbox import process_limits
from sessgit.replay.sandbox.process_limits import JsonLines, NoAnswerError
from sessgit.replay.sandbox.workspace import Sandbox

_PROMPT_ARGUMENTS = ("prompt", "query", "question", "input", "text")


@frozen
class RunOptions:
    """What runs cells that the sandbox cannot: `llm` is a shell command that gets a prompt on standard input, in the
    folder `cwd` with the environment `env`; `commands` are such by operation, which get the arguments as JSON and print
    the result as JSON or as text."""

    llm: str = ""
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)


@frozen
class CellResult:
    """The result of a cell. `why` is the reason if it `failed`, that is did not run to its end, or was skipped. `ms` is
    the time it took now, None if it did not run."""

    item: PlanItem
    outcome: Outcome
    why: str = ""
    compared: Comparison | None = None
    ms: float | None = None


def run_plan(
    replay: ReplayPlan, sandbox: Sandbox, options: RunOptions, progress: Progress = no_progress
) -> tuple[CellResult, ...]:
    """Run all cells of a plan in their order. An error of a cell is its result and is not raised.

    Raises SessgitError, before any cell runs, if a cell needs a sandbox and this machine has none.
    """
    if any(item.kind in ("shell", "repl") for item in replay.items):
        process_limits.check_can_run(sandbox.confinement)
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
        result = process_limits.run_process([shell, "-c", self.sandbox.to_sandbox(command)], cwd, self.confinement)
        if result.code is None:
            raise _FailedError(result.why)
        output = self.sandbox.to_recorded(result.output.decode("utf-8", "replace"))
        return compare.compare_shell(self.agent.tools, call, result.code, output)

    def _read(self, item: PlanItem, call: Call) -> Comparison:
        try:
            text = files.read_text(self.sandbox.project, self.sandbox.to_sandbox(item.paths[0]))
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
            before, after = files.apply_write(self.sandbox.project, paths, edit)
        except (DeclinedError, OSError) as error:
            return _compare_tool_error(call, error)
        if call.cell.ok is False:
            return Comparison(False, call.output, "it was written", compare.diff_lines(call.output, "it was written"))
        return compare.compare_written(self.agent, call, before, after)

    def _repl(self, item: PlanItem, call: Call) -> Comparison:
        if self.python is None:
            limits = self.confinement.limits._replace(seconds=0, address_space=True)
            running = process_limits.start_process(
                process_limits.python_command("worker"),
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
        result = process_limits.run_shell(command, options.cwd, options.env, seconds, text.encode())
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
