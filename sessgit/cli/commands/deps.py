"""`sessgit deps`: what a cell depends on, or what depends on it."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import cell_argument, frame, render
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

_SHOWN = 40
"""So many cells of a chain are shown to a person who does not say how many."""


@frame.command("deps", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    address: options.CellAddress,
    up: Annotated[bool, typer.Option("--up", help="Show what it depends on (the default).")] = False,
    down: Annotated[bool, typer.Option("--down", help="Show what depends on it.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Draw a graph, newest cell first.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also show cells that merely came before or after it.")] = False,
    limit: options.Limit = None,
) -> Answer:
    """Show all cells that a cell depends on.

    A call depends on the message that made it, a message on the results it was given, and a cell that reads a file on
    the last call that wrote it. Changes that shell commands make to files are not tracked. Prints the nearest 40 cells
    in the order in which they happened; other cells, and those that merely came before, are counted. --json prints all.
    """
    from sessgit.cli.pages import cell_chain as page
    from sessgit.errors import UsageError
    from sessgit.history.cells import chains, details
    from sessgit.history.cells import graph as graphs

    if up and down:
        raise UsageError("--up and --down cannot be combined", "Use one of the two.")
    found = cell_argument.target(here, address, "deps")
    branch = found.branch
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = graphs.read_graph(here.store, here.index, branch, progress=progress)
    chain = chains.cell_chain(whole, cell_argument.at(here, found), down=down)
    most = None if here.json else _SHOWN if limit is None and not every else limit
    shown = page.shown(chain, most, every=every or here.json)
    with render.progress(here, "Reading", unit="turns") as progress:
        some = page.nodes(shown)
        known = details.cell_details(here.store, branch, details.turn_rows(here.index, branch, some), some, progress)
    return Answer(
        lambda: page.as_json(branch, chain, known),
        (page.drawing if graph else page.page)(here, branch, shown, known),
        frame.damage(here, whole.damage),
    )
