"""`sessgit replay`: cells run again, and their results compared with the recorded ones."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from sessgit.cli import frame, operands, render, text
from sessgit.cli.commands import cells as cell_pages
from sessgit.cli.commands.cells import CellLines
from sessgit.cli.frame import ANY_ADDRESS, Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import paragraph, session_heading
from sessgit.errors import UsageError
from sessgit.history import client_files, resolve
from sessgit.history.resolve import ResolvedTarget
from sessgit.replay import compare, kept_result
from sessgit.replay import plan as plans
from sessgit.replay import run as runs
from sessgit.replay.inputs import ModelCommand, PromptResults, guess_protocol, send_prompts
from sessgit.replay.kept_result import KeptSession
from sessgit.replay.plan import PlanItem, ReplayPlan
from sessgit.replay.run import CellResult, RunOptions
from sessgit.replay.sandbox import workspace
from sessgit.replay.sandbox.processes import Confinement
from sessgit.replay.sandbox.supervisor import Limits
from sessgit.replay.sandbox.workspace import Sandbox

_DIFFERS = 6
_SECONDS, _PROMPT_SECONDS = 60.0, 600.0


@frame.command(
    "replay",
    reads=True,
    excludes={"--inputs": "--cell --chain --execute --llm --exec"},
    requires={"--inputs": "--to", "--to": "--inputs", "--protocol": "--inputs"},
)
def run(
    cli: Invocation,
    address: str = ANY_ADDRESS,
    cells: list[str] = option("--cell CELL", "Only this cell: 7.3, an id, or its number; may be repeated."),
    chain: bool = option("--chain", "Also all cells that these depend on."),
    execute: bool = option("--execute", "Run the cells (default: only show them)."),
    llm: str = option("--llm COMMAND", "Ask a model: prompt on stdin, answer on stdout."),
    execs: list[str] = option(
        "--exec OPERATION=COMMAND", "Run cells of OPERATION: arguments on stdin, result on stdout, in JSON."
    ),
    timeout: float | None = option("--timeout SECONDS", "Limit per cell (60) or per answer (600)."),
    memory: int = option("--memory MB", "Limit per cell, with all its processes.", default=2048),
    network: bool = option("--network", "Allow network access."),
    unconfined: bool = option("--unconfined", "Run without a sandbox: commands can do all that you can."),
    no_keep: bool = option("--no-keep", "Do not keep the results."),
    inputs: bool = option("--inputs", "Send the prompts to a new process instead."),
    to: str = option("--to COMMAND", "With --inputs: the process to send them to."),
    protocol: Literal["each", "lines", "stream-json"] | None = option(
        "--protocol", "With --inputs: the protocol of COMMAND."
    ),
) -> Answer:
    """Run cells again and compare the results.

    Without --execute, shows which cells would run, in which order, and what would run them: all cells of the
    conversation, or with @N those of one turn. With --execute, runs commands, file tools and REPL code in a temporary
    copy of the project, at the commit it was at before the first of them. They can write nowhere else, have no network,
    get no environment variable but PATH, and do not see your home folder. On Linux this needs bubblewrap. The results
    are kept as a fork; `sessgit undo` removes it. The commands of --llm and --exec run without a sandbox.

    --inputs sends the prompts to COMMAND, one after another, and keeps prompts and answers as a fork to compare with
    `sessgit diff`. --protocol each starts COMMAND for every prompt, with the prompt on standard input. lines and
    stream-json start it once: lines writes {"prompt": …} and reads {"answer": …}, one object per line; stream-json is
    what the client speaks, and the default if COMMAND is claude. COMMAND runs without a sandbox.

    Exit code 0 if all results are equal, 6 if one differs or failed.
    """
    if (timeout is not None and not 0 < timeout < 1 << 31) or not 0 < memory < 1 << 31:
        raise UsageError("--timeout and --memory must be more than 0", "And less than 2147483648.")
    if inputs:
        target = operands.target(cli, address)
        seconds, ident = timeout or _PROMPT_SECONDS, "" if no_keep else str(uuid.uuid4())
        partner = ModelCommand(to, protocol or guess_protocol(to), seconds, cli.cwd, os.environ)
        progress = render.progress(cli, "Asking", "prompts")
        with render.exit_on_signals():
            sent = send_prompts(cli.context, target, partner, ident, progress)
        code = _exit_code(answer.outcome for answer in sent.answers)
        return Answer(lambda: _prompts_json(sent), _prompt_lines(cli, sent), exit_code=code)
    target = operands.target_or_cell_id(cli, address)
    if target.cell and cells:
        raise UsageError("the address already names a cell.", "Use the address or --cell.")
    branch, state = target.branch, target.branch.state
    project = client_files.localize_state(state, cli.local_path).project
    root = workspace.sandboxed_root(state.project, project, os.environ)
    commands, named = _commands(execs), (target.cell,) if target.cell else tuple(cells)
    choice = plans.ReplayChoice(target.turn, named, chain, root, bool(llm), tuple(commands))
    plan = plans.plan_replay(cli.context, branch, choice, render.progress(cli, "Reading"))
    notes = [f"({damage})" for damage in plan.damage]
    if not execute:
        return Answer(lambda: _as_json(plan), _plan_lines(cli, plan), notes=notes)
    if not no_keep:
        kept_result.check_can_keep(cli.context, state)
    results = runs.skip_plan(plan)
    box: Sandbox | None = None
    kept: KeptSession | None = None
    if plan.first:
        limits = Limits(seconds=timeout or _SECONDS, memory=memory << 20)
        confinement = Confinement(limits=limits, network=network, unconfined=unconfined)
        with render.exit_on_signals():
            with workspace.make_sandbox(cli.context, branch, plan.first, project, os.environ, confinement) as box:
                progress = render.progress(cli, "Running", "cells")
                results = runs.run_plan(plan, box, RunOptions(llm, cli.cwd, os.environ, commands), progress)
            if not no_keep and any(result.outcome != "skipped" for result in results):
                kept = _keep(cli, target, plan, results)
    return Answer(
        lambda: _as_json(plan, results, box, kept),
        _result_lines(cli, plan, results, box, kept),
        notes=notes,
        exit_code=_exit_code(result.outcome for result in results),
    )


def _commands(execs: Sequence[str]) -> dict[str, str]:
    """Return the commands of --exec by operation; raises UsageError for a word without a command."""
    for word in execs:
        operation, _, command = word.partition("=")
        if not operation.strip() or not command.strip():
            raise UsageError(f"--exec {word} names no command", "For example: --exec peek='python3 peek.py'")
    return dict(word.split("=", 1) for word in execs)


def _keep(cli: Invocation, target: ResolvedTarget, plan: ReplayPlan, results: tuple[CellResult, ...]) -> KeptSession:
    """Keep the results as a fork from the last replayed turn."""

    context, name = cli.context, cli.ident(target.branch.name)
    point = resolve.fork_point(context, replace(target, turn=plan.last, cell=""))
    address = f"{name}{plan.place}"
    fork_name = kept_result.kept_name("replay", name, plan.place)
    kept = kept_result.begin_session(context, str(uuid.uuid4()), fork_name, point, target.state)
    kept = kept_result.add_turn(context, kept, kept_result.result_turn(results, address))
    kept_result.record_operation(context, kept, f"replay of {address}: {kept_result.counts_text(results)}")
    return kept


def _exit_code(outcomes: Iterable[str]) -> int:
    return _DIFFERS if {"differs", "failed"}.intersection(outcomes) else 0


_RUN_BY = {
    "shell": "shell", "read": "built-in reader", "write": "built-in editor",
    "repl": "Python", "model": "--llm", "command": "--exec", "function": "function",
}  # fmt: skip
_STYLES = {"equal": "green", "differs": "red", "failed": "red", "skipped": "dim"}
_DIFF_LINES = 12


def _plan_lines(cli: Invocation, plan: ReplayPlan) -> Iterator[str]:
    """Yield the cells that would run, in order, and those that would not."""
    would_run = [item for item in plan.items if item.kind]
    others = sum(not item.is_message for item in plan.items) - len(would_run)
    count = f"{text.counted(len(would_run), 'cell')} would run{f', {others} not' if others else ''}"
    yield from session_heading(cli, plan.branch, count)
    yield ""
    lines = _cell_lines(cli, plan)
    for item in plan.items:
        if item.kind:
            yield _line(lines, item, cli.paint("dim", _RUN_BY[item.kind]))
        elif not item.is_message:
            yield _line(lines, item, cli.paint("dim", "skipped"))
            yield from paragraph(cli, item.why, indent=4)
    yield from _messages(cli, plan)
    if would_run:
        yield ""
        yield from paragraph(cli, "To run them in a sandbox and compare the results, use --execute.")
    elif not plan.items:
        yield cli.paint("dim", "No cells.")


def _result_lines(
    cli: Invocation, plan: ReplayPlan, results: Sequence[CellResult], sandbox: Sandbox | None, kept: KeptSession | None
) -> Iterator[str]:
    """Yield the result of each cell, how it differs, and where the results are kept."""
    yield from session_heading(cli, plan.branch, kept_result.counts_text(results))
    yield ""
    lines = _cell_lines(cli, plan)
    for result in results:
        if not result.item.is_message:
            took = text.duration(None if result.ms is None else result.ms / 1000)
            end = "  ".join(filter(None, (result.outcome, took)))
            yield _line(lines, result.item, cli.paint(_STYLES[result.outcome], end))
            if result.outcome in ("failed", "skipped"):
                yield from paragraph(cli, result.why, indent=4)
            elif result.compared is not None and result.outcome == "differs":
                yield from _diff(cli, result.compared.diff)
    yield from _messages(cli, plan)
    if sandbox is not None:
        yield ""
        yield from paragraph(cli, _where(cli, sandbox))
    if kept is not None:
        yield _kept(cli, kept)
        results_of = f"{cli.ident(kept.id)}@{kept.turn}"
        yield from paragraph(cli, f"List the results:  sessgit cells {results_of} --type verification")


def _prompt_lines(cli: Invocation, results: PromptResults) -> Iterator[str]:
    """Yield each prompt, and whether it got the same answer."""
    width = max((len(str(answer.turn)) for answer in results.answers), default=1)
    counts = Counter[str](answer.outcome for answer in results.answers)
    summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _STYLES if counts[outcome])
    yield from session_heading(cli, results.branch, summary or "no prompt to send")
    yield ""
    for answer in results.answers:
        start, end = (
            cli.paint("yellow", f"{answer.turn:>{width}}  "),
            cli.paint(_STYLES[answer.outcome], answer.outcome),
        )
        yield text.spread(start, text.clean(answer.prompt), end, cli.width)
        if answer.why:
            yield from paragraph(cli, answer.why, indent=4)
        elif answer.outcome == "differs":
            yield from _diff(cli, answer.diff)
    if results.left:
        yield from paragraph(cli, f"Not sent: {text.counted(results.left, 'prompt')} after the one that failed.")
    if results.kept is not None:
        yield ""
        yield _kept(cli, results.kept)
        yield f"Compare them:  sessgit diff {cli.ident(results.branch.name)} {cli.ident(results.kept.id)}"


def _as_json(
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
        "sandbox": sandbox and {
            "project": sandbox.source, "head": sandbox.head.as_json() if sandbox.head else None,
            "turn": sandbox.before or None, "empty_reason": sandbox.why or None,
        },
        "kept": _kept_json(kept),
        "damage": list(plan.damage),
    }  # fmt: skip


def _prompts_json(results: PromptResults) -> dict[str, Any]:
    """Return what `replay --inputs --json` prints."""
    return {
        **cell_pages.branch_json(results.branch),
        "protocol": results.protocol,
        "answers": [
            {
                "turn": answer.turn,
                "prompt": compare.bounded_text(answer.prompt),
                "outcome": answer.outcome,
                "reason": answer.why or None,
                "recorded": compare.bounded_text(answer.recorded),
                "answer": compare.bounded_text(answer.answer),
                "diff": list(answer.diff),
                "seconds": round(answer.ms / 1000, 3),
            }
            for answer in results.answers
        ],
        "not_sent": results.left,
        "kept": _kept_json(results.kept),
    }


def _cell_lines(cli: Invocation, plan: ReplayPlan) -> CellLines:
    nodes = [item.node for item in plan.items if not item.is_message]
    return CellLines(cli, plan.branch.state.project, nodes, {})


def _line(lines: CellLines, item: PlanItem, end: str) -> str:
    cli, start, about = lines.cli, lines.start(item.node), ""
    if item.call is not None:
        room = text.room(start, end, cli.width)
        about = text.subject(cli, lines.project, item.call.about, item.call.file, room)
    return text.spread(start, about, end, cli.width)


def _diff(cli: Invocation, diff: Sequence[str]) -> Iterator[str]:
    changes = [line for line in diff if not line.startswith("@@")]
    for line in changes[:_DIFF_LINES]:
        mark, style = {"-": ("−", "red"), "+": ("+", "green")}.get(line[:1], (" ", "dim"))
        yield cli.paint(style, text.cut(f"    {mark} {text.clean(line[1:])}", cli.width))
    if len(changes) > _DIFF_LINES:
        yield cli.paint("dim", f"    … {len(changes) - _DIFF_LINES} more lines: --json lists all")


def _messages(cli: Invocation, plan: ReplayPlan) -> Iterator[str]:
    count = sum(item.is_message for item in plan.items)
    if count:
        messages = text.counted(count, "message")
        hint = "To send the prompts again, use --inputs."
        yield from paragraph(cli, f"Not replayed: {messages} of the model. {hint}")


def _where(cli: Invocation, sandbox: Sandbox) -> str:
    head = sandbox.head
    if head is None:
        return f"Ran in an empty folder: {sandbox.why}."
    at = f"{head.commit[:8]} ({text.clean(head.branch)})" if head.branch else head.commit[:8]
    missing = "untracked files, uncommitted changes" if head.dirty else "untracked files"
    return f"Ran in a copy of the project at {at}, its commit after turn {sandbox.before}. Not included: {missing}."


def _kept(cli: Invocation, kept: KeptSession) -> str:
    return f"Kept: {cli.paint('yellow', cli.ident(kept.id))}  {text.cut(kept.name, cli.width - 20)}"


def _kept_json(kept: KeptSession | None) -> dict[str, Any] | None:
    return None if kept is None else {"session_id": kept.id, "name": kept.name, "turn": kept.turn}


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
