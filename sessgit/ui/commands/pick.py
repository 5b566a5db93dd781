"""`sessgit pick`: single turns of other conversations, brought into this one."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import complete, context, named, options, render
from sessgit.ui.commands.merge import created, tell_secrets


def run(
    addresses: Annotated[
        list[str],
        typer.Argument(
            metavar="ADDRESS", help="SESSION@TURN: the turns, in their order.", autocompletion=complete.addresses
        ),
    ],
    into: options.Into = "",
    new: options.New = None,
    as_json: options.Json = False,
) -> None:
    """Bring single turns of other conversations into this one.

    They are appended to the client's file, if no client has it open; --new makes a new conversation instead. The
    conversations that they come from are not merged: a later merge brings back the rest.
    """
    from sessgit.ops import fork as forks
    from sessgit.ops.merging import merge as merges
    from sessgit.ops.merging import sides
    from sessgit.ui.pages import merge as page

    here = context.read()
    ours = named.target(here, into, changes=True)
    sides.check_ours(ours)
    chosen = [named.target(here, address) for address in addresses]
    world = merges.World(here.config, here.privacy, here.now)
    done = merges.pick(here.store, here.index, ours, chosen, world, created(here, ours.state.project, new))
    tell_secrets(done)
    if as_json:
        picked = [{"session": one.session, "turn": one.turn} for one in chosen]
        value = {"session": done.state.id, "commit": done.commit, "turns": list(done.turns), "picked": picked}
        render.document("pick/v1", value)
        return
    names = list(dict.fromkeys(one.branch.name for one in chosen))
    render.lines(here, page.done(here, done, names, forks.resume_command(done.state, here.cwd)))
