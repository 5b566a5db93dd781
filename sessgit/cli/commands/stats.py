"""`sessgit stats`: what conversations used."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sessgit.cli import frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import LIMIT, PROJECT, SINCE, argument, option, parse_time
from sessgit.cli.pages import stats as page
from sessgit.history import stats
from sessgit.store import project as projects


@frame.command("stats", needs="conversations", reads=True, excludes={"--all": "ADDRESS --project"})
def run(
    here: Invocation,
    address: str = argument("ADDRESS", "SESSION[@TURN] (default: all conversations)."),
    by: Literal["day", "project", "model", "session", "tool"] | None = option("--by", "Print one line for each."),
    everything: bool = option("--all", "Count all projects (the default)."),
    since: str = SINCE,
    project: Path | None = PROJECT,
    limit: int | None = LIMIT,
) -> Answer:
    """Show tokens, cost, model calls and tool calls.

    Each turn counts once, in the conversation that had it first: a fork counts only the turns it added. Turns that a
    rewind left behind count too. Subagents are included, and their share is shown. “cache” counts the tokens read from
    or written to the cache, “calls” the calls of the model, “tools” the tool calls. A cost with ≥ does not include
    models whose price is unknown: set it with `sessgit config prices.MODEL`.
    """
    target = None
    if address:
        from sessgit.cli import session_argument  # what catches up with a transcript is not needed else

        target = session_argument.target(here, address)
    with render.progress(here, "Counting", unit="turns") as progress:
        shares = stats.all_shares(here.index, progress)
    root = projects.project_root(here.folder(project)) if project else None
    options = page.StatsOptions(by, parse_time(since, here.now), root, target, limit)
    chosen = page.select(here, shares, options)
    return Answer(lambda: page.as_json(here, chosen, options), page.full(here, chosen, options))
