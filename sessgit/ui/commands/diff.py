"""`sessgit diff`: what two conversations have in common, and what each did on its own."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import complete, context, named, options, render


def run(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="SESSION[@TURN]; the current session if left out.",
            show_default=False,
            autocompletion=complete.addresses,
        ),
    ] = "",
    b: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="The same; the conversation that A left if left out.",
            show_default=False,
            autocompletion=complete.addresses,
        ),
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Compare two conversations.

    What both have is one line; then come the turns that only one has, the files and what it cost.
    """
    from sessgit.errors import UsageError
    from sessgit.ops import diff as diffs
    from sessgit.ui.pages import diff as page

    here = context.read()
    left = named.target(here, a)
    if b:
        right = named.target(here, b)
    elif left.state.origin is not None:
        left, right = named.target(here, left.state.origin.session), left
    else:
        raise UsageError(
            f"{left.branch.name[:8]} left no other conversation.", "Name two: sessgit diff A B. sessgit ls shows them."
        )
    found = diffs.diff(here.store, here.index, (left.branch, left.turn), (right.branch, right.turn))
    if as_json:
        render.document("diff/v1", diffs.as_json(here.store, found, here.settings.prices))
    else:
        render.lines(here, page.full(here, found))
