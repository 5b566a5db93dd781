"""`sessgit tree`: families of conversations as a drawing."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from sessgit import agents
from sessgit.cli import at_operation, frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import AT_OP, EVERYWHERE, PROJECT, argument, at_least_0, option
from sessgit.cli.pages import tree as page
from sessgit.history import tree

_DRAWN = 40
"""The most families that are drawn on a terminal without a limit."""


@frame.command("tree", reads=True, excludes={"ADDRESS": "--all --project"})
def run(
    here: Invocation,
    address: str = argument("ADDRESS", "Draw this family (default: those of this project)."),
    everything: bool = EVERYWHERE,
    project: Path | None = PROJECT,
    limit: int | None = option("-n, --limit N", "Draw at most N families.", callback=at_least_0),
    at_op: str = AT_OP,
) -> Answer:
    """Draw conversations, their forks and merges.

    Also draws the turns left behind by rewinds. The id is followed by the fork point: @4 is after turn 4, @7.3 at the
    third cell of turn 7. “2 of 6 turns” are its own turns and all turns, the cost is that of its own turns, and the
    quoted text is its first own prompt. If there are many, small forks without a name are only counted; --json lists
    all.

    With --at-op, draws the state after that operation, and marks nothing as live.
    """
    asof = at_operation.read(here, at_op)
    if not here.json and asof is None:
        here.check_recorded()
    session = at_operation.target(here, asof, address).session if address else ""
    live = agents.open_sessions(here.env.homes) if asof is None else frozenset[str]()
    query = tree.TreeFilter(
        session=session,
        folder=None if everything else here.folder(project),
        everything=everything,
        limit=limit if limit is not None or here.json else _DRAWN,
        live=live,
        fold=not here.json,
    )
    with render.progress(here, "Counting", unit="turns") as progress:
        forest = tree.build_forest(here.index, query, here.settings.prices, progress)
    options = page.TreeOptions(bool(address), everything, str(project or ""), limit is not None, live)
    return Answer(
        lambda: tree.forest_json(forest, live, here.settings.prices) | {"at_op": at_operation.as_json(asof)},
        chain(at_operation.headline(here, asof), page.full(here, forest, options)),
    )
