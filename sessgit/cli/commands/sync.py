"""`sessgit pull`, `sessgit push`, `sessgit sync`: conversations exchanged with a remote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, remote_argument
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessgit.errors import SessgitError
    from sessgit.sync.outcome import PullResult, PushResult

SETTING = 'sessgit config sync.include \'["~/code/*", "label:shared"]\''
"""How to say once for all what may leave this machine."""

_NOTHING = f"Nothing was sent: sync.include is empty. To select conversations: {SETTING}"


@frame.command("pull", needs="store")
def pull(
    here: Invocation,
    remote: options.Remote = "",
    addresses: Annotated[
        list[str] | None,
        typer.Argument(metavar="ADDRESS...", help="Ids of conversations on the remote (default: all)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Show what would be done, change nothing.")] = False,
) -> Answer:
    """Fetch conversations from a remote.

    Fetches all conversations, or the ones you name. If both machines continued the same conversation, both sides are
    kept: `sessgit diff` compares them, `sessgit merge` combines them. Conversations that were deleted or archived there
    are deleted or archived here too, unless new turns would be lost. `sessgit undo` reverts a pull.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.store.remote import remotes as stored
    from sessgit.sync import pull as pulling
    from sessgit.sync import selection

    found, named = remote_argument.meant(here, remote, addresses or ())
    with remote_argument.linked(here, found) as link:
        sessions = None
        if named:
            held = stored.remote_refs(here.store_path, link)
            try:
                sessions = selection.remote_sessions(here.index, held, named, here.where)
            except NotFoundError as error:
                raise remote_argument.unknown(found, named[0], error) from error
        done = pulling.pull_sessions(here.store, here.index, link, here.config, here.now, sessions, dry_run=dry_run)
    return Answer(lambda: page.pulled_json(done, dry_run=dry_run), page.pulled(here, done, dry_run=dry_run))


@frame.command("push", needs="store")
def push(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
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
) -> Answer:
    """Send conversations to a remote.

    Sends only the conversations that you select, or that the setting sync.include selects: with their tags, with the
    turns that forks and merges took from others, and whether they are archived or deleted. If another machine continued
    the same conversation, both sides are kept.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.sync import push as pushing

    found, named = remote_argument.meant(here, remote, addresses or ())
    try:
        sessions = _sessions(here, named, label or (), project, everything=everything)
    except NotFoundError as error:
        if not named:
            raise
        raise remote_argument.unknown(found, named[0], error) from error
    with remote_argument.linked(here, found) as link:
        done = pushing.push_sessions(
            here.store, here.index, link, sessions, here.now,
            named=sessions if named else (), unredacted=unredacted, dry_run=dry_run,
        )  # fmt: skip
    return Answer(lambda: page.pushed_json(done, dry_run=dry_run), page.pushed(here, done, dry_run=dry_run))


def _sessions(
    here: Invocation,
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
        return selection.chosen_sessions(here.index, selection.SessionChoice(tuple(labels), folder, everything))
    if not here.settings.sync.include:
        raise UsageError(
            "no conversations selected.",
            f"Name them, or use --all, --label or --project. To select them for every push: `{SETTING}`",
        )
    return selection.included_sessions(here.index, here.settings.sync.include, here.privacy)


def _named(here: Invocation, address: str) -> str:
    from sessgit.cli import session_argument
    from sessgit.errors import UsageError
    from sessgit.store import layout

    found = session_argument.target(here, address, changes=True)
    if found.turn is not None or found.cell:
        raise UsageError(
            f"only whole conversations can be sent, not up to turn {found.turn}.",
            f"`sessgit fork {here.ident(found.session)} --at {found.turn}` makes one that ends there.",
        )
    if layout.is_side_branch(found.branch.name):
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


@frame.command("sync", needs="store")
def sync(
    here: Invocation,
    remote: options.Remote = "",
) -> Answer:
    """Pull, then push what sync.include selects.

    Without that setting, sync only pulls: nothing leaves this machine unless you ask for it.
    """
    from sessgit.errors import SessgitError
    from sessgit.sync import pull as pulling
    from sessgit.sync import push as pushing
    from sessgit.sync import selection

    include = here.settings.sync.include
    with remote_argument.linked(here, remote_argument.one(here, remote)) as link:
        came = pulling.pull_sessions(here.store, here.index, link, here.config, here.now)
        if not include:
            return _answer(
                here, came, None, [f"Nothing was sent: sync.include is empty. To select conversations: {SETTING}"]
            )
        sessions = selection.included_sessions(here.index, include, here.privacy)
        try:
            return _answer(here, came, pushing.push_sessions(here.store, here.index, link, sessions, here.now))
        except SessgitError as error:  # what came is here all the same
            return _answer(here, came, None, error=error)


def _answer(
    here: Invocation,
    came: PullResult,
    sent: PushResult | None,
    notes: Sequence[str] = (),
    error: SessgitError | None = None,
) -> Answer:
    from sessgit.cli.pages import sync as page

    went = None if sent is None else page.pushed_json(sent)
    document = {"pull": page.pulled_json(came), "push": went}
    return Answer(lambda: document, list(page.synced(here, came, sent)), notes=notes, error=error)
