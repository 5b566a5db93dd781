"""`sessgit resume`: a conversation continued in the client."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from sessgit.ui import beside, context, named, options, render


def run(
    address: options.Address = "",
    show: Annotated[bool, typer.Option("--print", help="Print the command only.")] = False,
    brief: Annotated[bool, typer.Option("--brief", help="Begin with what is on its scratchpad.")] = False,
) -> None:
    """Continue a conversation in the client.

    Its transcript, and what lay beside it, is written anew if the client has deleted it, and gets the turns that it
    lacks if the conversation went on elsewhere.
    """
    from sessgit.agents.claude import home
    from sessgit.errors import NotFoundError, UsageError
    from sessgit.ops import fork as forks
    from sessgit.ops import restore
    from sessgit.ops.files import behind
    from sessgit.ops.finding import places
    from sessgit.ops.recording import catchup
    from sessgit.store import layout
    from sessgit.ui import client
    from sessgit.ui.commands.restore import mapping

    here = context.read()
    found = named.target(here, address)
    state, name = found.state, found.branch.name[:8]
    if layout.is_other(found.branch.name):
        raise UsageError(
            f"{here.ident(found.branch.name)} is from another machine: its file is not here.",
            f"sessgit fork {here.ident(found.branch.name)} --run goes on with it in a conversation of its own.",
        )
    if layout.is_rewound(found.branch.name) or found.cell or found.turn not in (None, state.turns):
        at = "" if found.turn is None else f" --at {found.turn}{'.' if found.cell else ''}{found.cell}"
        raise UsageError(
            "a conversation is continued at its end.",
            f"sessgit fork {here.ident(found.branch.name)}{at} --run continues a part of it.",
        )
    if not state.turns:
        raise NotFoundError(f"{name} has no turn yet: there is nothing to continue.")
    files = layout.Beside(here.store_path)
    place = places.place_of(here.config, state, files)
    is_there = place is not None and home.is_there(place)
    was_here = places.was_here(here.config, state, files)
    if places.is_gone(state.project):
        verb = "fork" if is_there else "restore"
        hint = f"sessgit {verb} {here.ident(found.session)} --project DIR writes it for another one."
        # Where it was held elsewhere, its folder there is no matter of this machine.
        hint = hint if was_here else mapping(here.store.state(found.branch.tip).project)
        raise NotFoundError(f"the project's folder is gone: {here.short(state.project)}", hint)
    if place is not None and is_there:
        is_level = behind.is_level(files, found.branch, place)
        turns = 0 if is_level else behind.bring_level(here.store, found.session, here.config, place)
        if turns:
            catchup.record_file(lambda: here.store, here.index, place, here.config, here.privacy, project=state.project)
            render.tell(beside.appended(turns))
    else:
        done = restore.restore(here.store, found.session, here.config, here=here.here)
        was = "The client had deleted it" if was_here else "It was held elsewhere"
        render.tell(f"{was}: {here.short(done.path)} is {'back' if was_here else 'written'}.")
        for line in beside.told(done.files):
            render.tell(line)
    prompt = _brief(here, found.branch.tip) if brief else ""
    if show:
        render.write(forks.resume_command(state, here.cwd) + (f" {shlex.quote(prompt)}" if prompt else "") + "\n")
    else:
        client.resume(state, here.cwd, prompt)


def _brief(here: context.Context, commit: str) -> str:
    """What is on the scratchpad, as a prompt; it is told where that is nothing."""
    from sessgit.model.scratchpad import steps
    from sessgit.ops.finding.resolve import title
    from sessgit.ops.pad import lists

    state = here.store.state(commit)
    prompt = steps.brief(lists.pad(here.store, commit), state.id, title(state), state.stage, state.confidence)
    if not prompt:
        render.tell("There is nothing on its pad yet: it goes on without a brief.")
    return prompt
