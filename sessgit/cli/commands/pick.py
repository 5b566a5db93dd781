"""`sessgit pick`: single turns of other conversations, brought into this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import invocation, render, session_argument
from sessgit.cli.arguments import completion, options
from sessgit.cli.commands.merge import created, tell_secrets, world

if TYPE_CHECKING:
    from sessgit.branch.merging.plan import Picked
    from sessgit.history.resolve import Target


def run(
    addresses: Annotated[
        list[str],
        typer.Argument(
            metavar="ADDRESS", help="The turns to copy, in order: SESSION@TURN.", autocompletion=completion.addresses
        ),
    ],
    into: options.Into = "",
    new: options.New = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Copy turns of other conversations into this one.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. The conversations are not merged: a later merge brings the rest.
    """
    from sessgit.branch import fork as forks
    from sessgit.branch.merging import merge as merges
    from sessgit.branch.merging import sides
    from sessgit.cli import client_launch
    from sessgit.cli.pages import merge as page
    from sessgit.history import client_files

    here = invocation.read()
    ours = session_argument.target(here, into, changes=not dry_run)
    sides.check_ours(ours)
    chosen = [session_argument.target(here, address) for address in addresses]
    if dry_run:
        plan = merges.picked(here.store, here.index, ours, chosen)
        if as_json:
            render.document("pick/v1", {**_json(chosen, plan), "session": None, "commit": None})
        else:
            render.lines(here, page.picked(here, ours, plan))
        return
    done = merges.pick(world(here), ours, chosen, created(here, ours.state.project, new))
    tell_secrets(done)
    assert done.picked is not None
    if as_json:
        render.document("pick/v1", {**_json(chosen, done.picked), "session": done.state.id, "commit": done.commit})
        return
    names = list(dict.fromkeys(one.branch.name for one in chosen))
    state = client_files.localized(done.state, here.here)
    way_on = client_launch.way_on(here, state, forks.resume_command(state, here.cwd))
    render.lines(here, page.done(here, done, names, way_on))


def _json(chosen: Sequence[Target], plan: Picked) -> dict[str, object]:
    return {
        **plan.as_json(),
        "turns": plan.numbers,
        "picked": [{"session": one.session, "turn": one.turn} for one in chosen],
    }
