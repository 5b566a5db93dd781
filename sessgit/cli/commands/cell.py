"""`sessgit cell`: all of one cell, with what it depends on in the whole conversation."""

from __future__ import annotations

from itertools import chain

from sessgit.cli import cell_argument, invocation, render
from sessgit.cli.arguments import options


def run(
    address: options.CellAddress,
    as_json: options.Json = False,
) -> None:
    """Show a cell and the cells it depends on.

    Prints what `sessgit show` prints, and the cells of other turns: what came before the first message of its turn, and
    the call that wrote a file that it read. An id, cell_ and eight characters, is looked up in the current
    conversation; A@.cell_xxxxxxxx names one of conversation A.
    """
    from sessgit.cli.pages import cell_chain
    from sessgit.cli.pages import show as page
    from sessgit.history import documents, show
    from sessgit.history.cells import details
    from sessgit.history.cells import graph as graphs

    here = invocation.read()
    found = cell_argument.target(here, address, "cell")
    assert found.turn is not None
    shown = show.cell(here.store, here.index, found.branch, found.turn, found.cell)
    own = f"{found.turn}.{shown.ordinal}"
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = graphs.read(here.store, here.index, found.branch, progress=progress)
    if as_json:
        value = documents.cell(shown, here.settings.prices)
        return render.document("cell/v1", value | {"in_session": cell_chain.edges(whole, own)})
    for damage in whole.damage:
        render.tell(f"({damage})")
    others = cell_chain.beside(whole, own)
    rows = details.rows(here.index, found.branch, others)
    known = details.details(here.store, found.branch, rows, others)
    render.lines(here, chain(page.cell(here, shown), cell_chain.related(here, found.branch, whole, own, known)))
