"""`sessgit stats`: what conversations used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sessgit.cli import frame, render
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation


@frame.command("stats", needs="conversations", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="SESSION[@TURN] (default: all conversations).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    by: Annotated[
        Literal["day", "project", "model", "session", "tool"] | None,
        typer.Option("--by", help="Print one line for each.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Count all projects (the default).", show_default=False)
    ] = False,
    since: options.Since = "",
    project: Annotated[
        Path | None, typer.Option("--project", metavar="DIR", help="Only the project at DIR.", show_default=False)
    ] = None,
    limit: options.Limit = None,
) -> Answer:
    """Show tokens, cost, model calls and tool calls.

    Each turn counts once, in the conversation that had it first: a fork counts only the turns it added. Turns that a
    rewind left behind count too. Subagents are included, and their share is shown. “cache” counts the tokens read from
    or written to the cache, “calls” the calls of the model, “tools” the tool calls. A cost with ≥ does not include
    models whose price is unknown: set it with `sessgit config prices.MODEL`.
    """
    from sessgit.cli.arguments import choices
    from sessgit.cli.pages import stats as page
    from sessgit.errors import UsageError
    from sessgit.history import stats
    from sessgit.store import project as projects

    if everything and (address or project):
        raise UsageError("--all counts every conversation.", "Leave out --all to select a conversation or a project.")
    moment = choices.since(here, since)
    target = None
    if address:
        from sessgit.cli import session_argument  # what catches up with a transcript is not needed else

        target = session_argument.target(here, address)
    with render.progress(here, "Counting", unit="turns") as progress:
        found = stats.all_shares(here.index, progress)
    wanted = page.Wanted(by, moment, projects.project_root(str(project.absolute())) if project else None, target, limit)
    chosen = page.chosen(here, found, wanted)
    return Answer(lambda: page.as_json(here, chosen, wanted), page.full(here, chosen, wanted))
