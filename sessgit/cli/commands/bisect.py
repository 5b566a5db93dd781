"""`sessgit bisect`: the turn in which something first went bad."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from sessgit.cli import frame, render, session_argument, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import ADDRESS, option
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import ResolvedTarget
from sessgit.model.address import Address

if TYPE_CHECKING:
    from sessgit.replay.bisect import ReportStep, TestResult, TurnRange

_DURATION = re.compile(r"([0-9]{1,7})(s|m|h|)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@frame.command("bisect", reads=True, requires={"--timeout": "--run", "--verbose": "--run"})
def run(
    here: Invocation,
    address: str = ADDRESS,
    command: str = option("--run COMMAND", "Run COMMAND at the project's commits."),
    pattern: str = option("--cell-fails REGEX", "Check how the calls that match ended."),
    good: int | None = option("--good N", "A turn that was good (default: the first)."),
    bad: int | None = option("--bad N", "A turn that is bad (default: the last)."),
    timeout: str = option("--timeout TIME", "Stop a run after 90s, 5m, 1h and call it bad."),
    verbose: bool = option("-v, --verbose", "Show the command's output on standard error."),
) -> Answer:
    """Find the turn in which something broke.

    --run runs a shell command at the commits that the project had at the ends of turns, in a temporary git worktree.
    Your files are not touched; uncommitted changes and ignored files are not there. Exit codes mean what they mean to
    git bisect run: 0 is good, 125 cannot be tested, others up to 127 are bad, higher ones stop the search. The command
    gets SESSGIT_BISECT_TURN, SESSGIT_BISECT_SESSION and SESSGIT_BISECT_COMMIT in its environment.

    --cell-fails runs nothing. A turn is bad if a matching call failed or ended with an exit code other than 0, and good
    if all matching calls worked. The regular expression is searched in the tool and its argument, as in “Bash python -m
    pytest”; (?i) at its start ignores case.

    Turns that cannot be tested are skipped. bisect assumes that what broke stays broken. @N searches the turns up to N.
    """
    from sessgit.cli.pages import bisect as page
    from sessgit.replay import bisect as bisects

    if bool(command.strip()) == bool(pattern):
        hint = "`sessgit bisect --run 'python -m pytest -q'` runs the tests of each turn."
        raise UsageError("bisect needs either --run COMMAND or --cell-fails REGEX.", hint)
    limit = _parse_duration(timeout) if timeout else None
    compiled = bisects.compile_pattern(pattern) if pattern else None
    target = session_argument.whole_turn(here, address, "bisect")
    span = _range(here, target, good, bad)
    report = _reporter(here, runs=bool(command))
    if compiled is not None:
        result = bisects.bisect_by_cells(here.context, target.branch, span, compiled, report)
    else:
        with render.exit_on_signals():
            output = _print_output if verbose else lambda data: None
            task = bisects.BisectCommand(command, os.environ, limit, output)
            result = bisects.bisect_by_command(here.context, target.branch, span, task, report)
    calls = page.deciding_calls(here, result)
    return Answer(lambda: page.as_json(result, command, pattern, calls), page.page(here, result, calls))


def _parse_duration(typed: str) -> float:
    match = _DURATION.fullmatch(typed)
    if match is None or not int(match[1]):
        raise UsageError(f"“{typed}” is not a duration", "Use 90s, 5m or 1h.")
    return float(int(match[1]) * _UNITS[match[2]])


def _range(here: Invocation, target: ResolvedTarget, good: int | None, bad: int | None) -> TurnRange:
    """Return the turns to search; raise NotFoundError for one that does not exist, UsageError if they run backwards."""
    from sessgit.replay.bisect import TurnRange

    name, turns = here.ident(target.branch.name), target.state.turns
    if turns < 2:
        raise NotFoundError(f"{name} has fewer than two turns", "`sessgit ls` lists other conversations.")

    def number(turn: int | None, default: int) -> int:
        if turn is None:
            return default
        return resolve.resolve_target(here.index, Address(target.branch.name, turn), here.where).turn or 0

    first, last = number(good, 1), number(bad, turns if target.turn is None else target.turn)
    if not 0 < first < last:
        message = f"the good turn must come before the bad one, but {first} does not come before {last}."
        raise UsageError(message, f"{name} has turns 1 to {turns}.")
    return TurnRange(first, last)


def _reporter(here: Invocation, *, runs: bool) -> ReportStep:
    """Return a function that prints each step, if standard error is a terminal."""

    def report(turn: int, left: int, result: TestResult | None) -> None:
        if not here.terminal.shows_errors:
            return
        if result is not None:
            seconds = f"  {result.seconds:.1f}s" if result.seconds is not None else ""
            render.tell(f"  turn {turn}: {result.verdict}  {result.why}{seconds}".rstrip())
        elif runs:
            render.tell(f"({text.counted(left, 'turn')} left, about {text.counted(left.bit_length(), 'step')})")

    return report


def _print_output(data: bytes) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
