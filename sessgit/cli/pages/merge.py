"""What a merge decides, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sessgit.branch.merging.merge import MergeResult
from sessgit.branch.merging.plan import MergePlan, PickPlan
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical, unified_state
from sessgit.model.merge_decisions import SCALARS, Decision

_LABEL = 15
_PATH = 60
_SHORT = {"summary": "a summary of ", "forward": "", "graft": "", "pick": ""}


def full(here: Invocation, plan: MergePlan) -> Iterator[str]:
    """The sides, then a line for each kind of decision."""
    paint, found = Paint(here.colour), plan.sides
    base = f"{here.ident(_session(here, plan))}@{found.shared}" if found.shared else "none"
    sides = [
        f"base   {base}",
        f"ours  {here.ident(found.ours.name)} (+{text.counted(len(found.own), 'turn')})",
        f"theirs  {here.ident(found.theirs.name)} (+{text.counted(len(found.new), 'turn')})",
    ]
    yield from (paint("bold", line) for line in text.fold(sides, here.width, "   ", "       "))
    if not plan.is_open:
        yield standing(here, plan)
        return
    if plan.rows or plan.standing == "unfinished":
        yield from _line(here, "append", [brought(plan)])
    united = [_united(decision) for decision in plan.decisions if decision.action == "unite"]
    if united:
        yield from _line(here, "union", united)
    for decision in plan.decisions:
        if decision.action in ("ours", "theirs", "set"):
            is_short = decision.path in SCALARS or decision.path in unified_state.SCALARS
            value = f" {_shown(decision.value)}" if is_short else ""
            yield from _line(here, "take", [f"{text.clean(decision.path, _PATH)}{value} ({_whose(decision)})"])
    added = [_added(decision) for decision in plan.decisions if decision.action == "add"]
    if added:
        yield from _line(here, "add", added)
    for decision in plan.conflicts:
        yield from _conflict(here, paint, decision)


def picked(here: Invocation, ours: ResolvedTarget, plan: PickPlan) -> Iterator[str]:
    """Ours, then a line for each turn, and one for the files."""
    yield Paint(here.colour)("bold", f"ours  {here.ident(ours.branch.name)} ({text.counted(ours.state.turns, 'turn')})")
    for row, number in zip(plan.rows, plan.numbers, strict=True):
        head = " " * _LABEL if number > plan.numbers[0] else f"  {'append'.ljust(_LABEL - 2)}"
        head += f"turn {row.turn} of {here.ident(row.branch)}, as turn {number}: "
        yield f"{head}“{text.cut(text.clean(here.index.title(row)), here.width - text.width(head) - 2)}”"
    for decision in plan.decisions[1:]:
        yield from _line(here, "union", [_united(decision)])


def standing(here: Invocation, plan: MergePlan) -> str:
    """Why there is nothing to do."""
    ours, theirs = here.ident(plan.sides.ours.name), here.ident(plan.sides.theirs.name)
    if plan.standing == "merged":
        return f"{theirs} is already merged into {ours}."
    return f"{theirs} has no turns that {ours} lacks."


def brought(plan: MergePlan) -> str:
    """`a summary of 2 turns, as turn 12`."""
    turns, first = text.counted(len(plan.rows), "turn"), plan.sides.ours.state.turns + 1
    if plan.standing == "unfinished":
        return "nothing: an interrupted merge already appended the turns"
    last = first if plan.mode == "summary" else first + len(plan.rows) - 1
    where = f"turn {first}" if last == first else f"turns {first} to {last}"
    forward = " (fast-forward)" if plan.mode == "forward" else ""
    return f"{_SHORT[plan.mode]}{turns}, as {where}{forward}"


def done(here: Invocation, merged: MergeResult, theirs: Sequence[str], way_on: str) -> Iterator[str]:
    """What was brought where, and how to go on."""
    paint = Paint(here.colour)
    names = ", ".join(here.ident(name) for name in theirs)
    what = f"added {_range(merged.turns)} from {names}" if merged.turns else f"merged {names}"
    if merged.plan is not None and merged.turns and merged.plan.mode == "summary":
        what += f", a summary of {text.counted(len(merged.plan.rows), 'turn')}"
    ident = here.ident(merged.state.id)
    yield f"{paint('yellow', ident)}  {text.cut(what, here.width - text.width(ident) - 2)}"
    gone = merged.turns and merged.transcript is None
    yield f"Continue it:  sessgit resume {ident}" if gone else way_on


def _range(turns: Sequence[int]) -> str:
    return f"turn {turns[0]}" if len(turns) == 1 else f"turns {turns[0]} to {turns[-1]}"


def _session(here: Invocation, plan: MergePlan) -> str:
    """The session whose turn the base is: ours where it is unknown."""
    held = here.index.turn_of_commit(plan.sides.base) if plan.sides.base else None
    named = held[0] if held else here.store.message(plan.sides.base).get("Session") if plan.sides.base else ""
    return named if here.index.branch(named) else plan.sides.ours.name


def _line(here: Invocation, label: str, parts: Sequence[str]) -> Iterator[str]:
    head = f"  {label.ljust(_LABEL - 2)}"
    for number, line in enumerate(text.fold(parts, here.width - _LABEL, " · ")):
        yield f"{' ' * _LABEL if number else head}{line}"


def _united(decision: Decision) -> str:
    if decision.path == "labels":
        return f"labels {{{', '.join(text.clean(label) for label in decision.value)}}}"
    name = decision.path.removeprefix("pad/").removesuffix(".jsonl")
    name = "working memory" if decision.path == unified_state.MEMORY else name
    ours, theirs, both = (_count(value) for value in (decision.ours, decision.theirs, decision.value))
    return f"{text.clean(name)} {ours} + {theirs} → {both}"


def _added(decision: Decision) -> str:
    """`total recursive calls 3 + 2 → 5`: what theirs counted since it began."""
    before, after = decision.ours or 0, decision.value or 0
    name = decision.path.partition(".")[2].replace("_", " ")
    return f"{name} {before:g} {'-' if after < before else '+'} {abs(round(after - before, 9)):g} → {after:g}"


def _count(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def _conflict(here: Invocation, paint: Paint, decision: Decision) -> Iterator[str]:
    ways = ["--ours", "--theirs", *([f"--set {decision.path}=…"] if decision.path in SCALARS else [])]
    sides = [f"ours {_shown(decision.ours)}", f"theirs {_shown(decision.theirs)}"]
    parts = [text.clean(decision.path, _PATH), *(text.cut(side, 40) for side in sides), " | ".join(ways)]
    head = f"  {'conflict'.ljust(_LABEL - 2)}"
    for number, line in enumerate(text.fold(parts, here.width - _LABEL, "   ")):
        yield f"{' ' * _LABEL if number else paint('red', head)}{line}"


def _shown(value: object) -> str:
    if value in (None, ""):
        return "none"
    return f"“{text.clean(value, 60)}”" if isinstance(value, str) else text.cut(canonical.compact(value).decode(), 60)


def _whose(decision: Decision) -> str:
    return {"ours": "ours", "theirs": "theirs", "set": "from --set"}[decision.action]
