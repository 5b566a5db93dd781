"""`sessgit replay`: cells run again, and their results compared with the recorded ones."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from sessgit.cli import frame, render, session_argument
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import ANY_ADDRESS, option
from sessgit.errors import UsageError
from sessgit.history import client_files, fork_point
from sessgit.history.resolve import ResolvedTarget

if TYPE_CHECKING:
    from sessgit.replay.kept_result import KeptSession
    from sessgit.replay.plan import ReplayPlan
    from sessgit.replay.run import CellResult, RunOptions
    from sessgit.replay.sandbox.workspace import Sandbox

_DIFFERS = 6
_SECONDS, _PROMPT_SECONDS = 60.0, 600.0


@frame.command(
    "replay",
    reads=True,
    excludes={"--inputs": "--cell --chain --execute --in --llm"},
    requires={"--inputs": "--to", "--to": "--inputs", "--protocol": "--inputs"},
)
def run(
    here: Invocation,
    address: str = ANY_ADDRESS,
    cells: list[str] = option("--cell CELL", "Only this cell: 7.3, an id, or its number; may be repeated."),
    chain: bool = option("--chain", "Also all cells that these depend on."),
    execute: bool = option("--execute", "Run the cells (default: only show them)."),
    folder: str = option("--in DIR", "Run in DIR, not in a copy of the project."),
    llm: str = option("--llm COMMAND", "Ask a model: prompt on stdin, answer on stdout."),
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
    are kept as a fork; `sessgit undo` removes it.

    --inputs sends the prompts to COMMAND, one after another, and keeps prompts and answers as a fork to compare with
    `sessgit diff`. --protocol each starts COMMAND for every prompt, with the prompt on standard input. lines and
    stream-json start it once: lines writes {"prompt": …} and reads {"answer": …}, one object per line; stream-json is
    what the client speaks, and the default if COMMAND is claude. COMMAND runs without a sandbox.

    Exit code 0 if all results are equal, 6 if one differs or failed.
    """
    if (timeout is not None and not 0 < timeout < 1 << 31) or not 0 < memory < 1 << 31:
        raise UsageError("--timeout and --memory must be more than 0", "And less than 2147483648.")
    if inputs:
        target = session_argument.target(here, address)
        return _send_prompts(here, target, to, protocol, timeout or _PROMPT_SECONDS, keep=not no_keep)
    target = session_argument.target_or_cell_id(here, address)
    if target.cell and cells:
        raise UsageError("the address already names a cell.", "Use the address or --cell.")
    from sessgit.cli.pages import replay as page
    from sessgit.replay import plan as plans
    from sessgit.replay.run import RunOptions
    from sessgit.replay.sandbox import workspace
    from sessgit.replay.sandbox.supervisor import Limits

    state = target.branch.state
    project = client_files.localize_state(state, here.local_path).project
    root = workspace.sandboxed_root(state.project, project, os.environ)
    choice = plans.ReplayChoice(target.turn, (target.cell,) if target.cell else tuple(cells), chain, root, bool(llm))
    with render.progress(here, "Reading", unit="turns") as progress:
        plan = plans.plan_replay(here.context, target.branch, choice, progress)
    if not execute:
        return Answer(lambda: page.as_json(plan), page.planned(here, plan), notes=map("({})".format, plan.damage))
    limits = replace(Limits(), seconds=timeout or _SECONDS, memory=memory << 20)
    options = RunOptions(limits, network, unconfined, llm, here.cwd, os.environ)
    return _execute(here, target, plan, options, folder, keep=not no_keep)


def _execute(
    here: Invocation, target: ResolvedTarget, plan: ReplayPlan, options: RunOptions, folder: str, *, keep: bool
) -> Answer:
    from sessgit.cli.pages import replay as page
    from sessgit.replay import kept_result
    from sessgit.replay import run as runs
    from sessgit.replay.sandbox import workspace

    project = client_files.localize_state(target.branch.state, here.local_path).project
    if keep:
        kept_result.check_can_keep(here.context, target.branch.state)
    if folder:
        protected = workspace.protected_folders(project, here.env.store, here.env.homes)
        folder = workspace.check_given_folder(here.folder(folder), protected)
    origin = workspace.code_origin(here.context, target.branch, plan.first, project)
    results = runs.skip_plan(plan)
    box: Sandbox | None = None
    kept: KeptSession | None = None
    if plan.first:
        with render.exit_on_signals():
            with (
                workspace.make_sandbox(origin, os.environ, folder) as box,
                render.progress(here, "Running", unit="cells") as progress,
            ):
                results = runs.run_plan(plan, box, options, progress)
            if keep and any(result.outcome != "skipped" for result in results):
                kept = _keep(here, target, plan, results)
    return Answer(
        lambda: page.as_json(plan, results, box, kept),
        page.executed(here, plan, results, box, kept),
        notes=map("({})".format, plan.damage),
        exit_code=_exit_code(result.outcome for result in results),
    )


def _keep(here: Invocation, target: ResolvedTarget, plan: ReplayPlan, results: tuple[CellResult, ...]) -> KeptSession:
    """Keep the results as a fork from the last replayed turn."""
    from sessgit.replay import kept_result

    context, name = here.context, here.ident(target.branch.name)
    point = fork_point.fork_point(context, replace(target, turn=plan.last, cell=""))
    address = f"{name}{plan.place}"
    fork_name = kept_result.kept_name("replay", name, plan.place)
    kept = kept_result.begin_session(context, str(uuid.uuid4()), fork_name, point, target.state)
    kept = kept_result.add_turn(context, kept, kept_result.result_turn(results, address))
    kept_result.record_operation(context, kept, f"replay of {address}: {kept_result.counts_text(results)}")
    return kept


def _send_prompts(
    here: Invocation,
    target: ResolvedTarget,
    command: str,
    protocol: Literal["each", "lines", "stream-json"] | None,
    seconds: float,
    *,
    keep: bool,
) -> Answer:
    from sessgit.cli.pages import replay as page
    from sessgit.replay import inputs

    partner = inputs.ModelCommand(command, protocol or inputs.guess_protocol(command), seconds, here.cwd, os.environ)
    with render.exit_on_signals(), render.progress(here, "Asking", unit="prompts") as progress:
        sent = inputs.send_prompts(here.context, target, partner, str(uuid.uuid4()) if keep else "", progress)
    exit_code = _exit_code(answer.outcome for answer in sent.answers)
    return Answer(lambda: page.prompts_json(sent), page.prompts(here, sent), exit_code=exit_code)


def _exit_code(outcomes: Iterable[str]) -> int:
    return _DIFFERS if {"differs", "failed"}.intersection(outcomes) else 0
