"""What `replay` prints: cells that were run again, or would be, and prompts that were sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sessgit.cli import text
from sessgit.cli.blocks import paragraph, session_heading
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells as cell_pages
from sessgit.cli.pages import turn_pieces
from sessgit.cli.pages.cells import CellLines
from sessgit.replay import compare, kept_result
from sessgit.replay.inputs import PromptResult, PromptResults
from sessgit.replay.kept_result import KeptSession
from sessgit.replay.plan import PlanItem, ReplayPlan
from sessgit.replay.run import CellResult
from sessgit.replay.sandbox.workspace import Sandbox

_RUN_BY = {
    "shell": "shell", "read": "built-in reader", "search": "built-in search", "write": "built-in editor",
    "repl": "Python", "model": "--llm", "function": "function",
}  # fmt: skip
_STYLES = {"equal": "green", "differs": "red", "failed": "red", "skipped": "dim"}
_DIFF_LINES = 12


def planned(here: Invocation, plan: ReplayPlan) -> Iterator[str]:
    """Yield the cells that would run, in order, and those that would not."""
    would_run = [item for item in plan.items if item.kind]
    others = sum(not item.is_message for item in plan.items) - len(would_run)
    count = f"{text.counted(len(would_run), 'cell')} would run{f', {others} not' if others else ''}"
    yield from session_heading(here, plan.branch, count)
    yield ""
    lines = _cell_lines(here, plan)
    for item in plan.items:
        if item.kind:
            yield _line(lines, item, here.paint("dim", _RUN_BY[item.kind]))
        elif not item.is_message:
            yield _line(lines, item, here.paint("dim", "skipped"))
            yield from paragraph(here, item.why, indent=4)
    yield from _messages(here, plan)
    if would_run:
        yield ""
        yield from paragraph(here, "To run them in a sandbox and compare the results, use --execute.")
    elif not plan.items:
        yield here.paint("dim", "No cells.")


def executed(
    here: Invocation, plan: ReplayPlan, results: Sequence[CellResult], sandbox: Sandbox | None, kept: KeptSession | None
) -> Iterator[str]:
    """Yield the result of each cell, how it differs, and where the results are kept."""
    yield from session_heading(here, plan.branch, kept_result.counts_text(results))
    yield ""
    lines = _cell_lines(here, plan)
    for result in results:
        if not result.item.is_message:
            took = turn_pieces.duration(None if result.ms is None else result.ms / 1000)
            end = "  ".join(filter(None, (result.outcome, took)))
            yield _line(lines, result.item, here.paint(_STYLES[result.outcome], end))
            if result.outcome in ("failed", "skipped"):
                yield from paragraph(here, result.why, indent=4)
            elif result.compared is not None and result.outcome == "differs":
                yield from _diff(here, result.compared.diff)
    yield from _messages(here, plan)
    if sandbox is not None:
        yield ""
        yield from paragraph(here, _where(here, sandbox))
    if kept is not None:
        yield _kept(here, kept)
        results_of = f"{here.ident(kept.id)}@{kept.turn}"
        yield from paragraph(here, f"List the results:  sessgit cells {results_of} --type verification")


def prompts(here: Invocation, results: PromptResults) -> Iterator[str]:
    """Yield each prompt, and whether it got the same answer."""
    width = max((len(str(answer.turn)) for answer in results.answers), default=1)
    counts = Counter[str](answer.outcome for answer in results.answers)
    summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _STYLES if counts[outcome])
    yield from session_heading(here, results.branch, summary or "no prompt to send")
    yield ""
    for answer in results.answers:
        start, end = (
            here.paint("yellow", f"{answer.turn:>{width}}  "),
            here.paint(_STYLES[answer.outcome], answer.outcome),
        )
        yield text.spread(start, text.clean(answer.prompt), end, here.width)
        if answer.why:
            yield from paragraph(here, answer.why, indent=4)
        elif answer.outcome == "differs":
            yield from _diff(here, answer.diff)
    if results.left:
        yield from paragraph(here, f"Not sent: {text.counted(results.left, 'prompt')} after the one that failed.")
    if results.kept is not None:
        yield ""
        yield _kept(here, results.kept)
        yield f"Compare them:  sessgit diff {here.ident(results.branch.name)} {here.ident(results.kept.id)}"


def as_json(
    plan: ReplayPlan,
    results: Sequence[CellResult] = (),
    sandbox: Sandbox | None = None,
    kept: KeptSession | None = None,
) -> dict[str, Any]:
    """Return what `replay --json` prints."""
    by_address = {result.item.node.address: result for result in results}
    return {
        **cell_pages.branch_json(plan.branch),
        "executed": bool(results),
        "cells": [_cell_json(item, plan, by_address.get(item.node.address)) for item in plan.items],
        "sandbox": _sandbox_json(sandbox) if sandbox is not None else None,
        "kept": _kept_json(kept),
        "damage": list(plan.damage),
    }


def prompts_json(results: PromptResults) -> dict[str, Any]:
    """Return what `replay --inputs --json` prints."""
    return {
        **cell_pages.branch_json(results.branch),
        "protocol": results.protocol,
        "answers": [_answer_json(answer) for answer in results.answers],
        "not_sent": results.left,
        "kept": _kept_json(results.kept),
    }


def _cell_lines(here: Invocation, plan: ReplayPlan) -> CellLines:
    nodes = [item.node for item in plan.items if not item.is_message]
    return CellLines(here, plan.branch.state.project, nodes, {})


def _line(lines: CellLines, item: PlanItem, end: str) -> str:
    here, start, about = lines.here, lines.start(item.node), ""
    if item.call is not None:
        room = text.room(start, end, here.width)
        about = turn_pieces.subject(here, lines.project, item.call.about, item.call.file, room)
    return text.spread(start, about, end, here.width)


def _diff(here: Invocation, diff: Sequence[str]) -> Iterator[str]:
    changes = [line for line in diff if not line.startswith("@@")]
    for line in changes[:_DIFF_LINES]:
        mark, style = {"-": ("−", "red"), "+": ("+", "green")}.get(line[:1], (" ", "dim"))
        yield here.paint(style, text.cut(f"    {mark} {text.clean(line[1:])}", here.width))
    if len(changes) > _DIFF_LINES:
        yield here.paint("dim", f"    … {len(changes) - _DIFF_LINES} more lines: --json lists all")


def _messages(here: Invocation, plan: ReplayPlan) -> Iterator[str]:
    count = sum(item.is_message for item in plan.items)
    if count:
        messages = text.counted(count, "message")
        hint = "To send the prompts again, use --inputs."
        yield from paragraph(here, f"Not replayed: {messages} of the model. {hint}")


def _where(here: Invocation, sandbox: Sandbox) -> str:
    head = sandbox.head
    if sandbox.given:
        return f"Ran in {here.shown(sandbox.project)}."
    if head is None:
        return f"Ran in an empty folder: {sandbox.why}."
    at = f"{head.commit[:8]} ({text.clean(head.branch)})" if head.branch else head.commit[:8]
    missing = "untracked files, uncommitted changes" if head.dirty else "untracked files"
    return f"Ran in a copy of the project at {at}, its commit after turn {sandbox.before}. Not included: {missing}."


def _kept(here: Invocation, kept: KeptSession) -> str:
    return f"Kept: {here.paint('yellow', here.ident(kept.id))}  {text.cut(kept.name, here.width - 20)}"


def _kept_json(kept: KeptSession | None) -> dict[str, Any] | None:
    return None if kept is None else {"session_id": kept.id, "name": kept.name, "turn": kept.turn}


def _sandbox_json(sandbox: Sandbox) -> dict[str, Any]:
    return {
        "folder": sandbox.project if sandbox.given else None,
        "project": sandbox.source,
        "head": sandbox.head.as_json() if sandbox.head else None,
        "turn": sandbox.before or None,
        "empty_reason": sandbox.why or None,
    }


def _cell_json(item: PlanItem, plan: ReplayPlan, result: CellResult | None) -> dict[str, Any]:
    cell, compared = item.node.cell, result.compared if result else None
    return {
        "id": cell.id,
        "address": item.node.address,
        "type": cell.type,
        "operation": cell.operation,
        "asked": item.node.address in plan.asked,
        "about": item.call.about[:500] if item.call else "",
        "executor": item.kind,
        "outcome": result.outcome if result else None,
        "reason": (result.why if result else item.why) or None,
        "seconds": None if result is None or result.ms is None else round(result.ms / 1000, 3),
        "recorded": compare.bounded_text(compared.recorded) if compared else None,
        "now": compare.bounded_text(compared.now) if compared else None,
        "diff": list(compared.diff) if compared else [],
    }


def _answer_json(answer: PromptResult) -> dict[str, Any]:
    return {
        "turn": answer.turn,
        "prompt": compare.bounded_text(answer.prompt),
        "outcome": answer.outcome,
        "reason": answer.why or None,
        "recorded": compare.bounded_text(answer.recorded),
        "answer": compare.bounded_text(answer.answer),
        "diff": list(answer.diff),
        "seconds": round(answer.ms / 1000, 3),
    }
