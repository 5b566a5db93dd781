"""`sessgit resume`: a conversation continued in the client."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument, sidecar_notes
from sessgit.cli.arguments import options
from sessgit.cli.invocation import Invocation
from sessgit.store.files import paths

if TYPE_CHECKING:
    from sessgit.errors import NotFoundError
    from sessgit.history.resolve import ResolvedTarget


@frame.command("resume", reads=True, has_json=False)
def run(
    here: Invocation,
    address: options.Address = "",
    show: Annotated[bool, typer.Option("--print", help="Only print the command.")] = False,
    brief: Annotated[bool, typer.Option("--brief", help="Start with its scratchpad as the prompt.")] = False,
) -> None:
    """Continue a conversation in the client.

    If the client has deleted its transcript and sidecar files, they are written again. If the conversation was
    continued on another machine, the missing turns are appended.
    """
    from sessgit.branch import fork as forks
    from sessgit.cli import client_launch
    from sessgit.history import client_files
    from sessgit.store import layout

    found = session_argument.target(here, address)
    _check(here, found)
    files = layout.StorePaths(here.store_path)
    place = client_files.transcript_place(here.config, found.state, files)
    is_there = place is not None and paths.is_there(place)
    was_here = client_files.was_recorded_here(found.state, files)
    if client_files.is_folder_gone(found.state.project):
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
        client_launch.resume(state, here.cwd, prompt)


def _check(here: Invocation, found: ResolvedTarget) -> None:
    """Raises UsageError for what is no end of a conversation here, NotFoundError for one that has no turn."""
    from sessgit.errors import NotFoundError, UsageError
    from sessgit.store import layout

    branch, turns = found.branch.name, found.state.turns
    if layout.is_other_version(branch):
        raise UsageError(
            f"{here.ident(branch)} is another version of the conversation, without a file here.",
            f"`sessgit fork {here.ident(branch)} --run` continues it as a conversation of its own.",
        )
    if layout.is_rewound_branch(branch) or found.cell or found.turn not in (None, turns):
        at = "" if found.turn is None else f" --at {found.turn}{'.' if found.cell else ''}{found.cell}"
        raise UsageError(
            "a conversation can only be continued at its end.",
            f"`sessgit fork {here.ident(branch)}{at} --run` continues from there.",
        )
    if not turns:
        raise NotFoundError(f"{here.ident(branch)} has no turns to continue from.", "`sessgit ls` lists others.")


def _without_folder(here: Invocation, found: ResolvedTarget, *, is_there: bool, was_here: bool) -> NotFoundError:
    """The error that the project's folder is gone: the client finds a conversation only from there."""
    from sessgit.cli.commands.restore import mapping
    from sessgit.errors import NotFoundError

    verb = "fork" if is_there else "restore"
    hint = f"`sessgit {verb} {here.ident(found.session)} --project DIR` writes it for another folder."
    # Where it was held elsewhere, its folder there is no matter of this machine.
    hint = hint if was_here else mapping(here.store.state(found.branch.tip).project)
    return NotFoundError(f"the project's folder is gone: {here.short(found.state.project)}", hint)


def _bring_level(here: Invocation, found: ResolvedTarget, place: Path) -> None:
    """Gives the client's file the turns that it lacks."""
    from sessgit.branch import backfill
    from sessgit.record import catch_up
    from sessgit.store import layout

    if backfill.is_level(layout.StorePaths(here.store_path), found.branch, place):
        return
    turns = backfill.bring_level(here.store, found.session, here.config, place)
    if turns:
        project = found.state.project
        catch_up.record_file(lambda: here.store, here.index, place, here.config, here.privacy, project=project)
        render.tell(sidecar_notes.appended(turns))


def _write(here: Invocation, found: ResolvedTarget, *, was_here: bool) -> Path:
    """Writes the client's file anew, with what lay beside it, and returns where."""
    from sessgit.branch import restore

    done = restore.restore_session(here.store, found.session, here.config, here=here.here)
    was = "The client had deleted it" if was_here else "It is from another machine"
    render.tell(f"{was}: {here.short(done.path)} was {'restored' if was_here else 'written'}.")
    for line in sidecar_notes.told(done.files):
        render.tell(line)
    return done.path


def _brief(here: Invocation, commit: str) -> str:
    """What is on the scratchpad, as a prompt; it is told where that is nothing."""
    from sessgit.history import pad_lists
    from sessgit.history.resolve import session_title
    from sessgit.model import pad_steps

    state = here.store.state(commit)
    prompt = pad_steps.pad_brief(
        pad_lists.read_pad(here.store, commit), state.id, session_title(state), state.stage, state.confidence
    )
    if not prompt:
        render.tell("Its scratchpad is empty: starting without a brief.")
    return prompt
