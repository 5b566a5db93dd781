"""`sessgit bisect`: the turn in which something first went bad."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from sessgit.cli import frame, operands, render, text
from sessgit.cli.commands import cells
from sessgit.cli.commands.diff import code_section
from sessgit.cli.frame import ADDRESS, Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import code_comparison, resolve
from sessgit.history.cells import CellDetail, Node, cell_at, cell_details
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen
from sessgit.model.ids import Address
from sessgit.replay import bisect as bisects
from sessgit.replay.bisect import BisectResult, TestResult, TurnRange
from sessgit.store.index import Row

_DURATION = re.compile(r"([0-9]{1,7})(s|m|h|)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@frame.command("bisect", reads=True, requires={"--timeout": "--run", "--verbose": "--run"})
def run(
    cli: Invocation,
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
    if bool(command.strip()) == bool(pattern):
        hint = "`sessgit bisect --run 'python -m pytest -q'` runs the tests of each turn."
        raise UsageError("bisect needs either --run COMMAND or --cell-fails REGEX.", hint)
    limit = _parse_duration(timeout) if timeout else None
    compiled = bisects.compile_pattern(pattern) if pattern else None
    target = operands.whole_turn(cli, address, "bisect")
    span = _range(cli, target, good, bad)

    def report(turn: int, left: int, result: TestResult | None) -> None:
        if not cli.terminal.shows_errors:
            return
        if result is not None:
            seconds = f"  {result.seconds:.1f}s" if result.seconds is not None else ""
            render.tell(f"  turn {turn}: {result.verdict}  {result.why}{seconds}".rstrip())
        elif command:
            render.tell(f"({text.counted(left, 'turn')} left, about {text.counted(left.bit_length(), 'step')})")

    if compiled is not None:
        result = bisects.bisect_by_cells(cli.context, target.branch, span, compiled, report)
    else:
        with render.exit_on_signals():
            output = _print_output if verbose else lambda data: None
            task = bisects.BisectCommand(command, os.environ, limit, output)
            result = bisects.bisect_by_command(cli.context, target.branch, span, task, report)
    calls = _deciding_calls(cli, result)
    return Answer(lambda: _as_json(result, command, pattern, calls), _result_lines(cli, result, calls))


def _parse_duration(typed: str) -> float:
    match = _DURATION.fullmatch(typed)
    if match is None or not int(match[1]):
        raise UsageError(f"“{typed}” is not a duration", "Use 90s, 5m or 1h.")
    return float(int(match[1]) * _UNITS[match[2]])


def _range(cli: Invocation, target: ResolvedTarget, good: int | None, bad: int | None) -> TurnRange:
    """Return the turns to search; raise NotFoundError for one that does not exist, UsageError if they run backwards."""
    name, turns = cli.ident(target.branch.name), target.state.turns
    if turns < 2:
        raise NotFoundError(f"{name} has fewer than two turns", "`sessgit ls` lists other conversations.")

    def number(turn: int | None, default: int) -> int:
        if turn is None:
            return default
        return resolve.resolve_target(cli.index, Address(target.branch.name, turn), cli.where).turn or 0

    first, last = number(good, 1), number(bad, turns if target.turn is None else target.turn)
    if not 0 < first < last:
        message = f"the good turn must come before the bad one, but {first} does not come before {last}."
        raise UsageError(message, f"{name} has turns 1 to {turns}.")
    return TurnRange(first, last)


def _print_output(data: bytes) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()


_MARKS = {"good": ("✓", "green"), "bad": ("✗", "red"), "skip": ("·", "dim")}
_OUTPUT = 10
_CALLS = 6
_FILES = 8
_RANGES = 20


@frozen
class DecidingCalls:
    """The calls that decided about the good turn and the bad one, by the turns' numbers; none if a command was run."""

    nodes: Mapping[int, list[Node]]
    details: Mapping[str, CellDetail]


def _deciding_calls(cli: Invocation, result: BisectResult) -> DecidingCalls:
    """Return the calls that decided, with their details."""
    rows = (result.good, result.bad)
    nodes = {
        row.turn: [
            cell_at(cli.context, result.branch, row.turn, str(ordinal)) for ordinal in result.steps[row.turn].cells
        ]
        for row in rows
    }
    every = [node for group in nodes.values() for node in group]
    return DecidingCalls(nodes, cell_details(cli.context, result.branch, every))


def _result_lines(cli: Invocation, result: BisectResult, calls: DecidingCalls) -> Iterator[str]:
    """Yield the first bad turn and the good one before it, what happened between them, and what to do next."""
    yield from text.session_heading(cli, result.branch)
    yield ""
    yield from text.paragraph(cli, _verdict(result), "bold")
    yield ""
    for row in (result.good, result.bad):
        yield from _turn(cli, result, row, calls)
    yield from _changes(cli, result)
    if output := [line for line in text.plain(result.steps[result.bad.turn].output) if line.strip()]:
        yield ""
        yield cli.paint("dim", "Output of the command:")
        yield from (f"  {text.cut(line, cli.width - 2)}" for line in output[-_OUTPUT:])
    yield ""
    yield from _steps(cli, result)
    yield ""
    yield from _next_commands(cli, result)


def _verdict(result: BisectResult) -> str:
    first, last = result.good.turn + 1, result.bad.turn
    if result.is_exact:
        return f"Turn {last} is the first bad turn."
    if last == first + 1:
        return f"The first bad turn is {first} or {last}: {first} cannot be tested."
    return f"The first bad turn is one of {first} to {last}: those before {last} cannot be tested."


def _turn(cli: Invocation, result: BisectResult, row: Row, calls: DecidingCalls) -> Iterator[str]:
    """Yield a turn with its verdict, and the calls that decided it."""
    test = result.steps[row.turn]
    mark, style = _MARKS[test.verdict]
    number = f"{mark} {row.turn:>{len(str(result.bad.turn))}}  "
    indent = " " * len(number)
    commit = cli.paint("yellow", f"{test.commit[:8]}  ") if test.commit else ""
    end = "  ".join(filter(None, (text.clean(test.why), text.duration(test.seconds))))
    title = text.clean(cli.index.title(row), 200)
    yield text.spread(cli.paint(style, number) + commit, title, cli.paint("dim", end), cli.width)
    nodes = calls.nodes[row.turn]
    if len(nodes) > _CALLS:
        yield cli.paint("dim", f"{indent}{text.counted(len(nodes) - _CALLS, 'earlier call')}, then")
    lines = cells.CellLines(cli, result.branch.state.project, nodes[-_CALLS:], calls.details)
    yield from (indent + lines.line(node, cli.width - len(indent)) for node in nodes[-_CALLS:])


def _changes(cli: Invocation, result: BisectResult) -> Iterator[str]:
    """Yield the commits between the two turns, or else the files that tools changed."""
    if result.code is not None:
        yield ""
        yield from code_section(cli, result.code)
    elif result.files:
        project = result.branch.state.project
        names = [text.path(cli, project, name, cli.width - 12) for name in result.files]
        yield ""
        yield from text.field(cli, "Changed", text.some(names, _FILES), least=10, between="  ")


def _steps(cli: Invocation, result: BisectResult) -> Iterator[str]:
    """Yield the turns that were tested, and those that could not be."""
    steps = sorted(result.steps.items())
    commits = len({test.commit for _, test in steps if test.seconds is not None})
    at = f", at {text.counted(commits, 'commit')}" if commits else ""
    marks = " ".join(f"{turn}{_MARKS[test.verdict][0]}" for turn, test in steps)
    yield from text.paragraph(cli, f"Tested {text.counted(len(steps), 'turn')}{at}: {marks}")
    skipped = {turn: test.why for turn, test in steps if test.verdict == "skip"} | dict(result.untested)
    by_reason: dict[str, list[int]] = {}
    for turn, reason in sorted(skipped.items()):
        by_reason.setdefault(reason, []).append(turn)
    for reason, turns in by_reason.items():
        ranges = ", ".join(text.some(humanize.format_ranges(turns, "-"), _RANGES))
        yield from text.paragraph(cli, f"Skipped {ranges}: {text.clean(reason)}.")


def _next_commands(cli: Invocation, result: BisectResult) -> Iterator[str]:
    short, bad = cli.ident(result.branch.name), result.bad.turn
    commands = {
        f"sessgit show {short}@{bad}": "what was said and done",
        f"sessgit fork {short} --at {result.good.turn}": "continue from before it",
    }
    if result.files:
        file = text.clean(text.path(cli, result.branch.state.project, result.files[-1], 200))
        commands[f"sessgit why {shlex.quote(file)} {short}@{bad}"] = "how the file was written"
    yield from text.table(cli, (Column(), Column(optional=True)), [*commands.items()])


def _as_json(result: BisectResult, command: str, pattern: str, calls: DecidingCalls) -> dict[str, Any]:
    """Return what `bisect --json` prints."""
    name, good, bad = result.branch.name, result.good.turn, result.bad.turn
    return {
        **cells.branch_json(result.branch),
        "command": command or None,
        "pattern": pattern or None,
        "from": result.span.good,
        "to": result.span.bad,
        "exact": result.is_exact,
        "first_bad": _turn_json(result, result.bad, calls),
        "last_good": _turn_json(result, result.good, calls),
        "between": list(range(good + 1, bad + 1)),
        "steps": [
            {
                "turn": turn, "verdict": test.verdict, "reason": test.why, "head": test.commit or None,
                "exit_code": test.exit_code, "seconds": test.seconds,
            }
            for turn, test in result.steps.items()
        ],
        "skipped": [{"turn": turn, "reason": why} for turn, why in sorted(result.untested.items())],
        "files": list(result.files),
        "code": code_comparison.code_json(result.code) if result.code is not None else None,
        "next": {
            "show": f"sessgit show {name}@{bad}",
            "fork": f"sessgit fork {name} --at {good}",
            "why": f"sessgit why {shlex.quote(result.files[-1])} {name}@{bad}" if result.files else None,
        },
    }  # fmt: skip


def _turn_json(result: BisectResult, row: Row, calls: DecidingCalls) -> dict[str, Any]:
    test = result.steps[row.turn]
    return {
        "turn": row.turn,
        "commit": row.commit,
        "prompt": row.title,
        "time": canonical.rfc3339(row.time),
        "head": test.commit or None,
        "exit_code": test.exit_code,
        "output": test.output,
        "cells": [cells.cell_json(node, calls.details) for node in calls.nodes[row.turn]],
    }
