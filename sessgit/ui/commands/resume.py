"""`sessgit resume`: a conversation continued in the client."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import beside, context, named, options, render


def run(
    address: options.Address = "",
    show: Annotated[bool, typer.Option("--print", help="Print the command only.")] = False,
) -> None:
    """Continue a conversation in the client.

    Its transcript, and what lay beside it, is written anew if the client has deleted it.
    """
    from sessgit.agents.claude import home
    from sessgit.errors import NotFoundError, UsageError
    from sessgit.ops import fork as forks
    from sessgit.ops import places, restore
    from sessgit.store import layout
    from sessgit.ui import client

    here = context.read()
    found = named.target(here, address)
    state, name = found.state, found.branch.name[:8]
    if layout.is_rewound(found.branch.name) or found.cell or found.turn not in (None, state.turns):
        at = "" if found.turn is None else f" --at {found.turn}{'.' if found.cell else ''}{found.cell}"
        raise UsageError(
            "a conversation is continued at its end.",
            f"sessgit fork {here.ident(found.branch.name)}{at} --run continues a part of it.",
        )
    if not state.turns:
        raise NotFoundError(f"{name} has no turn yet: there is nothing to continue.")
    place = places.place_of(here.config, state)
    is_there = place is not None and home.is_there(place)
    if places.is_gone(state.project):
        verb = "fork" if is_there else "restore"
        raise NotFoundError(
            f"the project's folder is gone: {here.short(state.project)}",
            f"sessgit {verb} {here.ident(found.session)} --project DIR writes it for another one.",
        )
    if not is_there:
        done = restore.restore(here.store, found.session, here.config)
        render.tell(f"The client had deleted it: {here.short(done.path)} is back.")
        for line in beside.told(done.files):
            render.tell(line)
    if show:
        render.write(forks.resume_command(state, here.cwd) + "\n")
    else:
        client.resume(state, here.cwd)
