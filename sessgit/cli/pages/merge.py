"""What `merge` and `pick` decide, and what they did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessgit.branch.merge import MergeResult
from sessgit.branch.merge_plan import MergePlan, PickPlan
from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical, unified_state
from sessgit.model.merge_decisions import SCALARS, Decision

_LABEL = 15
_PATH = 60
_VALUE = 40
_SOURCES = {"ours": "ours", "theirs": "theirs", "set": "from --set"}


def full(here: Invocation, plan: MergePlan) -> Iterator[str]:
    """Yield the sides, then a line for each kind of decision."""
    sides = plan.sides
    heads = [
        f"base   {here.ident(_base_session(here, plan))}@{sides.shared}" if sides.shared else "base   none",
        f"ours  {here.ident(sides.ours.name)} (+{text.counted(len(sides.own), 'turn')})",
        f"theirs  {here.ident(sides.theirs.name)} (+{text.counted(len(sides.new), 'turn')})",
    ]
    yield from (here.paint("bold", line) for line in text.fold(heads, here.width, "   ", "       "))
    if not plan.is_open:
        yield nothing_to_do(here, plan)
        return
    if plan.rows or plan.standing == "unfinished":
        yield from _line(here, "append", [appended(plan)])
    yield from _line(here, "union", [_united(decision) for decision in plan.decisions if decision.action == "unite"])
    for decision in plan.decisions:
        if decision.action in _SOURCES:
            is_scalar = decision.path in SCALARS or decision.path in unified_state.SCALARS
            value = f" {_value(decision.value)}" if is_scalar else ""
            what = f"{text.clean(decision.path, _PATH)}{value} ({_SOURCES[decision.action]})"
            yield from _line(here, "take", [what])
    yield from _line(here, "add", [_added(decision) for decision in plan.decisions if decision.action == "add"])
    for decision in plan.conflicts:
        options = ["--ours", "--theirs", *([f"--set {decision.path}=…"] if decision.path in SCALARS else [])]
        values = [f"ours {_value(decision.ours)}", f"theirs {_value(decision.theirs)}"]
        parts = [text.clean(decision.path, _PATH), *(text.cut(value, _VALUE) for value in values), " | ".join(options)]
        yield from _line(here, "conflict", parts, style="red", between="   ")


def picked(here: Invocation, ours: ResolvedTarget, plan: PickPlan) -> Iterator[str]:
    """Ours, then a line for each turn, and one for the files."""
    yield here.paint("bold", f"ours  {here.ident(ours.branch.name)} ({text.counted(ours.state.turns, 'turn')})")
    label = "append"
    for row, number in zip(plan.rows, plan.numbers, strict=True):
        head = f"  {label:<{_LABEL - 2}}turn {row.turn} of {here.ident(row.branch)}, as turn {number}: "
        yield f"{head}“{text.cut(text.clean(here.index.title(row)), here.width - text.width(head) - 2)}”"
        label = ""
    for decision in plan.decisions[1:]:
        yield from _line(here, "union", [_united(decision)])


def nothing_to_do(here: Invocation, plan: MergePlan) -> str:
    """Return why there is nothing to merge."""
    ours, theirs = here.ident(plan.sides.ours.name), here.ident(plan.sides.theirs.name)
    is_merged = plan.standing == "merged"
    return f"{theirs} is already merged into {ours}." if is_merged else f"{theirs} has no turns that {ours} lacks."


def appended(plan: MergePlan) -> str:
    """`a summary of 2 turns, as turn 12`."""
    if plan.standing == "unfinished":
        return "nothing: an interrupted merge already appended the turns"
    first, is_summary = plan.sides.ours.state.turns + 1, plan.mode == "summary"
    turns = f"{'a summary of ' if is_summary else ''}{text.counted(len(plan.rows), 'turn')}"
    where = _turns(range(first, first + (1 if is_summary else len(plan.rows))))
    return f"{turns}, as {where}{' (fast-forward)' if plan.mode == 'forward' else ''}"


def merged(here: Invocation, result: MergeResult, theirs: Iterable[str], way_on: str) -> Iterator[str]:
    """Yield what was merged into what, and how to continue."""
    names = ", ".join(map(here.ident, theirs))
    what = f"added {_turns(result.turns)} from {names}" if result.turns else f"merged {names}"
    if result.plan is not None and result.turns and result.plan.mode == "summary":
        what += f", a summary of {text.counted(len(result.plan.rows), 'turn')}"
    ident = here.ident(result.state.id)
    yield text.spread(f"{here.paint('yellow', ident)}  ", what, "", here.width)
    yield f"Continue it:  sessgit resume {ident}" if result.turns and result.transcript is None else way_on


def _turns(numbers: Sequence[int]) -> str:
    return f"turn {numbers[0]}" if len(numbers) == 1 else f"turns {numbers[0]} to {numbers[-1]}"


def _base_session(here: Invocation, plan: MergePlan) -> str:
    """Return the session whose turn the base is, or ours if it is unknown."""
    base = plan.sides.base
    turn = here.index.turn_of_commit(base) if base else None
    session = turn[0] if turn else here.store.message(base).get("Session") if base else ""
    return session if here.index.branch(session) else plan.sides.ours.name


def _line(
    here: Invocation, label: str, parts: Iterable[str], *, style: str = "", between: str = " · "
) -> Iterator[str]:
    return blocks.field(here, f"  {label}", parts, width=_LABEL, style=style, between=between)


def _united(decision: Decision) -> str:
    if decision.path == "labels":
        return f"labels {{{', '.join(map(text.clean, decision.value))}}}"
    name = decision.path.removeprefix("pad/").removesuffix(".jsonl")
    name = "working memory" if decision.path == unified_state.MEMORY else text.clean(name)
    ours, theirs, both = (
        value if isinstance(value, int) else len(value) for value in (decision.ours, decision.theirs, decision.value)
    )
    return f"{name} {ours} + {theirs} → {both}"


def _added(decision: Decision) -> str:
    """`total recursive calls 3 + 2 → 5`: what theirs counted since it began."""
    before, after = decision.ours or 0, decision.value or 0
    name = decision.path.partition(".")[2].replace("_", " ")
    return f"{name} {before:g} {'-' if after < before else '+'} {abs(round(after - before, 9)):g} → {after:g}"


def _value(value: Any) -> str:
    if value in (None, ""):
        return "none"
    return f"“{text.clean(value, 60)}”" if isinstance(value, str) else text.cut(canonical.compact(value).decode(), 60)
