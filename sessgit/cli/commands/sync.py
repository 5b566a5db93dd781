"""`sessgit remote`, `pull`, `push`, `sync`: repositories on other machines, and what is exchanged with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.cli import completion, frame, remote_argument, session_argument, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import DRY_RUN, LABELS, PROJECT, REMOTE, argument, option
from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.store import layout, refs, remotes
from sessgit.store.remotes import Remote

if TYPE_CHECKING:
    from sessgit.sync.outcome import PushResult

_SETTING = 'sessgit config sync.include \'["~/code/*", "label:shared"]\''
"""The command that selects what every push sends."""


@frame.command("remote")
def remote(
    here: Invocation,
    action: str = argument("add|remove", "add or remove (default: list all remotes)."),
    name: str = argument("NAME", "The remote's name, such as origin."),
    url: str = argument("URL", "Any URL or path that git clone accepts."),
) -> Answer:
    """List, add or remove remotes.

    A remote is any git repository that git can push to, best an empty one, made with git init --bare, that only you can
    read. Nothing is sent before `sessgit push`. Remotes are not encrypted.
    """
    if action != "add":
        here.check_store()
    if not action:
        known = remotes.list_remotes(here.env.store)
        return Answer({"remotes": [_remote_json(each) for each in known]}, _remote_table(known))
    if action == "add" and name and url:
        here.create_store()
        # A folder with its whole path: git would take it relative to wherever it is called.
        is_folder = url.strip() and remotes.is_path(url) and not url.startswith("-")
        changed = remotes.add_remote(here.env.store, name, here.folder(url) if is_folder else url)
        remark = f"Nothing is sent yet. To send everything: sessgit push {name} --all"
    elif action in ("remove", "rm") and name and not url:
        changed = remotes.remove_remote(here.env.store, name)
        remark = "The remote repository itself is unchanged."
    else:
        words = " ".join(filter(None, ("remote", action, name, text.clean(url))))
        hint = "`sessgit remote add NAME URL`, `sessgit remote remove NAME`, or `sessgit remote`."
        raise UsageError(f"cannot understand: {words}", hint)
    document = _remote_json(changed) | {"removed": action != "add"}
    return Answer(document, text.wrap(remark, here.width) if here.terminal.shows_output else ())


def _remote_table(known: Sequence[Remote]) -> Iterator[str]:
    if not known:
        yield "No remotes yet: sessgit remote add NAME URL"
    width = max((len(each.name) for each in known), default=0)
    for each in known:
        yield f"{each.name.ljust(width)}  {each.shown}"


def _remote_json(known: Remote) -> dict[str, object]:
    return {"name": known.name, "url": known.shown}


@frame.command("pull", needs="store")
def pull(
    here: Invocation,
    remote: str = REMOTE,
    addresses: list[str] = argument("ID...", "Conversations on the remote (default: all)."),
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Fetch conversations from a remote.

    Fetches all conversations, or the ones you name. If both machines continued the same conversation, both sides are
    kept: `sessgit diff` compares them, `sessgit merge` combines them. Conversations that were deleted or archived there
    are deleted or archived here too, unless new turns would be lost. `sessgit undo` reverts a pull.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.sync import pull as pulling
    from sessgit.sync import selection

    source, named = remote_argument.chosen(here, remote, addresses)
    with remote_argument.connected(here, source) as connection:
        sessions = None
        if named:
            listed = remotes.remote_refs(here.env.store, connection)
            with remote_argument.explain_unknown(source, named):
                sessions = selection.remote_sessions(here.index, listed, named, here.where)
        result = pulling.pull_sessions(here.context, connection, sessions, dry_run=dry_run)
    return Answer(page.pulled_json(result, dry_run=dry_run), page.pulled(here, result, dry_run=dry_run))


@frame.command("push", needs="store", excludes={"--all": "--label --project"})
def push(
    here: Invocation,
    remote: str = argument("REMOTE", "The remote (default: the only one).", complete=completion.destinations),
    addresses: list[str] = argument("ADDRESS...", "The conversations to send."),
    label: list[str] = LABELS,
    project: Path | None = PROJECT,
    everything: bool = option("--all", "Send all conversations."),
    unredacted: bool = option("--unredacted", "Also send conversations recorded without redaction."),
    dry_run: bool = option("-n, --dry-run", "Show what would be sent, change nothing."),
) -> Answer:
    """Send conversations to a remote.

    Sends only the conversations that you select, or that the setting sync.include selects: with their tags, with the
    turns that forks and merges took from others, and whether they are archived or deleted. If another machine continued
    the same conversation, both sides are kept.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.sync import push as pushing

    destination, named = remote_argument.chosen(here, remote, addresses)
    with remote_argument.explain_unknown(destination, named):
        sessions = _selected(here, named, label, project, everything=everything)
    with remote_argument.connected(here, destination) as connection:
        request = pushing.PushRequest(sessions, named=sessions if named else (), unredacted=unredacted)
        result = pushing.push_sessions(here.context, connection, request, dry_run=dry_run)
    return Answer(page.pushed_json(result, dry_run=dry_run), page.pushed(here, result, dry_run=dry_run))


def _selected(
    here: Invocation, addresses: Sequence[str], labels: Sequence[str], project: Path | None, *, everything: bool
) -> list[str]:
    """Return the sessions to send; those that are named are recorded first."""
    from sessgit.sync import selection

    if addresses and (labels or project or everything):
        raise UsageError("addresses cannot be combined with --label, --project or --all.", "Use one of them.")
    try:
        here.check_recorded()
    except NotFoundError:
        if addresses or not refs.read_all(here.env.store, layout.DELETED):
            raise  # else the deletions are sent
    if addresses:
        return list(dict.fromkeys(_whole_session(here, address) for address in addresses))
    if labels or project or everything:
        folder = here.folder(project) if project else None
        return selection.chosen_sessions(here.index, selection.SessionChoice(tuple(labels), folder, everything))
    if not here.settings.sync.include:
        hint = f"Name them, or use --all, --label or --project. To select them for every push: `{_SETTING}`"
        raise UsageError("no conversations selected.", hint)
    return selection.included_sessions(here.index, here.settings.sync.include, here.privacy)


def _whole_session(here: Invocation, address: str) -> str:
    target = session_argument.target(here, address, changes=True)
    name = here.ident(target.session)
    if target.turn is not None or target.cell:
        hint = f"`sessgit fork {name} --at {target.turn}` makes one that ends there."
        raise UsageError(f"only whole conversations can be sent, not up to turn {target.turn}.", hint)
    if layout.is_side_branch(target.branch.name):
        if here.index.branch(target.session) is None:
            hint = "`sessgit doctor` shows what to do."
            raise NotFoundError(f"the head of {name} is gone, only a side branch is left", hint)
        side = here.ident(target.branch.name)
        raise UsageError(f"{side} is a side branch, and is sent with its conversation.", f"`sessgit push {name}`")
    return target.session


@frame.command("sync", needs="store")
def sync(here: Invocation, remote: str = REMOTE) -> Answer:
    """Pull, then push what sync.include selects.

    Without that setting, sync only pulls: nothing leaves this machine unless you ask for it.
    """
    from sessgit.cli.pages import sync as page
    from sessgit.sync import pull as pulling
    from sessgit.sync import push as pushing
    from sessgit.sync import selection

    include = here.settings.sync.include
    pushed: PushResult | None = None
    failure: SessgitError | None = None
    with remote_argument.connected(here, remotes.find_remote(here.env.store, remote)) as connection:
        pulled = pulling.pull_sessions(here.context, connection)
        if include:
            sessions = selection.included_sessions(here.index, include, here.privacy)
            try:
                pushed = pushing.push_sessions(here.context, connection, pushing.PushRequest(sessions))
            except SessgitError as error:  # what was pulled is here all the same
                failure = error
    document = {"pull": page.pulled_json(pulled), "push": page.pushed_json(pushed) if pushed else None}
    remarks = [] if include else [f"Nothing was sent: sync.include is empty. To select conversations: {_SETTING}"]
    return Answer(document, list(page.synced(here, pulled, pushed)), remarks, error=failure)
