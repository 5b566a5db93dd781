"""`sessgit remote`, `pull`, `push`, `sync`: repositories on other machines, and what is exchanged with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sessgit.cli import frame, operands, text
from sessgit.cli.frame import DRY_RUN, LABELS, PROJECT, REMOTE, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column, paragraph
from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.record.tip_delivery import BranchChange
from sessgit.store import layout, project, refs, remotes
from sessgit.store.remotes import Remote
from sessgit.sync.session_refs import PullResult, PushResult, SkippedItem

_SETTING = 'sessgit config sync.include \'["~/code/*", "label:shared"]\''
"""The command that selects what every push sends."""


@frame.command("remote")
def remote(
    cli: Invocation,
    action: str = argument("add|remove", "add or remove (default: list all remotes)."),
    name: str = argument("NAME", "The remote's name, such as origin."),
    url: str = argument("URL", "Any URL or path that git clone accepts."),
) -> Answer:
    """List, add or remove remotes.

    A remote is any git repository that git can push to, best an empty one, made with git init --bare, that only you can
    read. Nothing is sent before `sessgit push`. Remotes are not encrypted.
    """
    if action != "add":
        cli.check_store()
    if not action:
        known = remotes.list_remotes(cli.env.store)
        lines = text.table(cli, (Column(), Column()), [(each.name, each.shown) for each in known])
        empty = "No remotes yet: sessgit remote add NAME URL"
        return Answer({"remotes": list(map(_remote_json, known))}, lines if known else [empty])
    if action == "add" and name and url:
        cli.create_store()
        # A folder with its whole path: git would take it relative to wherever it is called.
        is_folder = url.strip() and remotes.is_path(url) and not url.startswith("-")
        changed = remotes.add_remote(cli.env.store, name, cli.folder(url) if is_folder else url)
        remark = f"Nothing is sent yet. To send everything: sessgit push {name} --all"
    elif action in ("remove", "rm") and name and not url:
        changed = remotes.remove_remote(cli.env.store, name)
        remark = "The remote repository itself is unchanged."
    else:
        words = " ".join(filter(None, ("remote", action, name, text.clean(url))))
        hint = "`sessgit remote add NAME URL`, `sessgit remote remove NAME`, or `sessgit remote`."
        raise UsageError(f"cannot understand: {words}", hint)
    document = _remote_json(changed) | {"removed": action != "add"}
    return Answer(document, text.wrap(remark, cli.width) if cli.terminal.shows_output else ())


def _remote_json(known: Remote) -> dict[str, object]:
    return {"name": known.name, "url": known.shown}


@frame.command("pull", needs="store")
def pull(
    cli: Invocation,
    remote: str = REMOTE,
    addresses: list[str] = argument("ID...", "Conversations on the remote (default: all)."),
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Fetch conversations from a remote.

    Fetches all conversations, or the ones you name. If both machines continued the same conversation, both sides are
    kept: `sessgit diff` compares them, `sessgit merge` combines them. Conversations that were deleted or archived there
    are deleted or archived here too, unless new turns would be lost. `sessgit undo` reverts a pull.
    """
    from sessgit.sync import pull as pulling

    source, named = operands.chosen(cli, remote, addresses)
    with operands.connected(cli, source) as connection:
        sessions = None
        if named:
            listed = remotes.remote_refs(cli.env.store, connection)
            with operands.explain_unknown(source, named):
                sessions = pulling.remote_sessions(cli.index, listed, named, cli.where)
        result = pulling.pull_sessions(cli.context, connection, sessions, dry_run=dry_run)
    return Answer(_pulled_json(cli, result), _pulled_lines(cli, result))


@frame.command("push", needs="store", excludes={"--all": "--label --project"})
def push(
    cli: Invocation,
    remote: str = argument("REMOTE", "The remote (default: the only one).", complete="destinations"),
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
    from sessgit.sync import push as pushing

    destination, named = operands.chosen(cli, remote, addresses)
    with operands.explain_unknown(destination, named):
        sessions = _selected(cli, named, label, project, everything=everything)
    with operands.connected(cli, destination) as connection:
        request = pushing.PushRequest(sessions, named=sessions if named else (), unredacted=unredacted)
        result = pushing.push_sessions(cli.context, connection, request, dry_run=dry_run)
    return Answer(_pushed_json(cli, result), _pushed_lines(cli, result))


def _selected(
    cli: Invocation, addresses: Sequence[str], labels: Sequence[str], project: Path | None, *, everything: bool
) -> list[str]:
    """Return the sessions to send; those that are named are recorded first."""
    from sessgit.sync import push as pushing

    if addresses and (labels or project or everything):
        raise UsageError("addresses cannot be combined with --label, --project or --all.", "Use one of them.")
    try:
        cli.check_recorded()
    except NotFoundError:
        if addresses or not refs.read_all(cli.env.store, layout.DELETED):
            raise  # else the deletions are sent
    if addresses:
        return list(dict.fromkeys(_whole_session(cli, address) for address in addresses))
    if labels or project or everything:
        folder = cli.folder(project) if project else None
        return pushing.chosen_sessions(cli.index, labels, folder, everything=everything)
    if not cli.settings.sync.include:
        hint = f"Name them, or use --all, --label or --project. To select them for every push: `{_SETTING}`"
        raise UsageError("no conversations selected.", hint)
    return pushing.included_sessions(cli.index, cli.settings.sync.include, cli.privacy)


def _whole_session(cli: Invocation, address: str) -> str:
    target = operands.target(cli, address, changes=True)
    name = cli.ident(target.session)
    if target.turn is not None or target.cell:
        hint = f"`sessgit fork {name} --at {target.turn}` makes one that ends there."
        raise UsageError(f"only whole conversations can be sent, not up to turn {target.turn}.", hint)
    if layout.is_side_branch(target.branch.name):
        if cli.index.branch(target.session) is None:
            hint = "`sessgit doctor` shows what to do."
            raise NotFoundError(f"the head of {name} is gone, only a side branch is left", hint)
        side = cli.ident(target.branch.name)
        raise UsageError(f"{side} is a side branch, and is sent with its conversation.", f"`sessgit push {name}`")
    return target.session


@frame.command("sync", needs="store")
def sync(cli: Invocation, remote: str = REMOTE) -> Answer:
    """Pull, then push what sync.include selects.

    Without that setting, sync only pulls: nothing leaves this machine unless you ask for it.
    """
    from sessgit.sync import pull as pulling
    from sessgit.sync import push as pushing

    include = cli.settings.sync.include
    pushed: PushResult | None = None
    failure: SessgitError | None = None
    with operands.connected(cli, remotes.find_remote(cli.env.store, remote)) as connection:
        pulled = pulling.pull_sessions(cli.context, connection)
        if include:
            sessions = pushing.included_sessions(cli.index, include, cli.privacy)
            try:
                pushed = pushing.push_sessions(cli.context, connection, pushing.PushRequest(sessions))
            except SessgitError as error:  # what was pulled is here all the same
                failure = error
    document = {"pull": _pulled_json(cli, pulled), "push": _pushed_json(cli, pushed) if pushed else None}
    remarks = [] if include else [f"Nothing was sent: sync.include is empty. To select conversations: {_SETTING}"]
    return Answer(document, _synced_lines(cli, pulled, pushed), remarks, error=failure)


_LIMIT = 20
_MOVING = ("new", "forward", "diverged", "merged", "rewound", "joined")
_OTHERS = ("archived", "unarchived", "deleted", "kept", "purged")


def _pulled_lines(cli: Invocation, result: PullResult) -> Iterator[str]:
    """Yield what was received, what to do about divergence, and what was skipped.

    If nothing is new, yield one line on a terminal, and nothing for a program.
    """
    if result.changes or result.tags:
        yield from _changes(cli, result, "would be received" if cli.dry_run else "received")
        if not cli.dry_run:
            yield from _divergence_hints(cli, result.changes)
            yield from _same_names(cli, result.changes)
    elif cli.terminal.shows_output:
        yield f"Nothing new in {result.remote}."
    yield from _skipped(cli, result.skipped)
    yield from _resume_hints(cli, result.behind)


def _pushed_lines(cli: Invocation, result: PushResult) -> Iterator[str]:
    """Yield what was sent and what was skipped; if the remote has everything, one line on a terminal."""
    if result.changes or result.tags:
        verb = "would be sent" if cli.dry_run else "sent"
        yield from _changes(cli, result, verb)
        if result.carried:
            names = _names([cli.ident(session) for session in result.carried])
            yield from paragraph(cli, f"also {verb}: turns of {names} that a fork or a merge contains", indent=2)
        versions = [cli.index.branches(change.session) for change in result.changes if change.what == "diverged"]
        if not all(any(layout.is_other_version(branch.name) for branch in known) for known in versions):
            yield from paragraph(cli, "The remote has turns that this store lacks. Fetch them: sessgit pull")
    elif cli.terminal.shows_output and not result.skipped:
        yield f"{result.remote} is up to date."
    yield from _skipped(cli, result.skipped)


def _synced_lines(cli: Invocation, received: PullResult, sent: PushResult | None) -> Iterator[str]:
    """Yield what was received, then what was sent; a single line on a terminal if nothing was."""
    has_received, has_sent = bool(received.changes or received.tags), bool(sent and (sent.changes or sent.tags))
    if not has_received and not has_sent:
        if cli.terminal.shows_output:
            name = received.remote
            yield f"{name} and this machine are in sync." if sent else f"Nothing new in {name}."
        yield from _skipped(cli, (*received.skipped, *(sent.skipped if sent else ())))
        return
    if has_received or received.skipped:
        yield from _pulled_lines(cli, received)
    if sent and (has_sent or sent.skipped):
        yield from _pushed_lines(cli, sent)


def _pulled_json(cli: Invocation, result: PullResult) -> dict[str, Any]:
    """Return what `pull --json` prints."""
    return {
        **_json(cli, result),
        "operation_id": result.operation.id if result.operation else None,
        "behind": list(result.behind),
    }


def _pushed_json(cli: Invocation, result: PushResult) -> dict[str, Any]:
    """Return what `push --json` prints."""
    return {**_json(cli, result), "carried": list(result.carried)}


def _json(cli: Invocation, result: PullResult | PushResult) -> dict[str, Any]:
    return {
        "remote": result.remote,
        "changes": [
            {"id": change.session, "change": change.what, "turns": change.turns, "branch": change.branch}
            for change in result.changes
        ],
        "tags": list(result.tags),
        "skipped": [{"what": item.what, "reason": item.why, "hint": item.hint} for item in result.skipped],
        "dry_run": cli.dry_run,
    }


def _changes(cli: Invocation, result: PullResult | PushResult, verb: str) -> Iterator[str]:
    """Yield a heading with counts, a line for each session, and the tags."""
    yield from text.field(cli, cli.paint("bold", result.remote) + "  ·  ", [", ".join(_counts(result, verb))])
    by_session: dict[str, list[BranchChange]] = {}
    for change in result.changes:
        by_session.setdefault(change.session, []).append(change)
    is_push = isinstance(result, PushResult)
    branches = {branch.name: branch for branch in cli.index.branches_named(list(by_session)[:_LIMIT])}
    rows = [
        (
            cli.ident(session),
            text.title(branches[session].state) if session in branches else "",
            ", ".join(_phrases(cli, changes, is_push=is_push)),
        )
        for session, changes in list(by_session.items())[:_LIMIT]
    ]
    ident, title = (max((text.width(row[column]) for row in rows), default=0) for column in (0, 1))
    title = min(title, max(12, cli.width // 2 - ident))
    for name, called, phrases in rows:
        start = f"  {cli.paint('yellow', name.ljust(ident))}  " + (f"{text.fit(called, title)}  " if title else "")
        yield from text.field(cli, start, [phrases])
    if len(by_session) > _LIMIT:
        yield f"  and {len(by_session) - _LIMIT:,} more"
    if result.tags:
        yield from paragraph(cli, f"tags: {_names(list(map(text.clean, result.tags)))}", indent=2)


def _names(names: Sequence[str]) -> str:
    return ", ".join(text.some(names, _LIMIT))


def _counts(result: PullResult | PushResult, verb: str) -> Iterator[str]:
    """`3 conversations received`, `14 turns`, `1 archived`."""
    moving = [change for change in result.changes if change.what in _MOVING]
    outcomes = Counter[str](change.what for change in result.changes)
    counts = {verb: len({change.session for change in moving}), **{what: outcomes[what] for what in _OTHERS}}
    (first, count), *others = [(what, count) for what, count in counts.items() if count] or [(verb, 0)]
    number = text.counted(count, "conversation") if count else text.counted(len(result.tags), "tag")
    yield f"{number} {first}"
    if turns := sum(change.turns for change in moving):
        yield text.counted(turns, "turn")
    yield from (f"{count:,} {what}" for what, count in others)


def _phrases(cli: Invocation, changes: Iterable[BranchChange], *, is_push: bool) -> Iterator[str]:
    """Yield what happened to one session; several rewinds are one phrase."""
    rewound: list[BranchChange] = []
    for change in changes:
        if change.what == "rewound":
            rewound.append(change)
        else:
            yield _phrase(cli, change, is_push=is_push)
    if rewound:
        turns = text.counted(sum(change.turns for change in rewound), "turn")
        is_single = len(rewound) == 1
        branch = f": {cli.ident(rewound[0].branch)}" if is_single else ""
        yield f"{'a rewind' if is_single else f'{len(rewound)} rewinds'} left {turns} behind{branch}"


def _phrase(cli: Invocation, change: BranchChange, *, is_push: bool) -> str:
    turns = text.counted(change.turns, "turn")
    match change.what:
        case "new":
            return f"new, {turns}" if change.turns else "new"
        case "forward":
            where = f" in {cli.ident(change.branch)}" if layout.is_side_branch(change.branch) else ""
            return f"+ {turns}{where}" if change.turns else f"no new turns, but new details{where}"
        case "diverged":
            whose = "" if is_push else " in the other version"
            return f"continued on both sides: {cli.ident(change.branch)} has {turns}{whose}"
        case "merged":
            return f"+ {turns}, merged with {cli.ident(change.branch)}"
        case "joined":
            return f"{f'+ {turns}, ' if change.turns else ''}details from both sides"
        case "kept":
            missing = f": {turns} were missing there" if change.turns else ""
            return f"deleted there, kept here{missing}"
        case what:
            return what


def _divergence_hints(cli: Invocation, changes: Sequence[BranchChange]) -> Iterator[str]:
    """Yield how to compare and merge two versions of a session, if another one came or grew."""
    diverged = [
        change
        for change in changes
        if change.what == "diverged"
        or (change.what == "forward" and change.turns and layout.is_other_version(change.branch))
    ]
    if not diverged:
        return
    ours, theirs = cli.ident(diverged[0].session), cli.ident(diverged[0].branch)
    branch = cli.index.branch(diverged[0].session)
    is_archived = branch is not None and branch.archived
    steps = [
        f"Compare them: sessgit diff {ours} {theirs}",
        f"unarchive it: sessgit unarchive {ours}" if is_archived else "",
        f"Merge them: sessgit merge {theirs} --into {ours}",
    ]
    yield from text.fold(steps, cli.width, "   ·   ")
    if len(diverged) > 1:
        yield "Do the same with the others."


def _resume_hints(cli: Invocation, behind: Sequence[str]) -> Iterator[str]:
    """Yield how to continue with turns that the client's own files lack."""
    if behind:
        have, lack = ("has", "file lacks") if len(behind) == 1 else ("have", "files lack")
        commands = [f"sessgit resume {cli.ident(session)}" for session in behind[:_LIMIT]]
        sentence = f"{text.counted(len(behind), 'conversation')} {have} turns that your client's {lack}."
        yield from text.fold([sentence, f"Continue with: {commands[0]}"], cli.width, " ")
        yield from (f"{'':15}{command}" for command in commands[1:])
        if len(behind) > _LIMIT:
            yield f"and {len(behind) - _LIMIT:,} more"


def _same_names(cli: Invocation, changes: Sequence[BranchChange]) -> Iterator[str]:
    """Yield names that two conversations of a project have now, because each machine gave one."""
    received = {change.session for change in changes if change.what in _MOVING}
    named: dict[tuple[str, str], list[str]] = {}
    for outline in cli.index.outlines() if received else ():
        if outline.authored_name:
            named.setdefault((outline.authored_name, project.project_key(outline.project)), []).append(outline.name)
    for (name, _), sessions in named.items():
        if len(sessions) > 1 and received.intersection(sessions):
            both = " and ".join(map(cli.ident, sorted(sessions)))
            quoted = f"“{text.clean(name, 100)}”"
            yield from paragraph(cli, f"{quoted} now names both {both}: rename one with sessgit rename.")


def _skipped(cli: Invocation, items: Sequence[SkippedItem]) -> Iterator[str]:
    """Yield what was skipped, why, and what to do about it."""
    for item in items[:_LIMIT]:
        what = layout.short_name(item.what) if "-" in item.what and "/" not in item.what else item.what
        yield from paragraph(cli, f"Skipped: {text.clean(what)}: {text.clean(item.why)}. {text.clean(item.hint)}")
    if len(items) > _LIMIT:
        yield f"and {len(items) - _LIMIT:,} more were skipped"
