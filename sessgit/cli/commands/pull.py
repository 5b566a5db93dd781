"""`sessgit pull`: conversations brought from a remote."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import invocation, remote_argument, render
from sessgit.cli.arguments import options
from sessgit.errors import NotFoundError


def run(
    remote: options.Remote = "",
    addresses: Annotated[
        list[str] | None,
        typer.Argument(metavar="ADDRESS...", help="Ids of conversations on the remote (default: all)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Show what would be done, change nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Fetch conversations from a remote.

    Fetches all conversations, or the ones you name. If both machines continued the same conversation, both sides are
    kept: `sessgit diff` compares them, `sessgit merge` combines them. Conversations that were deleted or archived there
    are deleted or archived here too, unless new turns would be lost. `sessgit undo` reverts a pull.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.store.remote import remotes as stored
    from sessgit.sync import pull as pulling
    from sessgit.sync import selection

    here = invocation.read()
    here.check_store()
    found, named = remote_argument.meant(here, remote, addresses or ())
    with remote_argument.linked(here, found) as link:
        sessions = None
        if named:
            held = stored.held(here.store_path, link)
            try:
                sessions = selection.there(here.index, held, named, here.where)
            except NotFoundError as error:
                raise remote_argument.unknown(found, named[0], error) from error
        done = pulling.pull(here.store, here.index, link, here.config, here.now, sessions, dry_run=dry_run)
    if as_json:
        render.document("pull/v1", page.pulled_json(done, dry_run=dry_run))
    else:
        render.lines(here, page.pulled(here, done, dry_run=dry_run))
