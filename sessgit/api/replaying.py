"""Runs cells again with functions of a program."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from sessgit import agents
from sessgit.api.values import Cell, recorded_cell
from sessgit.model.conversation.content import Call
from sessgit.model.frozen import frozen
from sessgit.replay import compare, plan
from sessgit.replay.compare import Comparison, Outcome
from sessgit.replay.plan import ReplayPlan

Executors = Mapping[str | tuple[str, str], Callable[..., Any]]
"""Functions that take the arguments of a cell, by operation, or by type and operation."""
_NO_FUNCTION_REASON = "no function is registered for it"


@frozen
class Replayed:
    """The result of a cell that was run again: `equal` to the recorded one, `differs`, `failed`, or `skipped`, with
    `why`. `recorded` and `now` are the results as texts; `ms` is the time that it took now, None if it did not run."""

    cell: Cell
    outcome: Outcome
    why: str = ""
    recorded: str = ""
    now: str = ""
    ms: float | None = None


def run_cells(chosen: ReplayPlan, executors: Executors) -> list[Replayed]:
    """Run the cells that have a function, and return the results of all in order."""
    agent, out = agents.of(chosen.branch.state), list[Replayed]()
    for item in chosen.items:
        cell, call = recorded_cell(item.node.cell, item.node.turn, item.node.ordinal), item.call
        function = executors.get((cell.type, cell.operation)) or executors.get(cell.operation)
        if call is None or function is None:
            out.append(Replayed(cell, "skipped", item.why or _NO_FUNCTION_REASON))
        elif why := plan.skip_reason(agent, call):
            out.append(Replayed(cell, "skipped", why))
        else:
            began = time.monotonic()
            result = _compare_call(function, call)
            ms = (time.monotonic() - began) * 1000
            outcome: Outcome = "equal" if result.equal else "differs"
            out.append(Replayed(cell, outcome, "", result.recorded, result.now, ms))
    return out


def _compare_call(function: Callable[..., Any], call: Call) -> Comparison:
    """Call a function with a cell's arguments, and compare its value or error with the recorded one."""
    try:
        value = function(**call.input)
    except Exception as error:  # the function is a program's: its error is the cell's result
        return compare.compare_errors(call, f"{type(error).__name__}: {error}")
    shown = (str(value), repr(value))
    try:
        value = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        value = repr(value)
    return compare.compare_values(call, value, shown, is_value=True)
