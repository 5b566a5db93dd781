"""What `bisect` prints: the turn in which something broke, how that shows, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells, code_diff, turn_pieces
from sessgit.history.cells import CellDetail, Node, cell_at, cell_details
from sessgit.history.code import difference
from sessgit.model import canonical
from sessgit.replay.bisect import BisectResult
from sessgit.store.index import Row

_MARKS = {"good": ("✓", "green"), "bad": ("✗", "red"), "skip": ("·", "dim")}
_OUTPUT = 10
_CALLS = 6
_FILES = 8
_RANGES = 20


@dataclass(frozen=True, slots=True)
class DecidingCalls:
    """The calls that decided about the good turn and the bad one, by the turns' numbers; none if a command was run."""

    nodes: Mapping[int, list[Node]]
    details: Mapping[str, CellDetail]


def deciding_calls(here: Invocation, result: BisectResult) -> DecidingCalls:
    """Return the calls that decided, with their details."""
    nodes = {
        row.turn: [
            cell_at(here.context, result.branch, row.turn, str(ordinal)) for ordinal in result.steps[row.turn].cells
        ]
        for row in (result.good, result.bad)
    }
    every = [node for group in nodes.values() for node in group]
    rows = (result.good, result.bad)
    return DecidingCalls(nodes, cell_details(here.store, result.branch, rows, every) if every else {})


def page(here: Invocation, result: BisectResult, calls: DecidingCalls) -> Iterator[str]:
    """Yield the first bad turn and the good one before it, what happened between them, and what to do next."""
    yield from blocks.session_heading(here, result.branch)
    yield ""
    yield from blocks.paragraph(here, _verdict(result), "bold")
    yield ""
    for row in (result.good, result.bad):
        yield from _turn(here, result, row, calls)
    yield from _changes(here, result)
    if output := [line for line in text.plain(result.steps[result.bad.turn].output) if line.strip()]:
        yield ""
        yield here.paint("dim", "Output of the command:")
        yield from (f"  {text.cut(line, here.width - 2)}" for line in output[-_OUTPUT:])
    yield ""
    yield from _steps(here, result)
    yield ""
    yield from _next_commands(here, result)


def _verdict(result: BisectResult) -> str:
    first, last = result.good.turn + 1, result.bad.turn
    if result.is_exact:
        return f"Turn {last} is the first bad turn."
    if last == first + 1:
        return f"The first bad turn is {first} or {last}: {first} cannot be tested."
    return f"The first bad turn is one of {first} to {last}: those before {last} cannot be tested."


def _turn(here: Invocation, result: BisectResult, row: Row, calls: DecidingCalls) -> Iterator[str]:
    """Yield a turn with its verdict, and the calls that decided it."""
    test = result.steps[row.turn]
    mark, style = _MARKS[test.verdict]
    number = f"{mark} {row.turn:>{len(str(result.bad.turn))}}  "
    indent = " " * len(number)
    commit = here.paint("yellow", f"{test.commit[:8]}  ") if test.commit else ""
    end = "  ".join(filter(None, (text.clean(test.why), turn_pieces.duration(test.seconds))))
    title = text.clean(here.index.title(row), 200)
    yield text.spread(here.paint(style, number) + commit, title, here.paint("dim", end), here.width)
    nodes = calls.nodes[row.turn]
    if len(nodes) > _CALLS:
        yield here.paint("dim", f"{indent}{text.counted(len(nodes) - _CALLS, 'earlier call')}, then")
    lines = cells.CellLines(here, result.branch.state.project, nodes[-_CALLS:], calls.details)
    yield from (indent + lines.line(node, here.width - len(indent)) for node in nodes[-_CALLS:])


def _changes(here: Invocation, result: BisectResult) -> Iterator[str]:
    """Yield the commits between the two turns, or else the files that tools changed."""
    if result.code is not None:
        yield ""
        yield from code_diff.section(here, result.code)
    elif result.files:
        project = result.branch.state.project
        names = [turn_pieces.path(here, project, name, here.width - 12) for name in result.files]
        yield ""
        yield from blocks.field(here, "Changed", text.some(names, _FILES), width=10, between="  ")


def _steps(here: Invocation, result: BisectResult) -> Iterator[str]:
    """Yield the turns that were tested, and those that could not be."""
    steps = sorted(result.steps.items())
    commits = len({test.commit for _, test in steps if test.seconds is not None})
    at = f", at {text.counted(commits, 'commit')}" if commits else ""
    marks = " ".join(f"{turn}{_MARKS[test.verdict][0]}" for turn, test in steps)
    yield from blocks.paragraph(here, f"Tested {text.counted(len(steps), 'turn')}{at}: {marks}")
    skipped = {turn: test.why for turn, test in steps if test.verdict == "skip"} | dict(result.untested)
    by_reason: dict[str, list[int]] = {}
    for turn, reason in sorted(skipped.items()):
        by_reason.setdefault(reason, []).append(turn)
    for reason, turns in by_reason.items():
        yield from blocks.paragraph(here, f"Skipped {_ranges(turns)}: {text.clean(reason)}.")


def _next_commands(here: Invocation, result: BisectResult) -> Iterator[str]:
    short, bad = here.ident(result.branch.name), result.bad.turn
    commands = {
        f"sessgit show {short}@{bad}": "what was said and done",
        f"sessgit fork {short} --at {result.good.turn}": "continue from before it",
    }
    if result.files:
        file = text.clean(turn_pieces.path(here, result.branch.state.project, result.files[-1], 200))
        commands[f"sessgit why {shlex.quote(file)} {short}@{bad}"] = "how the file was written"
    fitting = [command for command, purpose in commands.items() if text.width(f"{command}  {purpose}") <= here.width]
    columns = max(map(text.width, fitting), default=0)
    for command, purpose in commands.items():
        line = f"{command.ljust(columns)}  {purpose}"
        yield line if text.width(line) <= here.width else command


def _ranges(turns: Iterable[int]) -> str:
    """`3, 5-9`."""
    ranges = []
    for _, group in groupby(enumerate(turns), key=lambda pair: pair[1] - pair[0]):
        run = [str(turn) for _, turn in group]
        ranges.append("-".join(dict.fromkeys([run[0], run[-1]])))
    return ", ".join(text.some(ranges, _RANGES))


def as_json(result: BisectResult, command: str, pattern: str, calls: DecidingCalls) -> dict[str, Any]:
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
        "code": difference.code_json(result.code) if result.code is not None else None,
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
