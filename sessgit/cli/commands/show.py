"""`sessgit show`: a conversation, a turn or a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import cell_argument, frame, render, session_argument
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.cli.pages.turn_pieces import Wanted
    from sessgit.history.resolve import ResolvedTarget


@frame.command("show", reads=True)
def run(
    here: Invocation,
    address: options.AnyAddress = "",
    thinking: Annotated[bool, typer.Option("--thinking", help="Show the model's thinking in full.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show everything in full.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the recorded transcript lines.")] = False,
    deps: Annotated[
        bool, typer.Option("--deps", help="Of a cell: also show the cells it depends on, and those that depend on it.")
    ] = False,
) -> Answer | None:
    """Show a conversation, a turn or a cell.

    For a conversation, prints a summary: what it is about, what it used, its files and its relatives. For a turn (@7),
    what was said and done, with long results folded. For a cell (@7.3, or its id), everything. @0 is the start. --raw
    prints the transcript lines of the turn (including those before its prompt), of the cell, or of all turns, byte for
    byte if the output is a pipe.
    """
    from sessgit.cli.pages.turn_pieces import Wanted
    from sessgit.errors import UsageError

    if raw and here.json:
        raise UsageError("--raw and --json cannot be combined", "Use one of the two.")
    if raw and deps:
        raise UsageError("--raw and --deps cannot be combined", "Use one of the two.")
    found = (
        cell_argument.target(here, address, "show")
        if cell_argument.is_id(address)
        else session_argument.target(here, address)
    )
    if deps and not found.cell:
        raise UsageError(
            "--deps needs a cell.",
            f"`sessgit cells {here.ident(found.branch.name)}` lists the cells.",
        )
    if raw:
        _raw(here, found)
        return None
    if deps:
        return _cell_in_session(here, found)
    if found.cell:
        return _cell(here, found)
    if found.turn is None:
        return _session(here, found, Wanted(thinking, full))
    return _turn(here, found, Wanted(thinking, full)) if found.turn else _start(here, found)


def _session(here: Invocation, found: ResolvedTarget, wanted: Wanted) -> Answer:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    with render.progress(here, "Reading", unit="turns") as progress:
        if here.json:
            value = documents.session_document(here.store, here.index, found.branch, here.settings.prices, progress)
            return Answer(lambda: {"session": value})
        card = show.session_card(here.store, here.index, found.branch, here.config, progress)
    return Answer(dict, page.card(here, card, wanted))


def _turn(here: Invocation, found: ResolvedTarget, wanted: Wanted) -> Answer:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    assert found.turn is not None
    shown = show.show_turn(here.store, here.index, found.branch, found.turn)
    return Answer(
        lambda: {"turn": documents.turn_document(shown, here.settings.prices)}, page.turn(here, shown, wanted)
    )


def _cell(here: Invocation, found: ResolvedTarget) -> Answer:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    assert found.turn is not None
    shown = show.show_cell(here.store, here.index, found.branch, found.turn, found.cell)
    return Answer(lambda: {"cell": documents.cell_document(shown, here.settings.prices)}, page.cell(here, shown))


def _cell_in_session(here: Invocation, found: ResolvedTarget) -> Answer:
    """Show a cell with the cells of the whole conversation that it depends on directly, and that depend on it."""
    from itertools import chain

    from sessgit.cli.pages import cell_chain
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show
    from sessgit.history.cells import details
    from sessgit.history.cells import graph as graphs

    assert found.turn is not None
    shown = show.show_cell(here.store, here.index, found.branch, found.turn, found.cell)
    own = f"{found.turn}.{shown.ordinal}"
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = graphs.read_graph(here.store, here.index, found.branch, progress=progress)
    if here.json:
        value = documents.cell_document(shown, here.settings.prices) | {"in_session": cell_chain.edges(whole, own)}
        return Answer(lambda: {"cell": value})
    others = cell_chain.beside(whole, own)
    known = details.cell_details(here.store, found.branch, details.turn_rows(here.index, found.branch, others), others)
    related = cell_chain.related(here, found.branch, whole, own, known)
    return Answer(dict, chain(page.cell(here, shown), related), frame.damage(here, whole.damage))


def _start(here: Invocation, found: ResolvedTarget) -> Answer:
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show

    shown = show.show_start(here.store, here.index, found.branch)
    return Answer(lambda: {"turn": documents.start_document(shown)}, page.start(here, shown))


def _raw(here: Invocation, found: ResolvedTarget) -> None:
    from sessgit.history import resolve, show

    if found.cell:
        assert found.turn is not None
        shown = show.show_cell(here.store, here.index, found.branch, found.turn, found.cell)
        render.raw(here, show.raw_cell(here.store, shown))
    elif found.turn is None:
        render.raw(here, show.raw_session(here.store, found.branch))
    elif found.turn:
        resolve.row_of(here.index, found.branch, found.turn)
        render.raw(here, show.raw_turn(here.store, found.branch, found.turn))
