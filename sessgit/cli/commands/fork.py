"""`sessgit fork`: a conversation that begins where another one was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument, sidecar_notes, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch import fork as forks
    from sessgit.branch.worktree import Worktree
    from sessgit.history.fork_point import ForkPoint
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.model.conversation.session import Session


@frame.command("fork", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    address: options.Address = "",
    at: Annotated[
        str | None, typer.Option("--at", metavar="N[.C]", help="Keep turns up to N, or up to cell C of turn N.")
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name the fork.")] = "",
    no_restore: Annotated[bool, typer.Option("--no-restore", help="Do not write a transcript for the client.")] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Continue the fork in DIR.", show_default=False),
    ] = None,
    worktree: Annotated[
        str | None,
        typer.Option(
            "--worktree",
            metavar="[PATH]",
            help="Also make a git worktree with the code as of turn N.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[bool, typer.Option("--run", help="Start the client on the fork.")] = False,
) -> Answer:
    """Fork a conversation at a turn.

    The fork has the turns up to N (default: all). Its transcript and sidecar files are written for the client as of
    turn N, so that `claude --resume` continues it. The original does not change. --at 7.3 keeps turn 7 up to its third
    cell.

    --worktree also makes a git worktree of the project, at PATH or next to the project, at the commit that the project
    had at the end of turn N, and continues the fork there. For 7.3 that is the last commit recorded before that cell,
    or else at the end of turn 6. It creates no branch. Changes that were uncommitted then are not restored.
    """
    import uuid

    from sessgit.branch import fork as forks
    from sessgit.branch.edit import check_name_free
    from sessgit.cli import client_launch
    from sessgit.errors import UsageError
    from sessgit.history import client_files, fork_point
    from sessgit.model.address import check_name

    if start and no_restore:
        raise UsageError("--run needs a transcript, but --no-restore writes none.", "Use one of the two.")
    if worktree is not None and project:
        raise UsageError("--worktree and --project both choose the folder of the fork.", "Use one of the two.")
    if worktree and not address:
        _check_is_path(here, worktree)
    found = session_argument.target(here, address, at, changes=True)
    folder = str(project.resolve()) if project else ""
    if name:
        name = check_name(name)
        check_name_free(here.index, name, "", folder or found.state.project or here.cwd)
    point = fork_point.fork_point(here.store, here.index, found)
    plan = forks.ForkPlan(str(uuid.uuid4()), name, here.now, None if no_restore else here.config, folder)
    planned = _planned(here, found, point, worktree, plan.id) if worktree is not None else None
    if planned is None:
        made = forks.fork_session(here.store, found.state, point, plan)
    else:
        made = forks.fork_into_worktree(here.store, found.state, point, plan, planned, os.environ)
    state = client_files.localize_state(made.state, here.here)
    sound = fork_point.chain_is_closed(here.store, made.commit, point.turn)
    command = forks.resume_command(state, here.cwd)
    mended = f"The client cannot continue it. Repair it: sessgit repair {here.ident(state.id)}"
    way_on = client_launch.way_on(here, state, command) if sound else mended

    def document() -> dict[str, object]:
        return {
            "id": made.state.id, "parent": point.session, "turn": point.turn, "commit": made.commit,
            "transcript": str(made.transcript) if made.transcript else None,
            "resume": command if sound and not client_files.is_folder_gone(state.project) else None,
            "files": sidecar_notes.as_json(made.files), "worktree": planned.as_json() if planned else None,
        }  # fmt: skip

    lines, remarks = _told(here, made, point, planned, way_on), _remarks(here, made, state, sound=sound)
    return Answer(document, lines, remarks, then=lambda: start and sound and client_launch.resume(state, here.cwd))


def _remarks(here: Invocation, made: forks.ForkResult, state: Session, *, sound: bool) -> Iterator[str]:
    """What the fork lacks, and what keeps the client from going on with it."""
    from sessgit.history import client_files

    if made.missing:
        stand = "is" if made.missing == 1 else "are"
        yield f"{text.counted(made.missing, 'secret')} {stand} redacted in the fork."
    if made.dropped_calls:
        yield f"Left out: {text.counted(made.dropped_calls, 'tool call')} without a result."
    if made.transcript and client_files.is_folder_gone(state.project):
        yield f"The project's folder is gone: {here.short(state.project)}."
    if not sound:
        yield "The client would send none of these turns to the model: their lines are not linked to each other."


def _check_is_path(here: Invocation, said: str) -> None:
    """Raises UsageError where the word behind --worktree names a conversation: it would be taken for a path."""
    from sessgit.errors import UsageError
    from sessgit.history import resolve

    word = said.partition("@")[0]
    if "/" in said or not (resolve.branches_by_name(here.index, word, here.where) or word in here.index.tags()):
        return
    raise UsageError(
        f"--worktree expects a path, but “{said}” is a conversation.",
        f"`sessgit fork {said} --worktree`, or `--worktree ./{said}` for a folder with that name.",
    )


def _planned(here: Invocation, found: ResolvedTarget, point: ForkPoint, said: str, fork: str) -> Worktree:
    """The worktree to make: at the path that was said, or beside the project if that is empty."""
    from sessgit.branch import worktree as worktrees
    from sessgit.history.code import heads

    head = heads.head_at(here.store, here.index, found.branch, point.turn, point.cell)
    path = Path(said).expanduser().resolve() if said else None
    return worktrees.plan_worktree(found.state.project, head, path, fork[:8], os.environ)


def _told(
    here: Invocation, made: forks.ForkResult, point: ForkPoint, planned: Worktree | None, way_on: str
) -> Iterator[str]:
    paint = render.Paint(here.colour)
    at = made.state.origin.cell if made.state.origin and made.state.origin.cell else point.turn
    called = f"{made.state.name}  ·  " if made.state.name else ""
    own = here.ident(made.state.id)
    told = f"{called}{text.counted(made.state.turns, 'turn')}, from {here.ident(point.session)}@{at}"
    room = here.width - len(own) - text.width(told) - 5
    row = here.index.turn(point.session, point.turn)
    if row is not None and room > 8:
        told += f" “{text.cut(text.clean(here.index.title(row)), room)}”"
    yield f"{paint('yellow', own)}  {text.cut(told, here.width - len(own) - 2)}"
    yield from sidecar_notes.told(made.files, count_secrets=False)
    if planned is not None:
        yield from _told_of_worktree(here, planned)
    yield way_on if made.transcript else f"Continue it:  sessgit resume {own}"


def _told_of_worktree(here: Invocation, planned: Worktree) -> Iterator[str]:
    """Where it is, at what, and what is not in it."""
    head = planned.head
    at = f"{head.commit[:8]} ({text.clean(head.branch)})" if head.branch else head.commit[:8]
    yield from text.wrapped(f"Worktree: {here.shown(str(planned.path))} at {at}, on no branch.", here.width)
    missing = ["uncommitted changes"] if head.dirty else []
    missing += ["untracked files (.env, node_modules)"]
    missing += ["submodules"] if planned.has_submodules else []
    missing += ["anything outside the repository"]
    yield from text.wrapped(f"Not included: {', '.join(missing)}.", here.width)
    old = here.shown(planned.source)
    yield from text.wrapped(f"Earlier turns name files in {old}: tell the agent the new folder.", here.width)
    yield from text.wrapped("To make a branch:  git switch -c NAME, in the worktree", here.width)
