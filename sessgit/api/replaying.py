"""Runs cells again with functions of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sessgit.api.values import STATE_BY_OK, Cell
from sessgit.replay import plan
from sessgit.replay import run as runs
from sessgit.replay.compare import Outcome
from sessgit.replay.plan import ReplayChoice, ReplayPlan
from sessgit.replay.sandbox.workspace import NO_SANDBOX
from sessgit.store.context import Context
from sessgit.store.index import Branch

Executors = Mapping[str | tuple[str, str], Callable[..., Any]]
"""Functions that take the arguments of a cell, by operation, or by type and operation."""
_NO_FUNCTION_REASON = "no function is registered for it"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a cell that was run again: `equal` to the recorded one, `differs`, `failed`, or `skipped`, with
    `why`. `recorded` and `now` are the results as texts; `ms` is the time that it took now, None if it did not run."""

    cell: Cell
    outcome: Outcome
    why: str = ""
    recorded: str = ""
    now: str = ""
    ms: float | None = None


def plan_cells(context: Context, branch: Branch, choice: ReplayChoice) -> ReplayPlan:
    """Return the cells in the order in which they run; cells without a function are skipped."""
    chosen = plan.plan_replay(context, branch, choice)
    items = (
        item if item.kind == "function" or item.why else replace(item, kind=None, why=_NO_FUNCTION_REASON)
        for item in chosen.items
    )
    return replace(chosen, items=tuple(items))


def run_cells(chosen: ReplayPlan, executors: Executors) -> list[Replayed]:
    """Run the cells, and return their results in order."""
    out = list[Replayed]()
    for result in runs.run_plan(chosen, NO_SANDBOX, runs.RunOptions(functions=executors)):
        node, compared = result.item.node, result.compared
        own = node.cell
        cell = Cell(own.id, own.type, own.operation, tuple(own.depends), STATE_BY_OK[own.ok], node.turn, node.ordinal)
        recorded, now = (compared.recorded, compared.now) if compared else ("", "")
        out.append(Replayed(cell, result.outcome, result.why, recorded, now, result.ms))
    return out
