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
from sessgit.model.progress import Progress, unseen
from sessgit.replay import compare, files, plan
from sessgit.replay.compare import Compared, Outcome
from sessgit.replay.plan import Functions, Item, Plan
from sessgit.replay.sandbox import process_limits, repl
from sessgit.replay.sandbox.process_limits import Confinement, Limits
from sessgit.replay.sandbox.workspace import Sandbox

_PROMPTS = ("prompt", "query", "question", "input", "text")


@dataclass(frozen=True, slots=True)
class How:
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
class Result:
    """What came of a cell: `failed` is one that did not run to an end, and `why` says the reason, as of one that was
    skipped. `ms` is how long it took now, None where it did not run."""

    item: Item
    outcome: Outcome
    why: str = ""
    compared: Compared | None = None
    ms: float | None = None


def run(found: Plan, sandbox: Sandbox, how: How, progress: Progress = unseen) -> tuple[Result, ...]:
    """Runs all cells of a plan in their order. Whatever a cell does is its result: nothing is raised for it.

    Raises SessgitError, before any cell runs, where a cell needs a sandbox and this machine has none.
    """
    held = Confinement(
        sandbox.writable, sandbox.env, how.limits, how.network, how.unconfined, readable=sandbox.readable,
        hidden=sandbox.hidden,
    )  # fmt: skip
    if any(item.kind in ("shell", "repl", "search") for item in found.items):
        process_limits.check(held)
    with ExitStack() as stack:
        runner = _Runner(agents.of(found.branch.state), sandbox, how, held, stack)
        results = []
        for done, item in enumerate(found.items):
            progress(done, len(found.items))
            results.append(runner.run(item))
    return tuple(results)


def skipped(found: Plan) -> tuple[Result, ...]:
    """What is said of a plan of which nothing can be run."""
    return tuple(Result(item, "skipped", item.why) for item in found.items)


class _FailedError(Exception):
    """A cell did not run to an end."""


class _SkippedError(Exception):
    """A cell cannot be run here."""


class _Runner:
    def __init__(self, agent: Agent, sandbox: Sandbox, how: How, held: Confinement, stack: ExitStack) -> None:
        self.agent, self.sandbox, self.how, self.held, self.stack = agent, sandbox, how, held, stack
        self.repl: repl.Repl | None = None

    def run(self, item: Item) -> Result:
        if item.kind is None or item.call is None:
            return Result(item, "skipped", item.why)
        ways: Mapping[str, Callable[[Item], Compared]] = {
            "shell": self._shell, "read": self._read, "search": self._search, "write": self._write, "repl": self._repl,
            "model": self._model, "function": self._function,
        }  # fmt: skip
        began = time.monotonic()
        try:
            compared = ways[item.kind](item)
        except _SkippedError as why:
            return Result(item, "skipped", str(why))
        except (_FailedError, DeclinedError, SessgitError, OSError, ValueError, RecursionError) as why:
            said = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
            return Result(item, "failed", said, ms=(time.monotonic() - began) * 1000)
        ms = (time.monotonic() - began) * 1000
        return Result(item, "equal" if compared.equal else "differs", "", compared, ms)

    # One for each kind

    def _shell(self, item: Item) -> Compared:
        assert item.call is not None
        command = item.arguments.get("command")
        if not isinstance(command, str) or "\0" in command:
            raise _SkippedError("its arguments contain no command")
        shell = shutil.which("bash", path=self.held.env.get("PATH")) or "/bin/sh"
        ended = self._ran([shell, "-c", self.sandbox.inward(command)], item)
        output = self.sandbox.outward(ended.output.decode("utf-8", "replace"))
        assert ended.code is not None
        return compare.shell(item.call, ended.code, output)

    def _read(self, item: Item) -> Compared:
        assert item.call is not None
        place = self.sandbox.inward(plan.path(item))
        try:
            text = files.text(self.sandbox.project, place)
            sources = self.agent.tools.sources(item.call.tool, text)
            if sources is not None:
                return compare.contained(item.call, sources)
            lines = files.lines(text, item.arguments)
        except (DeclinedError, OSError) as error:
            return self._error(item, error)
        outward = [(number, self.sandbox.outward(line)) for number, line in lines]
        return compare.read(item.call, outward)

    def _write(self, item: Item) -> Compared:
        assert item.call is not None
        place = self.sandbox.inward(plan.path(item))
        edit = partial(self.agent.tools.written, item.call.tool, item.arguments)
        try:
            wrote = files.write(self.sandbox.project, place, edit)
        except (DeclinedError, OSError) as error:
            return self._error(item, error)
        if item.call.cell.ok is False:
            return Compared(False, item.call.output, "it was written", compare.diff(item.call.output, "it was written"))
        return compare.written(self.agent, item.call, wrote.before, wrote.after)

    def _search(self, item: Item) -> Compared:
        assert item.call is not None
        place = plan.path(item)
        folder = self.sandbox.inward(place)
        files.inside(self.sandbox.project, folder)
        job = {
            "tool": item.node.cell.operation,
            "folder": folder,
            "arguments": dict(item.arguments),
        }
        if not Path(folder).exists() and item.node.cell.operation != "LS":
            return compare.search(item.call, "", (self.sandbox.source, place))
        if not Path(folder).exists():
            return self._error(item, FileNotFoundError(2, "No such file or directory"))
        ended = self._ran(process_limits.python("file_search"), item, json.dumps(job).encode())
        if ended.code:
            last = ended.output.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return self._error(item, DeclinedError(last or "the search failed"))
        output = self.sandbox.outward(ended.output.decode("utf-8", "replace"))
        return compare.search(item.call, output, (self.sandbox.source, place))

    def _repl(self, item: Item) -> Compared:
        assert item.call is not None
        if self.repl is None:
            self.repl = self.stack.enter_context(repl.started(self.sandbox.project, self.held))
        if self.repl.why:
            raise _FailedError(f"the Python process with the variables is gone: {self.repl.why}")
        told = self.repl.run(self.sandbox.inward(plan.code(item.arguments) or ""))
        if told is None:
            raise _FailedError(self.repl.why)
        if told.get("memory"):
            raise _FailedError("it exceeded the memory limit")
        error, printed = (self.sandbox.outward(str(told.get(key, ""))) for key in ("error", "printed"))
        if error:
            return compare.error(item.call, error)
        shown = self.sandbox.outward(str(told.get("repr", "")))
        value = _outward(told.get("json"), self.sandbox) if told.get("is_json") else None
        both = "\n".join(part for part in (printed.rstrip(), shown) if part)
        return compare.value(item.call, value, (printed.rstrip(), shown, both), is_value=bool(told.get("is_json")))

    def _model(self, item: Item) -> Compared:
        assert item.call is not None
        found = next((item.arguments[key] for key in _PROMPTS if isinstance(item.arguments.get(key), str)), None)
        prompt = found if found is not None else compare.as_text(dict(item.arguments))
        free = process_limits.free({**self.how.env, "SESSGIT_OFF": "1"}, self.how.limits.seconds)
        ended = process_limits.run(["/bin/sh", "-c", self.how.llm], self.how.cwd, free, prompt.encode(), errors=False)
        if ended.code is None:
            raise _FailedError(ended.why)
        if ended.code:
            raise _FailedError(f"“{self.how.llm}” exited with code {ended.code}")
        said = ended.output.decode("utf-8", "replace").strip()
        return compare.answer(item.call, said)

    def _function(self, item: Item) -> Compared:
        assert item.call is not None
        function = plan.function(self.how.functions, item.node)
        assert function is not None
        try:
            found = function(**item.arguments)
        except Exception as error:  # it is a program's own: whatever it raises is what came of it
            return compare.error(item.call, f"{type(error).__name__}: {error}")
        return compare.value(item.call, _as_json(found), (str(found), repr(found)), is_value=True)

    # What they have in common

    def _ran(self, command: Sequence[str], item: Item, given: bytes = b"") -> process_limits.Ended:
        """How a command ended in the sandbox; raises where it did not end by itself."""
        cwd = self.sandbox.inward(item.cwd) if self.sandbox.is_inside(item.cwd) else self.sandbox.project
        if not Path(cwd).is_dir():
            raise _FailedError(f"its folder {item.cwd} does not exist")
        ended = process_limits.run(command, cwd, self.held, given)
        if ended.code is None:
            raise _FailedError(ended.why)
        return ended

    def _error(self, item: Item, error: DeclinedError | OSError) -> Compared:
        """A tool's error, held against what is recorded; raises what leads out of the sandbox."""
        assert item.call is not None
        if isinstance(error, DeclinedError) and error.leads_out:
            raise error
        said = str(error) if isinstance(error, DeclinedError) else error.strerror or type(error).__name__
        if item.call.cell.ok is False:
            return Compared(True, item.call.output, said)
        return compare.texts(item.call.output, said)


def _outward(value: Any, sandbox: Sandbox) -> Any:
    if isinstance(value, str):
        return sandbox.outward(value)
    if isinstance(value, dict):
        return {key: _outward(one, sandbox) for key, one in value.items()}
    return [_outward(one, sandbox) for one in value] if isinstance(value, list) else value


def _as_json(found: Any) -> Any:
    try:
        return json.loads(json.dumps(found, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return repr(found)
