"""`sessgit repair`: a conversation that is broken, mended."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from sessgit.cli import invocation, render, session_argument, text
from sessgit.cli.arguments import completion, options


def run(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="SESSION; the current one if left out.",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, change nothing.")] = False,
    copy: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Look for what is lost in this copy of its transcript, too."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Mend a conversation that is broken.

    Lines that no client could go on from are mended in a new conversation, which begins with the turns that need
    nothing: parents that are nowhere, lines glued together, calls without results and results without calls, lines of
    another conversation, uuids that stand there twice, circles, times that fall back, a file that was turned around.
    The original stays as it is.

    What the store lacks of it is brought back from the client's own file, from the one that it was imported from, or
    from a remote, where these still have it; so are refs that are lost. What is nowhere is told, and all that can be
    read becomes a new conversation.
    """
    import uuid

    from sessgit.branch import fork
    from sessgit.check import repair
    from sessgit.cli import client_launch
    from sessgit.cli.pages import repair as page
    from sessgit.cli.remote_argument import linked
    from sessgit.errors import DamageError
    from sessgit.history import client_files
    from sessgit.store.remote import remotes

    here = invocation.read()
    here.check_store()
    branch = session_argument.branch(here, address)
    with ExitStack() as open_links:
        links = [open_links.enter_context(linked(here, remote)) for remote in remotes.listed(here.store_path)]
        done = repair.repair(here.world, branch, str(uuid.uuid4()), links, copy=copy, dry_run=dry_run)
    state = client_files.localized(done.made.state, here.here) if done.made else None
    command = fork.resume_command(state, here.cwd) if state else ""
    is_gone = state is not None and client_files.is_gone(state.project)
    if done.made and done.redacted:
        stand = "stands" if done.redacted == 1 else "stand"
        render.tell(f"Missing in it: {text.counted(done.redacted, 'secret')} that {stand} replaced.")
    if as_json:
        render.document("repair/v1", page.as_json(done, "" if is_gone else command, dry_run=dry_run))
    else:
        way_on = client_launch.way_on(here, state, command) if state else ""
        render.lines(here, page.full(here, done, way_on, dry_run=dry_run))
    if (done.lost or done.findings) and not done.is_needed:
        raise typer.Exit(DamageError.exit_code)
