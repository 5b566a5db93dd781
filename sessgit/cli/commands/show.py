"""`sessgit show`: a conversation, a turn or a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import cell_argument, invocation, render, session_argument
from sessgit.cli.arguments import options

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.cli.pages.turn_pieces import Wanted
    from sessgit.history.resolve import Target


def run(
    address: options.AnyAddress = "",
    thinking: Annotated[bool, typer.Option("--thinking", help="Show the model's thinking in full.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show everything in full.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the recorded transcript lines.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show a conversation, a turn or a cell.

    For a conversation, prints a summary: what it is about, what it used, its files and its relatives. For a turn (@7),
    what was said and done, with long results folded. For a cell (@7.3, or its id), everything. @0 is the start. --raw
    prints the transcript lines of the turn (including those before its prompt), of the cell, or of all turns, byte for
    byte if the output is a pipe.
    """
    from sessgit.cli.pages.turn_pieces import Wanted
    from sessgit.errors import UsageError

    if raw and as_json:
        raise UsageError("--raw and --json cannot be combined", "Use one of the two.")
    here = invocation.read()
    found = (
        cell_argument.target(here, address, "show")
        if cell_argument.is_id(address)
        else session_argument.target(here, address)
    )
    if raw:
        _raw(here, found)
    elif found.cell:
        _cell(here, found, as_json=as_json)
    elif found.turn is None:
        _session(here, found, Wanted(thinking, full), as_json=as_json)
    elif not found.turn:
        _start(here, found, as_json=as_json)
    else:
        _turn(here, found, Wanted(thinking, full), as_json=as_json)


def _session(here: Invocation, found: Target, wanted: Wanted, *, as_json: bool) -> None:
    from sessgit.history import show

    with render.progress(here, "Reading", unit="turns") as progress:
        if as_json:
            from sessgit.history import documents

            document = documents.session(here.store, here.index, found.branch, here.settings.prices, progress)
        else:
            card = show.card(here.store, here.index, found.branch, here.config, progress)
    if as_json:
        render.document("session/v1", document)
    else:
        from sessgit.cli.pages import show as page

        render.lines(here, page.card(here, card, wanted))


def _turn(here: Invocation, found: Target, wanted: Wanted, *, as_json: bool) -> None:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    assert found.turn is not None
    shown = show.turn(here.store, here.index, found.branch, found.turn)
    if as_json:
        render.document("turn/v1", documents.turn(shown, here.settings.prices))
    else:
        render.lines(here, page.turn(here, shown, wanted))


def _cell(here: Invocation, found: Target, *, as_json: bool) -> None:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    assert found.turn is not None
    shown = show.cell(here.store, here.index, found.branch, found.turn, found.cell)
    if as_json:
        render.document("cell/v1", documents.cell(shown, here.settings.prices))
    else:
        render.lines(here, page.cell(here, shown))


def _start(here: Invocation, found: Target, *, as_json: bool) -> None:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    shown = show.start(here.store, here.index, found.branch)
    if as_json:
        render.document("turn/v1", documents.start(shown))
    else:
        render.lines(here, page.start(here, shown))


def _raw(here: Invocation, found: Target) -> None:
    from sessgit.history import resolve, show

    if found.cell:
        assert found.turn is not None
        shown = show.cell(here.store, here.index, found.branch, found.turn, found.cell)
        render.raw(here, show.raw_cell(here.store, shown))
    elif found.turn is None:
        render.raw(here, show.raw_session(here.store, found.branch))
    elif found.turn:
        resolve.row_of(here.index, found.branch, found.turn)
        render.raw(here, show.raw_turn(here.store, found.branch, found.turn))
