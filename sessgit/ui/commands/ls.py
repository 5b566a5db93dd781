"""`sessgit ls`: the conversations of this project."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import context, options, render


def run(
    everything: Annotated[
        bool, typer.Option("--all", help="Those of every project, also headless ones and those without a turn.")
    ] = False,
    limit: options.Limit = None,
    as_json: options.Json = False,
) -> None:
    """List the conversations of this project.

    Forks stand under the conversations that they left, and ● marks those that are open in a client.
    """
    from sessgit.ops import ls, views
    from sessgit.ui.pages import ls as page

    here = context.read()
    listing = ls.listing(here.index, None if everything else here.cwd)
    if as_json:
        found = [views.session_json(branch, here.settings.prices) for branch in listing.branches(limit)]
        render.document("ls/v1", found)
    else:
        render.lines(here, page.full(here, listing, limit, by_project=everything))
