"""What a command says of turns: it is run at the commits that the project had at their ends.

Its exit code means what it means to `git bisect run`: 0 is good, 125 cannot tell, up to 127 is bad, more is no answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history.code.git import Env, Head
from sessgit.replay.bisecting.search import TestResult, last_words
from sessgit.replay.bisecting.worktree import BisectWorktree
from sessgit.replay.sandbox import process_limits

OnOutput = Callable[[bytes], None]

_SKIP_CODE = 125
_MAX_CODE = 127
_KEPT_OUTPUT = 16_384
"""Bytes of what a command prints, the last ones."""
_GRACE_SECONDS = 2.0
"""Seconds that a command gets to end by itself when it is stopped."""


@dataclass(frozen=True, slots=True)
class BisectCommand:
    """A command for the shell, the environment it runs in, and how many seconds it may take, None for any time.

    `hear` is given what it prints, as it comes."""

    line: str
    env: Env
    limit: float | None = None
    on_output: OnOutput = lambda data: None


def command_tester(
    bench: BisectWorktree, session: str, heads: Mapping[int, Head], command: BisectCommand
) -> Callable[[int], TestResult]:
    """Says of a turn, by its number, how the command ends at its head; each commit is tried once.

    Raises SessgitError where a command ends with a code that is no answer.
    """
    known: dict[str, TestResult] = {}

    def ask(turn: int) -> TestResult:
        head = heads[turn]
        if head.commit not in known:
            known[head.commit] = _try_commit(bench, session, turn, head, command)
        return known[head.commit]

    return ask


def _try_commit(bench: BisectWorktree, session: str, turn: int, head: Head, command: BisectCommand) -> TestResult:
    if not bench.has(head.commit):
        return TestResult("skip", f"commit {head.commit[:8]} no longer exists", head.commit)
    folder = bench.go(head)
    env = {name: value for name, value in command.env.items() if not name.startswith("GIT_")}
    env |= {
        "SESSGIT_BISECT_TURN": str(turn),
        "SESSGIT_BISECT_SESSION": session,
        "SESSGIT_BISECT_COMMIT": head.commit,
        "SESSGIT_OFF": "1",
    }
    began = time.monotonic()
    code, said = _run_command(command, folder, env)
    seconds = round(time.monotonic() - began, 3)
    output = said.decode("utf-8", "replace")
    if code is None:
        return TestResult("bad", f"stopped after {command.limit:g}s", head.commit, None, seconds, output)
    if code > _MAX_CODE:
        last = f": {words}" if (words := last_words(output)) else ""
        raise SessgitError(
            f"the command ended with {code} at turn {turn} ({head.commit[:8]}), which means to stop{last}",
            "0 is good, 125 cannot be tested, others up to 127 are bad; higher codes stop the search.",
        )
    verdict = "good" if code == 0 else "skip" if code == _SKIP_CODE else "bad"
    return TestResult(verdict, f"exit {code}", head.commit, code, seconds, output)  # type: ignore[arg-type]


def _run_command(command: BisectCommand, folder: str, env: Mapping[str, str]) -> tuple[int | None, bytes]:
    """The exit code, that of a shell where a signal ended it, or None where time was up; and the end of the output.

    Nothing that the command started goes on afterwards.
    """
    began, said = time.monotonic(), bytearray()
    held = process_limits.unsandboxed(env, command.limit or 0, _GRACE_SECONDS)
    with process_limits.start_process(
        ["/bin/sh", "-c", command.line], folder, held, process_limits.Channels()
    ) as running:
        while data := os.read(running.output, 65_536):
            said += data
            del said[:-_KEPT_OUTPUT]
            command.on_output(data)
        code, why = running.wait()
    if code is None and (command.limit is None or time.monotonic() - began < command.limit):
        raise NotFoundError(f"cannot start the command: {why}")
    return code, bytes(said)
