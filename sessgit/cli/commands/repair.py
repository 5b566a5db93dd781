"""`sessgit repair`: a conversation that is broken, mended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, session_argument, text
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.check.repair import Repaired


@frame.command("repair", needs="store")
def run(
    here: Invocation,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="SESSION (default: the current one).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")] = False,
    copy: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Also search this copy of its transcript."),
    ] = None,
) -> Answer:
    """Repair a broken conversation.

    Creates a new conversation from one that no client can continue; the original stays. It begins with the turns that
    need no repair, and fixes missing parents, lines glued together, calls without results, results without calls, lines
    of another conversation, duplicate uuids, cycles, times that go backwards, and a reversed file.

    If the store has lost objects or refs of the conversation, they are restored from the client's file, from the file
    that was imported, or from a remote. What is found nowhere is reported, and all readable turns become a new
    conversation.
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

    branch = session_argument.branch(here, address)
    with ExitStack() as open_links:
        links = [open_links.enter_context(linked(here, remote)) for remote in remotes.list_remotes(here.store_path)]
        done = repair.repair(here.world, branch, str(uuid.uuid4()), links, copy=copy, dry_run=dry_run)
    state = client_files.localize_state(done.made.state, here.here) if done.made else None
    command = fork.resume_command(state, here.cwd) if state else ""
    is_gone = state is not None and client_files.is_folder_gone(state.project)
    way_on = client_launch.way_on(here, state, command) if state else ""
    failed = (done.lost or done.findings) and not done.is_needed
    return Answer(
        lambda: page.as_json(done, "" if is_gone else command, dry_run=dry_run),
        page.full(here, done, way_on, dry_run=dry_run),
        _remarks(done),
        DamageError.exit_code if failed else 0,
    )


def _remarks(done: Repaired) -> Iterator[str]:
    if done.made and done.redacted:
        yield f"Missing in it: {text.counted(done.redacted, 'redacted secret')}."
