"""Cells run again, one after the other, and what came of each held against what is recorded."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.values import DeclinedError
from sessgit.errors import SessgitError
from sessgit.model.progress import Progress, no_progress
from sessgit.replay import compare, files, plan
from sessgit.replay.compare import Comparison, Outcome
from sessgit.replay.plan import Functions, PlanItem, ReplayPlan
from sessgit.replay.sandbox import process_limits, repl
from sessgit.replay.sandbox.process_limits import Confinement, Limits
from sessgit.replay.sandbox.workspace import Sandbox

_PROMPT_ARGUMENTS = ("prompt", "query", "question", "input", "text")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What cells may use, and what runs those that need more than this machine: a shell command that gets a prompt on
    standard input, run in `cwd` with `env`, and the functions that a program registered."""

    limits: Limits = field(default_factory=Limits)
    network: bool = False
    unconfined: bool = False
    llm: str = ""
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellResult:
    """What came of a cell: `failed` is one that did not run to an end, and `why` says the reason, as of one that was
    skipped. `ms` is how long it took now, None where it did not run."""

    item: PlanItem
    outcome: Outcome
    why: str = ""
    compared: Comparison | None = None
    ms: float | None = None


def run_plan(
    found: ReplayPlan, sandbox: Sandbox, how: RunOptions, progress: Progress = no_progress
) -> tuple[CellResult, ...]:
    """Runs all cells of a plan in their order. Whatever a cell does is its result: nothing is raised for it.

    Raises SessgitError, before any cell runs, where a cell needs a sandbox and this machine has none.
    """
    held = Confinement(
        sandbox.writable, sandbox.env, how.limits, how.network, how.unconfined, readable=sandbox.readable,
        hidden=sandbox.hidden,
    )  # fmt: skip
    if any(item.kind in ("shell", "repl", "search") for item in found.items):
        process_limits.check_can_run(held)
    with ExitStack() as stack:
        runner = _Runner(agents.of(found.branch.state), sandbox, how, held, stack)
        results = []
        for done, item in enumerate(found.items):
            progress(done, len(found.items))
            results.append(runner.run(item))
    return tuple(results)


def skip_plan(found: ReplayPlan) -> tuple[CellResult, ...]:
    """What is said of a plan of which nothing can be run."""
    return tuple(CellResult(item, "skipped", item.why) for item in found.items)


class _FailedError(Exception):
    """A cell did not run to an end."""


class _SkippedError(Exception):
    """A cell cannot be run here."""


class _Runner:
    def __init__(self, agent: Agent, sandbox: Sandbox, how: RunOptions, held: Confinement, stack: ExitStack) -> None:
        self.agent, self.sandbox, self.how, self.held, self.stack = agent, sandbox, how, held, stack
        self.repl: repl.Repl | None = None

    def run(self, item: PlanItem) -> CellResult:
        if item.kind is None or item.call is None:
            return CellResult(item, "skipped", item.why)
        ways: Mapping[str, Callable[[PlanItem], Comparison]] = {
            "shell": self._shell, "read": self._read, "search": self._search, "write": self._write, "repl": self._repl,
            "model": self._model, "function": self._function,
        }  # fmt: skip
        began = time.monotonic()
        try:
            compared = ways[item.kind](item)
        except _SkippedError as why:
            return CellResult(item, "skipped", str(why))
        except (_FailedError, DeclinedError, SessgitError, OSError, ValueError, RecursionError) as why:
            said = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
            return CellResult(item, "failed", said, ms=(time.monotonic() - began) * 1000)
        ms = (time.monotonic() - began) * 1000
        return CellResult(item, "equal" if compared.equal else "differs", "", compared, ms)

    # One for each kind

    def _shell(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        command = item.arguments.get("command")
        if not isinstance(command, str) or "\0" in command:
            raise _SkippedError("its arguments contain no command")
        shell = shutil.which("bash", path=self.held.env.get("PATH")) or "/bin/sh"
        ended = self._ran([shell, "-c", self.sandbox.to_sandbox(command)], item)
        output = self.sandbox.to_recorded(ended.output.decode("utf-8", "replace"))
        assert ended.code is not None
        return compare.compare_shell(item.call, ended.code, output)

    def _read(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        place = self.sandbox.to_sandbox(plan.call_path(item))
        try:
            text = files.text(self.sandbox.project, place)
            sources = self.agent.tools.sources(item.call.tool, text)
            if sources is not None:
                return compare.compare_contained(item.call, sources)
            lines = files.lines(text, item.arguments)
        except (DeclinedError, OSError) as error:
            return self._error(item, error)
        outward = [(number, self.sandbox.to_recorded(line)) for number, line in lines]
        return compare.compare_read(item.call, outward)

    def _write(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        place = self.sandbox.to_sandbox(plan.call_path(item))
        edit = partial(self.agent.tools.written, item.call.tool, item.arguments)
        try:
            wrote = files.apply_write(self.sandbox.project, place, edit)
        except (DeclinedError, OSError) as error:
            return self._error(item, error)
        if item.call.cell.ok is False:
            return Comparison(
                False, item.call.output, "it was written", compare.diff_lines(item.call.output, "it was written")
            )
        return compare.compare_written(self.agent, item.call, wrote.before, wrote.after)

    def _search(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        place = plan.call_path(item)
        folder = self.sandbox.to_sandbox(place)
        files.resolve_inside(self.sandbox.project, folder)
        job = {
            "tool": item.node.cell.operation,
            "folder": folder,
            "arguments": dict(item.arguments),
        }
        if not Path(folder).exists() and item.node.cell.operation != "LS":
            return compare.compare_search(item.call, "", (self.sandbox.source, place))
        if not Path(folder).exists():
            return self._error(item, FileNotFoundError(2, "No such file or directory"))
        ended = self._ran(process_limits.python_command("file_search"), item, json.dumps(job).encode())
        if ended.code:
            last = ended.output.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return self._error(item, DeclinedError(last or "the search failed"))
        output = self.sandbox.to_recorded(ended.output.decode("utf-8", "replace"))
        return compare.compare_search(item.call, output, (self.sandbox.source, place))

    def _repl(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        if self.repl is None:
            self.repl = self.stack.enter_context(repl.start_repl(self.sandbox.project, self.held))
        if self.repl.why:
            raise _FailedError(f"the Python process with the variables is gone: {self.repl.why}")
        told = self.repl.run(self.sandbox.to_sandbox(plan.cell_code(item.arguments) or ""))
        if told is None:
            raise _FailedError(self.repl.why)
        if told.get("memory"):
            raise _FailedError("it exceeded the memory limit")
        error, printed = (self.sandbox.to_recorded(str(told.get(key, ""))) for key in ("error", "printed"))
        if error:
            return compare.compare_errors(item.call, error)
        shown = self.sandbox.to_recorded(str(told.get("repr", "")))
        value = _to_recorded_paths(told.get("json"), self.sandbox) if told.get("is_json") else None
        both = "\n".join(part for part in (printed.rstrip(), shown) if part)
        return compare.compare_values(
            item.call, value, (printed.rstrip(), shown, both), is_value=bool(told.get("is_json"))
        )

    def _model(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        found = next(
            (item.arguments[key] for key in _PROMPT_ARGUMENTS if isinstance(item.arguments.get(key), str)), None
        )
        prompt = found if found is not None else compare.as_text(dict(item.arguments))
        free = process_limits.unsandboxed({**self.how.env, "SESSGIT_OFF": "1"}, self.how.limits.seconds)
        ended = process_limits.run_process(
            ["/bin/sh", "-c", self.how.llm], self.how.cwd, free, prompt.encode(), errors=False
        )
        if ended.code is None:
            raise _FailedError(ended.why)
        if ended.code:
            raise _FailedError(f"“{self.how.llm}” exited with code {ended.code}")
        said = ended.output.decode("utf-8", "replace").strip()
        return compare.compare_answers(item.call, said)

    def _function(self, item: PlanItem) -> Comparison:
        assert item.call is not None
        function = plan.registered_function(self.how.functions, item.node)
        assert function is not None
        try:
            found = function(**item.arguments)
        except Exception as error:  # it is a program's own: whatever it raises is what came of it
            return compare.compare_errors(item.call, f"{type(error).__name__}: {error}")
        return compare.compare_values(item.call, _to_json(found), (str(found), repr(found)), is_value=True)

    # What they have in common

    def _ran(self, command: Sequence[str], item: PlanItem, given: bytes = b"") -> process_limits.ProcessResult:
        """How a command ended in the sandbox; raises where it did not end by itself."""
        cwd = self.sandbox.to_sandbox(item.cwd) if self.sandbox.is_inside(item.cwd) else self.sandbox.project
        if not Path(cwd).is_dir():
            raise _FailedError(f"its folder {item.cwd} does not exist")
        ended = process_limits.run_process(command, cwd, self.held, given)
        if ended.code is None:
            raise _FailedError(ended.why)
        return ended

    def _error(self, item: PlanItem, error: DeclinedError | OSError) -> Comparison:
        """A tool's error, held against what is recorded; raises what leads out of the sandbox."""
        assert item.call is not None
        if isinstance(error, DeclinedError) and error.leads_out:
            raise error
        said = str(error) if isinstance(error, DeclinedError) else error.strerror or type(error).__name__
        if item.call.cell.ok is False:
            return Comparison(True, item.call.output, said)
        return compare.compare_texts(item.call.output, said)


def _to_recorded_paths(value: Any, sandbox: Sandbox) -> Any:
    if isinstance(value, str):
        return sandbox.to_recorded(value)
    if isinstance(value, dict):
        return {key: _to_recorded_paths(one, sandbox) for key, one in value.items()}
    return [_to_recorded_paths(one, sandbox) for one in value] if isinstance(value, list) else value


def _to_json(found: Any) -> Any:
    try:
        return json.loads(json.dumps(found, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return repr(found)
