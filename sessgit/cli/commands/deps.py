"""`sessgit deps`: what a cell depends on, or what depends on it."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import cell_argument, invocation, render
from sessgit.cli.arguments import options

_SHOWN = 40
"""So many cells of a chain are shown to a person who does not say how many."""


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    address: options.CellAddress,
    up: Annotated[bool, typer.Option("--up", help="What it depends on, as without options.")] = False,
    down: Annotated[bool, typer.Option("--down", help="What depends on it.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Draw it, the last cell first.")] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also show cells that merely came before, or after, in the conversation.")
    ] = False,
    limit: options.Limit = None,
    as_json: options.Json = False,
) -> None:
    """Show the chain of a cell: all that it depends on, in the order in which it happened.

    A call depends on the message that made it, a message on the results that it was given, and who reads a file on the
    last call that wrote it. What a command did to files is not known. The next 40 cells are shown; others, and those
    that only stood in the conversation before, are counted. --json has all.
    """
    from sessgit.cli.pages import cell_chain as page
    from sessgit.errors import UsageError
    from sessgit.history.cells import chains, details
    from sessgit.history.cells import graph as graphs

    if up and down:
        raise UsageError("--up and --down do not go together", "Ask for one after the other.")
    here = invocation.read()
    found = cell_argument.target(here, address, "deps")
    branch = found.branch
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = graphs.read(here.store, here.index, branch, progress=progress)
    chain = chains.chain(whole, cell_argument.at(here, found), down=down)
    most = None if as_json else _SHOWN if limit is None and not every else limit
    shown = page.shown(chain, most, every=every or as_json)
    with render.progress(here, "Reading", unit="turns") as progress:
        some = page.nodes(shown)
        known = details.details(here.store, branch, details.rows(here.index, branch, some), some, progress)
    if as_json:
        return render.document("deps/v1", page.as_json(branch, chain, known))
    for damage in whole.damage:
        render.tell(f"({damage})")
    render.lines(here, (page.drawing if graph else page.page)(here, branch, shown, known))
