"""The turn in which something went bad: what tells it, and what to look at next. And its JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells, code_diff, turn_pieces
from sessgit.cli.render import Paint
from sessgit.history.cells import listing
from sessgit.history.cells.details import NO_DETAIL, CellDetail, cell_details
from sessgit.history.cells.graph import Node
from sessgit.history.code import difference
from sessgit.model import canonical
from sessgit.replay.bisect import BisectResult
from sessgit.replay.bisecting.search import TestResult
from sessgit.store import layout
from sessgit.store.sqlite.rows import Row

_MARKS = {"good": ("✓", "green"), "bad": ("✗", "red"), "skip": ("·", "dim")}
_OUTPUT = 10
"""So many lines of what the command printed are shown, the last ones."""
_CALLS = 6
_FILES = 8
_RANGES = 20


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that decided about the good turn and the bad one, by the turns' numbers, and what is known of them."""

    nodes: Mapping[int, list[Node]]
    details: Mapping[str, CellDetail]


def calls_of(here: Invocation, found: BisectResult) -> Calls:
    """The calls that decided; there are none where a command was run."""
    nodes = {
        turn: [listing.cell_at(here.store, here.index, found.branch, turn, str(ordinal)) for ordinal in answer.cells]
        for turn, answer in ((found.good.turn, found.before), (found.bad.turn, found.answer))
    }
    every = [node for some in nodes.values() for node in some]
    return Calls(nodes, cell_details(here.store, found.branch, (found.good, found.bad), every) if every else {})


def page(here: Invocation, found: BisectResult, calls: Calls) -> Iterator[str]:
    """The first bad turn and the good one before it, what lies between them, how that was found, what to do next."""
    paint = Paint(here.colour)
    yield cells.header(here, found.branch)
    yield ""
    yield from (paint("bold", line) for line in text.wrap(_verdict(found), here.width))
    yield ""
    for row, answer in ((found.good, found.before), (found.bad, found.answer)):
        yield from _end(here, found, row, answer, calls)
    yield from _between(here, found)
    yield from _printed(here, found.answer)
    yield ""
    yield from _way(here, found)
    yield ""
    yield from _next(here, found)


def _verdict(found: BisectResult) -> str:
    if found.is_exact:
        return f"Turn {found.bad.turn} is the first bad turn."
    first, last = found.good.turn + 1, found.bad.turn
    if last == first + 1:
        return f"The first bad turn is {first} or {last}: {first} cannot be tested."
    return f"The first bad turn is one of {first} to {last}: those before {last} cannot be tested."


def _end(here: Invocation, found: BisectResult, row: Row, answer: TestResult, calls: Calls) -> Iterator[str]:
    """The turn, and the calls that decided it."""
    paint, (mark, style) = Paint(here.colour), _MARKS[answer.verdict]
    wide = len(str(found.bad.turn))
    start = f"{mark} {row.turn:>{wide}}  "
    commit = f"{answer.commit[:8]}  " if answer.commit else ""
    end = "  ".join(part for part in (text.clean(answer.why), turn_pieces.duration(answer.seconds)) if part)
    room = max(1, here.width - text.width(start) - len(commit) - text.width(end) - 2 * bool(end))
    title = text.fit(_title(here, row), room)
    yield f"{paint(style, start)}{paint('yellow', commit)}{title}{'  ' if end else ''}{paint('dim', end)}"
    nodes = calls.nodes[row.turn]
    lines = cells.Lines(here, found.branch.state.project, nodes[-_CALLS:], calls.details)
    if len(nodes) > _CALLS:
        yield paint("dim", f"{' ' * (wide + 4)}{text.counted(len(nodes) - _CALLS, 'earlier call')}, then")
    for node in nodes[-_CALLS:]:
        yield f"{' ' * (wide + 4)}{lines.line(node, here.width - wide - 4)}"


def _title(here: Invocation, row: Row) -> str:
    return text.clean(here.index.title(row), 200)


def _between(here: Invocation, found: BisectResult) -> Iterator[str]:
    """What was committed between the two, or else which files tools changed."""
    if found.code is not None:
        yield ""
        yield from code_diff.section(here, found.code)
    elif found.files:
        project = found.branch.state.project
        names = [turn_pieces.path(here, project, name, here.width - 12) for name in found.files[:_FILES]]
        more = [f"and {len(found.files) - _FILES} more"] if len(found.files) > _FILES else []
        yield ""
        for number, line in enumerate(text.fold([*names, *more], here.width - 10, "  ")):
            yield f"{'' if number else 'Changed':<10}{line}"


def _printed(here: Invocation, answer: TestResult) -> Iterator[str]:
    lines = [line for line in text.plain(answer.output) if line.strip()] if answer.output else []
    if lines:
        yield ""
        yield Paint(here.colour)("dim", "Output of the command:")
        for line in lines[-_OUTPUT:]:
            yield f"  {text.cut(line, here.width - 2)}"


def _way(here: Invocation, found: BisectResult) -> Iterator[str]:
    tested = sorted(found.steps)
    told = " ".join(f"{turn}{_MARKS[answer.verdict][0]}" for turn, answer in tested)
    runs = len({answer.commit for _, answer in tested if answer.seconds is not None})
    ran = f", at {text.counted(runs, 'commit')}" if runs else ""
    yield from text.wrapped(f"Tested {text.counted(len(tested), 'turn')}{ran}: {told}", here.width)
    why = {turn: answer.why for turn, answer in tested if answer.verdict == "skip"} | dict(found.passed_over)
    reasons: dict[str, list[int]] = {}
    for turn in sorted(why):
        reasons.setdefault(why[turn], []).append(turn)
    for reason, turns in reasons.items():
        yield from text.wrapped(f"Skipped {_ranges(turns)}: {text.clean(reason)}.", here.width)


def _next(here: Invocation, found: BisectResult) -> Iterator[str]:
    short, bad, good = here.ident(found.branch.name), found.bad.turn, found.good.turn
    commands = {
        f"sessgit show {short}@{bad}": "what was said and done",
        f"sessgit fork {short} --at {good}": "continue from before it",
    }
    if found.files:
        file = shlex.quote(text.clean(turn_pieces.path(here, found.branch.state.project, found.files[-1], 200)))
        commands[f"sessgit why {file} {short}@{bad}"] = "how the file was written"
    told = {command for command, said in commands.items() if text.width(command) + 2 + len(said) <= here.width}
    wide = max(map(text.width, told), default=0)
    for command, said in commands.items():
        fits = command in told and wide + 2 + len(said) <= here.width
        yield f"{text.fit(command, wide)}  {said}" if fits else command


def _ranges(turns: Iterable[int]) -> str:
    """`3, 5-9`."""
    runs = []
    for _, some in groupby(enumerate(turns), key=lambda one: one[1] - one[0]):
        run = [turn for _, turn in some]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    left = len(runs) - _RANGES
    return ", ".join(runs if left <= 1 else [*runs[:_RANGES], f"and {left} more"])


def as_json(found: BisectResult, command: str, pattern: str, calls: Calls) -> dict[str, Any]:
    """Return what `bisect --json` prints."""
    name = found.branch.name
    return {
        "session_id": layout.session_of(name),
        "branch": name,
        "command": command or None,
        "pattern": pattern or None,
        "from": found.span.good,
        "to": found.span.bad,
        "exact": found.is_exact,
        "first_bad": _turn_json(found.bad, found.answer, calls),
        "last_good": _turn_json(found.good, found.before, calls),
        "between": list(range(found.good.turn + 1, found.bad.turn + 1)),
        "steps": [
            {
                "turn": turn, "verdict": answer.verdict, "reason": answer.why, "head": answer.commit or None,
                "exit_code": answer.exit_code, "seconds": answer.seconds,
            }
            for turn, answer in found.steps
        ],
        "skipped": [{"turn": turn, "reason": why} for turn, why in sorted(found.passed_over.items())],
        "files": list(found.files),
        "code": difference.code_json(found.code) if found.code is not None else None,
        "next": {
            "show": f"sessgit show {name}@{found.bad.turn}",
            "fork": f"sessgit fork {name} --at {found.good.turn}",
            "why": f"sessgit why {shlex.quote(found.files[-1])} {name}@{found.bad.turn}" if found.files else None,
        },
    }  # fmt: skip


def _turn_json(row: Row, answer: TestResult, calls: Calls) -> dict[str, Any]:
    return {
        "turn": row.turn,
        "commit": row.commit,
        "prompt": row.title,
        "time": canonical.rfc3339(row.time),
        "head": answer.commit or None,
        "exit_code": answer.exit_code,
        "output": answer.output,
        "cells": [cells.cell_json(node, calls.details.get(node.address, NO_DETAIL)) for node in calls.nodes[row.turn]],
    }
