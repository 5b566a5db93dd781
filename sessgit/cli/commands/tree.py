"""`sessgit tree`: families of conversations as a drawing."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import typer

from sessgit.cli import at_operation, frame, render
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

_FOLD = 40
"""So many families a person is shown where no number is given."""


@frame.command("tree", reads=True)
def run(
    here: Invocation,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="Draw this family (default: those of this project).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    everything: options.Everywhere = False,
    project: options.Project = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            metavar="N",
            help="Draw at most N families.",
            show_default=False,
            callback=options.not_negative,
        ),
    ] = None,
    at_op: options.AtOp = "",
) -> Answer:
    """Draw conversations, their forks and merges.

    Also draws the turns left behind by rewinds. The id is followed by the fork point: @4 is after turn 4, @7.3 at the
    third cell of turn 7. “2 of 6 turns” are its own turns and all turns, the cost is that of its own turns, and the
    quoted text is its first own prompt. If there are many, small forks without a name are only counted; --json lists
    all.

    With --at-op, draws the state after that operation, and marks nothing as live.
    """
    from sessgit import agents
    from sessgit.cli.pages import tree as page
    from sessgit.errors import UsageError
    from sessgit.history import tree

    if address and (everything or project):
        raise UsageError(
            "an address cannot be combined with --all or --project.", "Leave out the address, or --all and --project."
        )
    asof = at_operation.read(here, at_op)
    if not here.json and asof is None:
        here.check_recorded()
    session = ""
    if address:
        session = at_operation.target(here, asof, address).session
    live = agents.at(here.config).home.open_sessions(here.config) if asof is None else frozenset[str]()
    wanted = tree.TreeFilter(
        session=session,
        folder=None if everything else str(project.absolute()) if project else here.cwd,
        everything=everything,
        limit=limit if limit is not None or here.json else _FOLD,
        live=live,
        fold=not here.json,
    )
    with render.progress(here, "Counting", unit="turns") as progress:
        forest = tree.build_forest(here.index, wanted, here.settings.prices, progress)
    chosen = page.Chosen(bool(address), everything, str(project or ""), limit is not None, live)
    return Answer(
        lambda: page.as_json(here, forest, live) | {"at_op": at_operation.as_json(asof)},
        chain(at_operation.headline(here, asof), page.full(here, forest, chosen)),
    )
