"""Cells that are run again, or would be: what `replay` prints, and its JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells as cell_pages
from sessgit.cli.pages import turn_pieces
from sessgit.cli.render import Paint
from sessgit.replay import compare, kept_result
from sessgit.replay.inputs import PromptResult, PromptResults
from sessgit.replay.kept_result import KeptSession
from sessgit.replay.plan import PlanItem, ReplayPlan
from sessgit.replay.run import CellResult
from sessgit.replay.sandbox.workspace import Sandbox
from sessgit.store import layout

_RUN_BY = {
    "shell": "shell", "read": "built-in reader", "search": "built-in search", "write": "built-in editor",
    "repl": "Python", "model": "--llm", "function": "function",
}  # fmt: skip
_STYLES = {"equal": "green", "differs": "red", "failed": "red", "skipped": "dim"}
_DIFF_LINES = 12
_OPERATION = 14


def planned(here: Invocation, plan: ReplayPlan) -> Iterator[str]:
    """What would run, in order, and what would not."""
    paint = Paint(here.colour)
    would = [item for item in plan.items if item.kind]
    rest = sum(not item.is_message for item in plan.items) - len(would)
    said = f"  ·  {text.counted(len(would), 'cell')} would run{f', {rest} not' if rest else ''}"
    yield cell_pages.header(here, plan.branch, said)
    yield ""
    for item in plan.items:
        if item.kind:
            yield _line(here, item, plan, _RUN_BY[item.kind], "dim")
        elif not item.is_message:
            yield from _skipped(here, item, plan, item.why)
    yield from _messages(here, plan)
    if would:
        yield ""
        said = "To run them in a sandbox and compare the results, use --execute."
        yield from text.wrapped(said, here.width)
    elif not plan.items:
        yield paint("dim", "No cells.")


def done(
    here: Invocation, plan: ReplayPlan, results: Sequence[CellResult], sandbox: Sandbox | None, kept: KeptSession | None
) -> Iterator[str]:
    """What came of each, how it differs, and where that is kept."""
    paint = Paint(here.colour)
    yield cell_pages.header(here, plan.branch, f"  ·  {kept_result.counts_text(results)}")
    yield ""
    for result in results:
        if result.item.is_message:
            continue
        if result.outcome == "skipped":
            yield from _skipped(here, result.item, plan, result.why)
            continue
        took = turn_pieces.duration(None if result.ms is None else result.ms / 1000)
        said = f"{result.outcome}  {took}" if took else result.outcome
        yield _line(here, result.item, plan, said, _STYLES[result.outcome])
        if result.outcome == "failed":
            yield from _indented(here, result.why)
        elif result.compared is not None and result.outcome == "differs":
            yield from _diff(here, paint, result.compared.diff)
    yield from _messages(here, plan)
    if sandbox is not None:
        yield ""
        yield from text.wrapped(_where(here, sandbox), here.width)
    if kept is not None:
        short = here.ident(kept.id)
        yield f"Kept: {paint('yellow', short)}  {text.cut(kept.name, here.width - 20)}"
        yield from text.wrapped(f"List the results:  sessgit cells {short}@{kept.turn} --type verification", here.width)


def as_json(
    plan: ReplayPlan,
    results: Sequence[CellResult] = (),
    sandbox: Sandbox | None = None,
    kept: KeptSession | None = None,
) -> dict[str, Any]:
    """Return what `replay --json` prints."""
    found = {result.item.node.address: result for result in results}
    return {
        "session_id": layout.session_of(plan.branch.name),
        "branch": plan.branch.name,
        "executed": bool(results),
        "cells": [_cell(item, plan, found.get(item.node.address)) for item in plan.items],
        "sandbox": _sandbox(sandbox) if sandbox is not None else None,
        "kept": kept_json(kept),
        "damage": list(plan.damage),
    }


def kept_json(kept: KeptSession | None) -> dict[str, Any] | None:
    """Where the results were kept, as documents have it."""
    return None if kept is None else {"session_id": kept.id, "name": kept.name, "turn": kept.turn}


def sent(here: Invocation, found: PromptResults) -> Iterator[str]:
    """Each prompt, whether it got the same answer, and how to see more of it."""
    paint, width = Paint(here.colour), max((len(str(one.turn)) for one in found.answers), default=1)
    yield cell_pages.header(here, found.branch, f"  ·  {_counted(found)}")
    yield ""
    for one in found.answers:
        end = f"  {one.outcome}"
        start = f"{one.turn:>{width}}  "
        about = text.fit(text.clean(one.prompt), here.width - len(start) - len(end))
        yield f"{paint('yellow', start)}{about}{paint(_STYLES[one.outcome], end)}"
        if one.why:
            yield from _indented(here, one.why)
        elif one.outcome == "differs":
            yield from _diff(here, paint, one.diff)
    if found.left:
        yield from text.wrapped(
            f"Not sent: {text.counted(found.left, 'prompt')} after the one that failed.", here.width
        )
    if found.kept is not None:
        short = here.ident(found.kept.id)
        yield ""
        yield f"Kept: {paint('yellow', short)}  {text.cut(found.kept.name, here.width - 20)}"
        yield f"Compare them:  sessgit diff {here.ident(found.branch.name)} {short}"


def sent_json(found: PromptResults) -> dict[str, Any]:
    """Return what `replay --inputs --json` prints."""
    return {
        "session_id": layout.session_of(found.branch.name),
        "branch": found.branch.name,
        "protocol": found.protocol,
        "answers": [_answer(one) for one in found.answers],
        "not_sent": found.left,
        "kept": kept_json(found.kept),
    }


# Inside


def _line(here: Invocation, item: PlanItem, plan: ReplayPlan, end: str, style: str) -> str:
    paint = Paint(here.colour)
    wide = max(len(other.node.address) for other in plan.items)
    start = text.fit(item.node.address, wide) + "  "
    operation = text.fit(cell_pages.called(item.node), min(_OPERATION, _widest(plan))) + "  "
    room = max(1, here.width - text.width(start) - text.width(operation) - text.width(end) - 2)
    shown = text.fit(_about(here, item, plan, room), room)
    return f"{paint('yellow', start)}{paint('cyan', operation)}{shown}  {paint(style, end)}"


def _widest(plan: ReplayPlan) -> int:
    return max((text.width(cell_pages.called(item.node)) for item in plan.items if item.call is not None), default=1)


def _about(here: Invocation, item: PlanItem, plan: ReplayPlan, room: int) -> str:
    if item.call is None:
        return ""
    about = item.call.about
    if item.call.file and about == item.call.file:
        return turn_pieces.path(here, plan.branch.state.project, item.call.file, room)
    return text.cut(text.clean(about), room)


def _skipped(here: Invocation, item: PlanItem, plan: ReplayPlan, why: str) -> Iterator[str]:
    yield _line(here, item, plan, "skipped", "dim")
    yield from _indented(here, why)


def _indented(here: Invocation, said: str) -> Iterator[str]:
    yield from (f"    {line}" for line in text.wrapped(said, here.width - 4))


def _diff(here: Invocation, paint: Paint, diff: Sequence[str]) -> Iterator[str]:
    shown = [line for line in diff if not line.startswith("@@")]
    for line in shown[:_DIFF_LINES]:
        mark = {"-": "−", "+": "+"}.get(line[:1], " ")
        style = {"−": "red", "+": "green"}.get(mark, "dim")
        yield paint(style, text.cut(f"    {mark} {text.clean(line[1:])}", here.width))
    if len(shown) > _DIFF_LINES:
        yield paint("dim", f"    … {len(shown) - _DIFF_LINES} more lines: --json lists all")


def _messages(here: Invocation, plan: ReplayPlan) -> Iterator[str]:
    count = sum(item.is_message for item in plan.items)
    if count:
        said = f"Not replayed: {text.counted(count, 'message')} of the model. To send the prompts again, use --inputs."
        yield from text.wrapped(said, here.width)


def _where(here: Invocation, sandbox: Sandbox) -> str:
    if sandbox.given:
        return f"Ran in {here.shown(sandbox.project)}."
    if sandbox.head is None:
        return f"Ran in an empty folder: {sandbox.why}."
    head = sandbox.head
    at = f"{head.commit[:8]} ({text.clean(head.branch)})" if head.branch else head.commit[:8]
    missing = ", uncommitted changes" if head.dirty else ""
    return (
        f"Ran in a copy of the project at {at}, its commit after turn {sandbox.before}. Not included: untracked "
        f"files{missing}."
    )


def _sandbox(sandbox: Sandbox) -> dict[str, Any]:
    head = sandbox.head
    return {
        "folder": sandbox.project if sandbox.given else None,
        "project": sandbox.source,
        "head": head.as_json() if head else None,
        "turn": sandbox.before or None,
        "empty_reason": sandbox.why or None,
    }


def _cell(item: PlanItem, plan: ReplayPlan, result: CellResult | None) -> dict[str, Any]:
    node = item.node
    found: dict[str, Any] = {
        "id": node.cell.id,
        "address": node.address,
        "type": node.cell.type,
        "operation": node.cell.operation,
        "asked": node.address in plan.asked,
        "about": item.call.about[:500] if item.call else "",
        "executor": item.kind,
        "outcome": result.outcome if result else None,
        "reason": (result.why if result else item.why) or None,
        "seconds": None if result is None or result.ms is None else round(result.ms / 1000, 3),
        "recorded": None,
        "now": None,
        "diff": [],
    }
    if result is not None and result.compared is not None:
        compared = result.compared
        found |= {
            "recorded": compare.bounded_text(compared.recorded), "now": compare.bounded_text(compared.now),
            "diff": list(compared.diff),
        }  # fmt: skip
    return found


def _answer(one: PromptResult) -> dict[str, Any]:
    return {
        "turn": one.turn,
        "prompt": compare.bounded_text(one.prompt),
        "outcome": one.outcome,
        "reason": one.why or None,
        "recorded": compare.bounded_text(one.recorded),
        "answer": compare.bounded_text(one.answer),
        "diff": list(one.diff),
        "seconds": round(one.ms / 1000, 3),
    }


def _counted(found: PromptResults) -> str:
    counts: Counter[str] = Counter(one.outcome for one in found.answers)
    return ", ".join(f"{counts[name]} {name}" for name in _STYLES if counts[name]) or "no prompt to send"
