"""`sessgit cells`: the calls and messages of a conversation, one to a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import frame, render, session_argument
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.history.resolve import ResolvedTarget

_SHOWN = 100
"""So many are shown to a person who does not say how many."""


@frame.command("cells", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    address: options.Address = "",
    limit: options.Limit = None,
    kind: Annotated[
        Literal["llm_call", "tool", "repl", "map_reduce", "verification"] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            show_default=False,
            help="Only this type: tool or llm_call; repl, map_reduce or verification, which programs write.",
        ),
    ] = None,
    operation: Annotated[
        str, typer.Option("--operation", metavar="OP", help="Only this tool or model.", show_default=False)
    ] = "",
    turn: Annotated[int | None, typer.Option("--turn", metavar="N", help="Only one turn.", show_default=False)] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only failed calls, and commands with an exit code other than 0.")
    ] = False,
    index: Annotated[bool, typer.Option("--index", help="Print the dependency graph as JSON.")] = False,
) -> Answer:
    """List the cells of a conversation, oldest first.

    A cell is a tool call or a message of the model. Each is listed with its address, its id, what it is about, how it
    ended and how long it took: the last 100, or N. @N lists those up to turn N. --index prints all of them as one
    graph.
    """
    from sessgit.errors import UsageError

    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "cells lists the cells of a conversation; the address names one cell.",
            f"`sessgit show {here.ident(found.branch.name)}@{found.turn}.{found.cell}`",
        )
    if index:
        if kind or operation or failed or turn is not None or limit is not None:
            raise UsageError("--index always prints all cells.", "To select cells, leave out --index.")
        return _index(here, found)
    return _list(here, found, (kind, operation, turn, failed), limit)


def _list(
    here: Invocation, found: ResolvedTarget, chosen: tuple[str | None, str, int | None, bool], limit: int | None
) -> Answer:
    from sessgit.cli.pages import cells as page
    from sessgit.history import resolve
    from sessgit.history.cells import details, listing
    from sessgit.model.address import Address

    kind, operation, turn, failed = chosen
    number = resolve.resolve_target(here.index, Address(found.branch.name, turn), here.where).turn
    most = limit if limit is not None or here.json else _SHOWN
    choice = listing.CellFilter(kind or "", operation, number, failed, found.turn, most)
    with render.progress(here, "Looking", unit="turns") as progress:
        listed = listing.list_cells(here.store, here.index, found.branch, choice, progress)
    with render.progress(here, "Reading", unit="turns") as progress:
        known = details.cell_details(here.store, found.branch, listed.rows, listed.nodes, progress)
    return Answer(
        lambda: page.as_json(found.branch, listed, known),
        page.page(here, found.branch, listed, known),
        frame.damage(here, listed.damage),
    )


def _index(here: Invocation, found: ResolvedTarget) -> Answer:
    import json

    from sessgit.history.cells import graph, index

    with render.progress(here, "Reading", unit="turns") as progress:
        read = graph.read_graph(here.store, here.index, found.branch, found.turn, progress)
    for damage in read.damage:
        render.tell(f"({damage})")
    value = index.index_document(found.session, read)
    return Answer(lambda: {"index": value}, json.dumps(value, indent=2).split("\n"))
