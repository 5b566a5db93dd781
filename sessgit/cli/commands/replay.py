"""`sessgit replay`: cells run again, and what comes of them held against what is recorded."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import cell_argument, frame, render, session_argument
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.replay import model_runner
    from sessgit.replay.kept_result import KeptSession
    from sessgit.replay.plan import ReplayPlan
    from sessgit.replay.run import CellResult, RunOptions
    from sessgit.replay.sandbox.workspace import Sandbox

_DIFFERS = 6
_SECONDS, _PROMPT_SECONDS = 60.0, 600.0


@frame.command("replay", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    address: options.AnyAddress = "",
    cells: Annotated[
        list[str] | None,
        typer.Option("--cell", metavar="CELL", help="Only this cell: 7.3, an id, or its number; may be repeated."),
    ] = None,
    chain: Annotated[bool, typer.Option("--chain", help="Also all cells that these depend on.")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Run the cells (default: only show them).")] = False,
    folder: Annotated[
        str, typer.Option("--in", metavar="DIR", help="Run in DIR, not in a copy of the project.", show_default=False)
    ] = "",
    llm: Annotated[
        str,
        typer.Option(
            "--llm",
            metavar="COMMAND",
            help="Ask a model: prompt on stdin, answer on stdout.",
            show_default=False,
        ),
    ] = "",
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Limit per cell (60) or per answer (600).", show_default=False
        ),
    ] = None,
    memory: Annotated[
        int, typer.Option("--memory", metavar="MB", help="Limit per cell, with all its processes.")
    ] = 2048,
    network: Annotated[bool, typer.Option("--network", help="Allow network access.")] = False,
    unconfined: Annotated[
        bool,
        typer.Option("--unconfined", help="Run without a sandbox: commands can do all that you can."),
    ] = False,
    no_keep: Annotated[bool, typer.Option("--no-keep", help="Do not keep the results.")] = False,
    inputs: Annotated[bool, typer.Option("--inputs", help="Send the prompts to a new process instead.")] = False,
    to: Annotated[
        str,
        typer.Option("--to", metavar="COMMAND", help="With --inputs: the process to send them to.", show_default=False),
    ] = "",
    protocol: Annotated[
        Literal["each", "lines", "stream-json"] | None,
        typer.Option("--protocol", help="With --inputs: the protocol of COMMAND.", show_default=False),
    ] = None,
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
    from sessgit.errors import UsageError

    if (timeout is not None and not 0 < timeout < 1 << 31) or not 0 < memory < 1 << 31:
        raise UsageError("--timeout and --memory must be more than 0", "And less than 2147483648.")
    if inputs:
        if not to:
            raise UsageError("--inputs needs --to COMMAND", "`sessgit replay --inputs ID --to 'claude -p'`")
        if cells or chain or execute or folder or llm:
            raise UsageError(
                "--inputs sends prompts, and runs no cells.", "Leave out --cell, --chain, --execute, --in and --llm."
            )
        partner = (to, protocol, timeout or _PROMPT_SECONDS)
        return _inputs(here, session_argument.target(here, address), partner, no_keep)
    if to or protocol:
        raise UsageError("--to and --protocol need --inputs.", "`sessgit replay --inputs ID --to COMMAND`")
    found = (
        cell_argument.target(here, address, "replay") if "cell_" in address else session_argument.target(here, address)
    )
    chosen = tuple(cells or ())
    if found.cell and chosen:
        raise UsageError("the address already names a cell.", "Use the address or --cell.")
    from sessgit.replay.run import RunOptions
    from sessgit.replay.sandbox.process_limits import Limits

    limits = replace(Limits(), seconds=timeout or _SECONDS, memory=memory << 20)
    how = RunOptions(limits, network, unconfined, llm, here.cwd, os.environ)
    plan = _planned(here, found, (found.cell,) if found.cell else chosen, chain=chain, model=bool(llm))
    if execute:
        return _execute(here, found, plan, how, folder, keep=not no_keep)
    return _show(here, plan)


def _planned(
    here: Invocation, found: ResolvedTarget, cells: tuple[str, ...], *, chain: bool, model: bool
) -> ReplayPlan:
    from sessgit.history import client_files
    from sessgit.replay import plan
    from sessgit.replay.sandbox import workspace

    state = found.branch.state
    root = workspace.sandboxed_root(state.project, client_files.localize_state(state, here.here).project, os.environ)
    choice = plan.ReplayChoice(found.turn, cells, chain, root, model)
    with render.progress(here, "Reading", unit="turns") as progress:
        return plan.plan_replay(here.store, here.index, found.branch, choice, progress)


def _show(here: Invocation, plan: ReplayPlan) -> Answer:
    from sessgit.cli.pages import replay as page

    return Answer(lambda: page.as_json(plan), page.planned(here, plan), frame.damage(here, plan.damage))


def _execute(
    here: Invocation, found: ResolvedTarget, plan: ReplayPlan, how: RunOptions, folder: str, *, keep: bool
) -> Answer:  # fmt: skip
    from sessgit.history import client_files
    from sessgit.replay import kept_result
    from sessgit.replay import run as runs
    from sessgit.replay.sandbox import workspace

    state = client_files.localize_state(found.branch.state, here.here)
    if keep:
        kept_result.check_can_keep(here.world, found.branch.state)
    chosen = ""
    if folder:
        chosen = workspace.check_given_folder(
            here.folder(folder), workspace.protected_folders(state.project, here.store_path, here.config)
        )
    origin = workspace.code_origin(here.store, here.index, found.branch, plan.first, state.project)
    if not plan.first:
        return _told(here, plan, runs.skip_plan(plan), None, None)
    with render.leaving_in_order():
        with (
            workspace.make_sandbox(origin, os.environ, chosen) as box,
            render.progress(here, "Running", unit="cells") as progress,
        ):
            results = runs.run_plan(plan, box, how, progress)
        kept = _kept(here, found, plan, results) if keep and any(one.outcome != "skipped" for one in results) else None
    return _told(here, plan, results, box, kept)


def _told(
    here: Invocation, plan: ReplayPlan, results: tuple[CellResult, ...], box: Sandbox | None, kept: KeptSession | None
) -> Answer:
    from sessgit.cli.pages import replay as page

    return Answer(
        lambda: page.as_json(plan, results, box, kept),
        page.done(here, plan, results, box, kept),
        frame.damage(here, plan.damage),
        _DIFFERS if any(one.outcome in ("differs", "failed") for one in results) else 0,
    )


def _kept(here: Invocation, found: ResolvedTarget, plan: ReplayPlan, results: tuple[CellResult, ...]) -> KeptSession:
    import uuid

    from sessgit.history import fork_point
    from sessgit.replay import kept_result

    world, short = here.world, here.ident(found.branch.name)
    point = fork_point.fork_point(here.store, here.index, replace(found, turn=plan.last, cell=""))
    address = f"{short}{plan.place}"
    new = kept_result.NewSession(
        str(uuid.uuid4()), kept_result.kept_name("replay", short, plan.place), point, found.state
    )
    kept = kept_result.begin_session(world, new)
    kept = kept_result.add_turns(world, kept, [kept_result.result_turn(results, address)])
    kept_result.record_operation(world, kept, f"replay of {address}: {kept_result.counts_text(results)}")
    return kept


def _inputs(
    here: Invocation, found: ResolvedTarget, to: tuple[str, model_runner.Protocol | None, float], no_keep: bool
) -> Answer:
    import uuid

    from sessgit.cli.pages import replay as page
    from sessgit.replay import inputs, model_runner

    command, protocol, seconds = to
    partner = model_runner.ModelCommand(
        command, protocol or model_runner.guess_protocol(command), seconds, here.cwd, os.environ
    )
    with render.leaving_in_order(), render.progress(here, "Asking", unit="prompts") as progress:
        sent = inputs.send_prompts(here.world, found, partner, "" if no_keep else str(uuid.uuid4()), progress)
    return Answer(
        lambda: page.sent_json(sent),
        page.sent(here, sent),
        exit_code=_DIFFERS if any(one.outcome in ("differs", "failed") for one in sent.answers) else 0,
    )
