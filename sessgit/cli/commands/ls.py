"""`sessgit ls`: the conversations of this project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from sessgit.cli import frame
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

_FOLD = 200
"""So many conversations a person is shown where no number is given."""


@frame.command("ls", needs="conversations", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    paths: options.Paths = None,
    everything: options.Everywhere = False,
    project: options.Project = None,
    label: options.Labels = None,
    state: Annotated[
        Literal["live", "active", "ended", "interrupted"] | None,
        typer.Option("--state", help="Only in this state; live means open in a client.", show_default=False),
    ] = None,
    stage: Annotated[
        Literal["gathering", "shaping", "critiquing", "synthesized"] | None,
        typer.Option("--stage", help="Only at this stage.", show_default=False),
    ] = None,
    since: options.Since = "",
    forks_of: Annotated[
        str,
        typer.Option(
            "--forks-of",
            metavar="ADDRESS",
            help="Only forks of this conversation, and forks of those.",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    search: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Only those that contain TEXT.", show_default=False)
    ] = "",
    archived: Annotated[bool, typer.Option("--archived", help="List archived conversations.")] = False,
    headless: Annotated[
        bool, typer.Option("--headless", help="Also list headless conversations, run by programs.")
    ] = False,
    order: Annotated[
        Literal["updated", "created", "turns", "tokens", "cost", "name"] | None,
        typer.Option("--order", help="Sort like this, and do not group forks.", show_default=False),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order.")] = False,
    limit: options.Limit = None,
    offset: Annotated[
        int,
        typer.Option(
            "--offset", metavar="N", help="Skip the first N.", show_default=False, callback=options.not_negative
        ),
    ] = 0,
) -> Answer:
    """List the conversations of this project.

    Forks are listed under the conversation they were forked from; ● marks conversations that are open in a client. With
    -- PATH, only conversations in which a tool read or changed PATH: a file, a folder or a glob.
    """
    from sessgit import agents
    from sessgit.cli import session_argument
    from sessgit.cli.arguments import choices
    from sessgit.cli.pages import ls as page
    from sessgit.history import ls

    folder = str(project.absolute()) if project else here.cwd
    wanted = ls.SessionFilter(
        folder=None if everything else folder,
        labels=tuple(label or ()),
        state=state,
        stage=stage or "",
        since=choices.since(here, since),
        among=choices.among(here, search=search, paths=paths or []),
        forks_of=session_argument.target(here, forks_of).session if forks_of else "",
        archived=archived,
        headless=headless or everything,
        empty=everything,
        live=agents.at(here.config).home.open_sessions(here.config),
        order=order,
        reverse=reverse,
    )
    most = limit if limit is not None or here.json else _FOLD
    listing = ls.list_sessions(here.index, wanted, most, offset, here.settings.prices)
    return Answer(
        lambda: {"sessions": page.as_json(here, listing)},
        page.full(here, listing, by_project=everything, folded=limit is None),
        notes=_damaged(here),
    )


def _damaged(here: Invocation) -> Iterator[str]:
    damaged = here.index.damaged
    for name, damage in list(damaged.items())[:1]:
        others = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        yield f"{here.ident(name)} cannot be read: {damage}{others}. {damage.hint}".rstrip()
