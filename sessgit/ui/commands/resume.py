"""`sessgit resume`: a conversation continued in the client."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.ui import beside, context, named, render
from sessgit.ui.arguments import options

if TYPE_CHECKING:
    from sessgit.errors import NotFoundError
    from sessgit.ops.finding.resolve import Target


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
    from sessgit.ops import fork as forks
    from sessgit.ops.finding import places
    from sessgit.store import layout
    from sessgit.ui import client

    here = context.read()
    found = named.target(here, address)
    _check(here, found)
    files = layout.Beside(here.store_path)
    place = places.place_of(here.config, found.state, files)
    is_there = place is not None and home.is_there(place)
    was_here = places.was_here(found.state, files)
    if places.is_gone(found.state.project):
        raise _without_folder(here, found, is_there=is_there, was_here=was_here)
    if place is not None and is_there:
        _bring_level(here, found, place)
    else:
        place = _write(here, found, was_here=was_here)
    state = replace(found.state, transcript=str(place))
    prompt = _brief(here, found.branch.tip) if brief else ""
    if show:
        command = forks.resume_command(state, here.cwd)
        render.write(command + (f" {shlex.quote(prompt)}" if prompt else "") + "\n")
    else:
        client.resume(state, here.cwd, prompt)


def _check(here: context.Context, found: Target) -> None:
    """Raises UsageError for what is no end of a conversation here, NotFoundError for one that has no turn."""
    from sessgit.errors import NotFoundError, UsageError
    from sessgit.store import layout

    branch, turns = found.branch.name, found.state.turns
    if layout.is_other(branch):
        raise UsageError(
            f"{here.ident(branch)} is another version of the conversation: its file is not here.",
            f"sessgit fork {here.ident(branch)} --run continues it as a conversation of its own.",
        )
    if layout.is_rewound(branch) or found.cell or found.turn not in (None, turns):
        at = "" if found.turn is None else f" --at {found.turn}{'.' if found.cell else ''}{found.cell}"
        raise UsageError(
            "a conversation is continued at its end.",
            f"sessgit fork {here.ident(branch)}{at} --run continues a part of it.",
        )
    if not turns:
        raise NotFoundError(
            f"{here.ident(branch)} has no turn yet: there is nothing to continue.", "sessgit ls shows others."
        )


def _without_folder(here: context.Context, found: Target, *, is_there: bool, was_here: bool) -> NotFoundError:
    """The error that the project's folder is gone: the client finds a conversation only from there."""
    from sessgit.errors import NotFoundError
    from sessgit.ui.commands.restore import mapping

    verb = "fork" if is_there else "restore"
    hint = f"sessgit {verb} {here.ident(found.session)} --project DIR writes it for another one."
    # Where it was held elsewhere, its folder there is no matter of this machine.
    hint = hint if was_here else mapping(here.store.state(found.branch.tip).project)
    return NotFoundError(f"the project's folder is gone: {here.short(found.state.project)}", hint)


def _bring_level(here: context.Context, found: Target, place: Path) -> None:
    """Gives the client's file the turns that it lacks."""
    from sessgit.ops.files import behind
    from sessgit.ops.recording import catchup
    from sessgit.store import layout

    if behind.is_level(layout.Beside(here.store_path), found.branch, place):
        return
    turns = behind.bring_level(here.store, found.session, here.config, place)
    if turns:
        project = found.state.project
        catchup.record_file(lambda: here.store, here.index, place, here.config, here.privacy, project=project)
        render.tell(beside.appended(turns))


def _write(here: context.Context, found: Target, *, was_here: bool) -> Path:
    """Writes the client's file anew, with what lay beside it, and returns where."""
    from sessgit.ops import restore

    done = restore.restore(here.store, found.session, here.config, here=here.here)
    was = "The client had deleted it" if was_here else "It was held elsewhere"
    render.tell(f"{was}: {here.short(done.path)} is {'back' if was_here else 'written'}.")
    for line in beside.told(done.files):
        render.tell(line)
    return done.path


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
