"""`sessgit fork`: a conversation that begins where another one was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.ui import beside, context, named, options, render, text

if TYPE_CHECKING:
    from sessgit.ops import fork as forks


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    address: options.Address = "",
    at: Annotated[
        str | None, typer.Option("--at", metavar="N[.C]", help="The last turn, or cell of a turn, to keep.")
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What to call the fork.")] = "",
    no_restore: Annotated[bool, typer.Option("--no-restore", help="Write no transcript for the client.")] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Continue it in DIR.", show_default=False),
    ] = None,
    start: Annotated[bool, typer.Option("--run", help="Continue it in the client at once.")] = False,
    as_json: options.Json = False,
) -> None:
    """Fork a conversation at a turn.

    The fork holds the turns up to N, or all if none is named; its transcript and what lay beside it as of then are
    written for the client, so that claude --resume continues it. The conversation that it leaves stays as it is. 7.3
    keeps turn 7 up to its third cell.
    """
    import uuid

    from sessgit.errors import UsageError
    from sessgit.model.address import check_name
    from sessgit.ops import fork as forks
    from sessgit.ops import forkpoint, places
    from sessgit.ops.edit import check_free
    from sessgit.ui import client

    if start and no_restore:
        raise UsageError("--run needs the transcript that --no-restore leaves out.", "Give one of the two.")
    here = context.read()
    found = named.target(here, address, at, changes=True)
    folder = str(project.resolve()) if project else ""
    if name:
        name = check_name(name)
        check_free(here.index, name, "", folder or found.state.project or here.cwd)
    point = forkpoint.point(here.store, here.index, found)
    plan = forks.Plan(str(uuid.uuid4()), name, here.now, None if no_restore else here.config, folder)
    made = forks.fork(here.store, found.state, point, plan)
    if made.missing:
        render.tell(f"Missing in the fork: {text.counted(made.missing, 'secret')} that recording replaced.")
    if made.dropped_calls:
        render.tell(f"Left out of the fork: {text.counted(made.dropped_calls, 'tool call')} without a result yet.")
    if made.transcript and places.is_gone(made.state.project):
        render.tell(f"The project's folder is gone: {here.short(made.state.project)}. --project DIR names another one.")
    command = forks.resume_command(made.state, here.cwd)
    if as_json:
        value = {
            "id": made.state.id, "parent": point.session, "turn": point.turn, "commit": made.commit,
            "transcript": str(made.transcript) if made.transcript else None, "resume": command,
            "files": beside.as_json(made.files),
        }  # fmt: skip
        render.document("fork/v1", value)
    else:
        render.lines(here, _told(here, made, point, command))
    if start:
        client.resume(made.state, here.cwd)


def _told(here: context.Context, made: forks.Forked, point: forks.Point, command: str) -> Iterator[str]:
    paint = render.Paint(here.colour)
    at = made.state.origin.cell if made.state.origin and made.state.origin.cell else point.turn
    called = f"{made.state.name}  ·  " if made.state.name else ""
    told = f"{called}{text.counted(made.state.turns, 'turn')}, from {here.ident(point.session)}@{at}"
    room = here.width - len(made.state.id[:8]) - text.width(told) - 5
    row = here.index.turn(point.session, point.turn)
    if row is not None and room > 8:
        told += f" “{text.cut(text.clean(here.index.title(row)), room)}”"
    yield f"{paint('yellow', made.state.id[:8])}  {text.cut(told, here.width - 10)}"
    yield from beside.told(made.files, count_secrets=False)
    yield f"Continue it:  {command}" if made.transcript else f"sessgit resume {made.state.id[:8]} continues it."
