"""Cells run again by functions that a program registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sessgit.api.values import Cell
from sessgit.replay import plan
from sessgit.replay import run as runs
from sessgit.replay.compare import Outcome
from sessgit.replay.plan import ReplayChoice, ReplayPlan
from sessgit.replay.sandbox.workspace import NO_SANDBOX
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

Executors = Mapping[str | tuple[str, str], Callable[..., Any]]
"""By operation, or by type and operation, a function that takes the arguments of a cell."""
_NO_FUNCTION_REASON = "no function is registered for it"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a cell that was run again: `equal` to what is recorded, `differs`, `failed`, or `skipped`, and then
    `why`. `recorded` and `now` are what it came to, as texts; `ms` is how long it took now, None where it did not run.
    """

    cell: Cell
    outcome: Outcome
    why: str = ""
    recorded: str = ""
    now: str = ""
    ms: float | None = None


def plan_cells(store: Store, index: Index, branch: Branch, choice: ReplayChoice) -> ReplayPlan:
    """The cells in the order in which they run; of those without a function it is said why they do not."""
    found = plan.plan_replay(store, index, branch, choice)
    items = (
        item if item.kind == "function" or item.why else replace(item, kind=None, why=_NO_FUNCTION_REASON)
        for item in found.items
    )
    return replace(found, items=tuple(items))


def run_cells(found: ReplayPlan, executors: Executors) -> list[Replayed]:
    """What came of each cell, in their order."""
    return [_make_replayed(result) for result in runs.run_plan(found, NO_SANDBOX, runs.RunOptions(functions=executors))]


def _make_replayed(result: runs.CellResult) -> Replayed:
    node, compared = result.item.node, result.compared
    ok = node.cell.ok
    cell = Cell(
        node.cell.id, node.cell.type, node.cell.operation, tuple(node.cell.depends),
        "interrupted" if ok is None else "done" if ok else "failed", node.turn, node.ordinal,
    )  # fmt: skip
    recorded, now = (compared.recorded, compared.now) if compared else ("", "")
    return Replayed(cell, result.outcome, result.why, recorded, now, result.ms)
