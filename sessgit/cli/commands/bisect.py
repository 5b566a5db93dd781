"""`sessgit bisect`: the turn in which something first went bad."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.replay.bisect import ReportStep, TurnRange
    from sessgit.replay.bisecting.search import TestResult as Tested

_TIME = re.compile(r"([0-9]{1,7})(s|m|h|)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@frame.command("bisect", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation, address: options.Address = "",
    command: Annotated[
        str,
        typer.Option("--run", metavar="COMMAND", help="Run COMMAND at the project's commits.",
                     show_default=False),
    ] = "",
    pattern: Annotated[
        str,
        typer.Option("--cell-fails", metavar="REGEX", help="Check how the calls that match ended.",
                     show_default=False),
    ] = "",
    good: Annotated[
        int | None, typer.Option("--good", metavar="N", help="A turn that was good (default: the first).",
                                 show_default=False),
    ] = None,
    bad: Annotated[
        int | None, typer.Option("--bad", metavar="N", help="A turn that is bad (default: the last).",
                                 show_default=False),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Stop a run after 90s, 5m, 1h and call it bad.",
                          show_default=False),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the command's output on standard error.")
    ] = False,
) -> Answer:  # fmt: skip
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
    from sessgit.errors import UsageError
    from sessgit.replay import bisect as bisects
    from sessgit.replay.bisecting import cells
    from sessgit.replay.bisecting.commands import BisectCommand

    if bool(command.strip()) == bool(pattern):
        raise UsageError(
            "bisect needs either --run COMMAND or --cell-fails REGEX.",
            "`sessgit bisect --run 'python -m pytest -q'` runs the tests of each turn.",
        )
    if pattern and (timeout or verbose):
        raise UsageError("--timeout and --verbose need --run.", "--cell-fails runs no command.")
    limit = _seconds(timeout) if timeout else None
    if pattern:
        cells.compile_pattern(pattern)
    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "bisect compares whole turns.", f"`sessgit bisect {here.ident(found.branch.name)}@{found.turn}`"
        )
    span = _span(here, found, good, bad)
    report = _reporting(here, runs=bool(command))
    if pattern:
        done = bisects.bisect_by_cells(here.store, here.index, found.branch, span, pattern, report)
    else:
        hear = _hear if verbose else lambda data: None
        with render.leaving_in_order():
            asked = BisectCommand(command, os.environ, limit, hear)
            done = bisects.bisect_by_command(here.store, here.index, found.branch, span, asked, report)
    calls = page.calls_of(here, done)
    return Answer(lambda: page.as_json(done, command, pattern, calls), page.page(here, done, calls))


def _seconds(said: str) -> float:
    from sessgit.errors import UsageError

    match = _TIME.fullmatch(said)
    if match is None or not int(match[1]):
        raise UsageError(f"“{said}” is not a duration", "Use 90s, 5m or 1h.")
    return float(int(match[1]) * _UNITS[match[2]])


def _span(here: Invocation, found: ResolvedTarget, good: int | None, bad: int | None) -> TurnRange:
    """The turns to look at; raises NotFoundError for one that is not there, UsageError where they run backwards."""
    from sessgit.errors import NotFoundError, UsageError
    from sessgit.history import resolve
    from sessgit.model.address import Address
    from sessgit.replay.bisect import TurnRange

    def number(turn: int) -> int:
        return resolve.resolve_target(here.index, Address(found.branch.name, turn), here.where).turn or 0

    short, turns = here.ident(found.branch.name), found.state.turns
    if turns < 2:
        raise NotFoundError(f"{short} has fewer than two turns", "`sessgit ls` lists other conversations.")
    last = turns if found.turn is None else found.turn
    span = TurnRange(1 if good is None else number(good), last if bad is None else number(bad))
    if not 0 < span.good < span.bad:
        raise UsageError(
            f"the good turn must come before the bad one, but {span.good} does not come before {span.bad}.",
            f"{short} has turns 1 to {turns}.",
        )
    return span


def _reporting(here: Invocation, *, runs: bool) -> ReportStep:
    """On a terminal each step is told as it goes."""
    if not here.error_terminal:
        return lambda turn, left, answer: None

    def report(turn: int, left: int, answer: Tested | None) -> None:
        from sessgit.cli import text

        if answer is not None:
            took = f"  {answer.seconds:.1f}s" if answer.seconds is not None else ""
            render.tell(f"  turn {turn}: {answer.verdict}  {answer.why}{took}".rstrip())
        elif runs:
            render.tell(f"({text.counted(left, 'turn')} left, about {text.counted(left.bit_length(), 'step')})")

    return report


def _hear(data: bytes) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
