"""`sessgit push`: conversations sent to a remote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sessgit.cli import invocation, remote_argument, render
from sessgit.cli.arguments import completion, options
from sessgit.errors import NotFoundError

SETTING = 'sessgit config sync.include \'["~/code/*", "label:shared"]\''
"""How to say once for all what may leave this machine."""


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    remote: Annotated[
        str,
        typer.Argument(
            metavar="REMOTE",
            help="The remote (default: the only one).",
            show_default=False,
            autocompletion=completion.destinations,
        ),
    ] = "",
    addresses: Annotated[
        list[str] | None,
        typer.Argument(metavar="ADDRESS...", help="The conversations to send.", autocompletion=completion.addresses),
    ] = None,
    label: options.Labels = None,
    project: options.Project = None,
    everything: Annotated[bool, typer.Option("--all", help="Send all conversations.")] = False,
    unredacted: Annotated[
        bool, typer.Option("--unredacted", help="Also send conversations recorded without redaction.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Show what would be sent, change nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Send conversations to a remote.

    Sends only the conversations that you select, or that the setting sync.include selects: with their tags, with the
    turns that forks and merges took from others, and whether they are archived or deleted. If another machine continued
    the same conversation, both sides are kept.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.sync import push as pushing

    here = invocation.read()
    here.check_store()
    found, named = remote_argument.meant(here, remote, addresses or ())
    try:
        sessions = _sessions(here, named, label or (), project, everything=everything)
    except NotFoundError as error:
        if not named:
            raise
        raise remote_argument.unknown(found, named[0], error) from error
    with remote_argument.linked(here, found) as link:
        done = pushing.push(
            here.store, here.index, link, sessions, here.now,
            named=sessions if named else (), unredacted=unredacted, dry_run=dry_run,
        )  # fmt: skip
    if as_json:
        render.document("push/v1", page.pushed_json(done, dry_run=dry_run))
    else:
        render.lines(here, page.pushed(here, done, dry_run=dry_run))


def _sessions(
    here: invocation.Invocation,
    addresses: Sequence[str],
    labels: Sequence[str],
    project: Path | None,
    *,
    everything: bool,
) -> list[str]:
    """What is asked for, recorded as far as it goes where it was named."""
    from sessgit.errors import UsageError
    from sessgit.store import layout, refs
    from sessgit.sync import selection

    if (bool(addresses) + bool(labels or project) + everything) > 1:
        raise UsageError("addresses, --label or --project, and --all cannot be combined.", "Use one of them.")
    try:
        here.check_recorded()
    except NotFoundError:
        if addresses or not refs.read_all(here.store_path, layout.DELETED):
            raise  # else what was deleted goes, and nothing is left
    if addresses:
        return list(dict.fromkeys(_named(here, address) for address in addresses))
    if labels or project or everything:
        folder = here.folder(str(project)) if project else None
        return selection.chosen(here.index, selection.Choice(tuple(labels), folder, everything))
    if not here.settings.sync.include:
        raise UsageError(
            "no conversations selected.",
            f"Name them, or use --all, --label or --project. To select them for every push: `{SETTING}`",
        )
    return selection.included(here.index, here.settings.sync.include, here.privacy)


def _named(here: invocation.Invocation, address: str) -> str:
    from sessgit.cli import session_argument
    from sessgit.errors import UsageError
    from sessgit.store import layout

    found = session_argument.target(here, address, changes=True)
    if found.turn is not None or found.cell:
        raise UsageError(
            f"only whole conversations can be sent, not up to turn {found.turn}.",
            f"`sessgit fork {here.ident(found.session)} --at {found.turn}` makes one that ends there.",
        )
    if layout.is_side(found.branch.name):
        if here.index.branch(found.session) is None:
            raise NotFoundError(
                f"the head of {here.ident(found.session)} is gone, only a side branch is left",
                "`sessgit doctor` shows what to do.",
            )
        raise UsageError(
            f"{here.ident(found.branch.name)} is a side branch, and is sent with its conversation.",
            f"`sessgit push {here.ident(found.session)}`",
        )
    return found.session
