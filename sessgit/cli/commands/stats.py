"""`sessgit stats`: what conversations used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sessgit.cli import invocation, render
from sessgit.cli.arguments import completion, options


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="SESSION[@TURN]; every conversation if left out.",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    by: Annotated[
        Literal["day", "project", "model", "session", "tool"] | None,
        typer.Option("--by", help="A line for each of these.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Of every project, as without --project.", show_default=False)
    ] = False,
    since: options.Since = "",
    project: Annotated[
        Path | None, typer.Option("--project", metavar="DIR", help="Only the project at DIR.", show_default=False)
    ] = None,
    limit: options.Limit = None,
    as_json: options.Json = False,
) -> None:
    """Show what conversations used: tokens, cost, the model's calls, tools.

    Each turn counts once, in the conversation that had it first: a fork counts only what it added, and a conversation
    also what its rewinds left behind. What subagents used is part of everything; how much that was is told. "cache"
    are the tokens that were read from the cache or written to it, "calls" those of the model, "tools" those of tools.
    A cost with ≥ lacks what models cost whose price is not known: sessgit config prices.MODEL.
    """
    from sessgit.cli.arguments import choices
    from sessgit.cli.pages import stats as page
    from sessgit.errors import UsageError
    from sessgit.history import stats
    from sessgit.store import project as projects

    if everything and (address or project):
        raise UsageError("--all counts every conversation.", "Leave --all out to choose a conversation or a project.")
    here = invocation.read()
    if not as_json:
        here.check_recorded()
    moment = choices.since(here, since)
    target = None
    if address:
        from sessgit.cli import session_argument  # what catches up with a transcript is not needed else

        target = session_argument.target(here, address)
    with render.progress(here, "Counting", unit="turns") as progress:
        found = stats.shares(here.index, progress)
    wanted = page.Wanted(by, moment, projects.root(str(project.absolute())) if project else None, target, limit)
    chosen = page.chosen(here, found, wanted)
    if as_json:
        render.document("stats/v1", page.as_json(here, chosen, wanted))
    else:
        render.lines(here, page.full(here, chosen, wanted))
