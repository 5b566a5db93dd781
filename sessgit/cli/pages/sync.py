"""What `push`, `pull` and `sync` print: a line for each conversation that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessgit.cli import blocks, text
from sessgit.cli.blocks import paragraph
from sessgit.cli.invocation import Invocation
from sessgit.record.tip_delivery import BranchChange
from sessgit.store import layout, project
from sessgit.sync.outcome import PullResult, PushResult, SkippedItem

_LIMIT = 20
_TITLE = 12
_MOVING = ("new", "forward", "parted", "merged", "rewound", "joined")
_OTHERS = ("archived", "brought back", "deleted", "kept", "purged")


def pulled(here: Invocation, result: PullResult, *, dry_run: bool = False) -> Iterator[str]:
    """Yield what was received, what to do about divergence, and what was skipped.

    If nothing is new, yield one line on a terminal, and nothing for a program.
    """
    if result.changes or result.tags:
        yield from _changes(here, result, "would be received" if dry_run else "received")
        if not dry_run:
            yield from _divergence_hints(here, result.changes)
            yield from _same_names(here, result.changes)
    elif here.terminal.shows_output:
        yield f"Nothing new in {result.remote}."
    yield from _skipped(here, result.left)
    yield from _resume_hints(here, result.behind)


def pushed(here: Invocation, result: PushResult, *, dry_run: bool = False) -> Iterator[str]:
    """Yield what was sent and what was skipped; if the remote has everything, one line on a terminal."""
    if result.changes or result.tags:
        verb = "would be sent" if dry_run else "sent"
        yield from _changes(here, result, verb)
        if result.carried:
            names = _names([here.ident(session) for session in result.carried])
            yield from paragraph(here, f"also {verb}: turns of {names} that a fork or a merge contains", indent=2)
        diverged = (change.session for change in result.changes if change.what == "parted")
        if not all(_has_other_version(here, session) for session in diverged):
            yield from paragraph(here, "The remote has turns that this store lacks. Fetch them: sessgit pull")
    elif here.terminal.shows_output and not result.left:
        yield f"{result.remote} is up to date."
    yield from _skipped(here, result.left)


def synced(here: Invocation, received: PullResult, sent: PushResult | None) -> Iterator[str]:
    """Yield what was received, then what was sent; a single line on a terminal if nothing was."""
    has_received, has_sent = bool(received.changes or received.tags), bool(sent and (sent.changes or sent.tags))
    if not has_received and not has_sent:
        if here.terminal.shows_output:
            name = received.remote
            yield f"{name} and this machine are in sync." if sent else f"Nothing new in {name}."
        yield from _skipped(here, (*received.left, *(sent.left if sent else ())))
        return
    if has_received or received.left:
        yield from pulled(here, received)
    if sent and (has_sent or sent.left):
        yield from pushed(here, sent)


def pulled_json(result: PullResult, *, dry_run: bool = False) -> dict[str, Any]:
    """Return what `pull --json` prints."""
    return {
        **_json(result, dry_run=dry_run),
        "operation_id": result.operation.id if result.operation else None,
        "behind": list(result.behind),
    }


def pushed_json(result: PushResult, *, dry_run: bool = False) -> dict[str, Any]:
    """Return what `push --json` prints."""
    return {**_json(result, dry_run=dry_run), "carried": list(result.carried)}


def _json(result: PullResult | PushResult, *, dry_run: bool) -> dict[str, Any]:
    return {
        "remote": result.remote,
        "changes": [
            {"id": change.session, "change": change.what, "turns": change.turns, "branch": change.branch}
            for change in result.changes
        ],
        "tags": list(result.tags),
        "skipped": [{"what": item.what, "reason": item.why, "hint": item.hint} for item in result.left],
        "dry_run": dry_run,
    }


def _changes(here: Invocation, result: PullResult | PushResult, verb: str) -> Iterator[str]:
    """Yield a heading with counts, a line for each session, and the tags."""
    yield from blocks.field(here, here.paint("bold", result.remote) + "  ·  ", [", ".join(_counts(result, verb))])
    by_session: dict[str, list[BranchChange]] = {}
    for change in result.changes:
        by_session.setdefault(change.session, []).append(change)
    is_push = isinstance(result, PushResult)
    branches = {branch.name: branch for branch in here.index.branches_named(list(by_session)[:_LIMIT])}
    rows = [
        (
            here.ident(session),
            blocks.title(branches[session].state) if session in branches else "",
            ", ".join(_phrases(here, changes, is_push=is_push)),
        )
        for session, changes in list(by_session.items())[:_LIMIT]
    ]
    ident, title = (max((text.width(row[column]) for row in rows), default=0) for column in (0, 1))
    phrase = max((columns for row in rows if (columns := text.width(row[2])) <= here.width // 3), default=0)
    title = min(title, max(_TITLE, here.width - ident - phrase - 6))
    for row in rows:
        line = f"  {here.paint('yellow', row[0].ljust(ident))}" + (f"  {text.fit(row[1], title)}" if title else "")
        if text.width(f"{line}  {row[2]}") <= here.width:
            yield f"{line}  {row[2]}"
        else:
            yield line
            yield from paragraph(here, row[2], indent=ident + 4)
    if len(by_session) > _LIMIT:
        yield f"  and {len(by_session) - _LIMIT:,} more"
    if result.tags:
        yield from paragraph(here, f"tags: {_names(list(map(text.clean, result.tags)))}", indent=2)


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


def _phrases(here: Invocation, changes: Iterable[BranchChange], *, is_push: bool) -> Iterator[str]:
    """Yield what happened to one session; several rewinds are one phrase."""
    rewound: list[BranchChange] = []
    for change in changes:
        if change.what == "rewound":
            rewound.append(change)
        else:
            yield _phrase(here, change, is_push=is_push)
    if rewound:
        turns = text.counted(sum(change.turns for change in rewound), "turn")
        is_single = len(rewound) == 1
        branch = f": {here.ident(rewound[0].branch)}" if is_single else ""
        yield f"{'a rewind' if is_single else f'{len(rewound)} rewinds'} left {turns} behind{branch}"


def _phrase(here: Invocation, change: BranchChange, *, is_push: bool) -> str:
    turns = text.counted(change.turns, "turn")
    match change.what:
        case "new":
            return f"new, {turns}" if change.turns else "new"
        case "forward":
            where = f" in {here.ident(change.branch)}" if layout.is_side_branch(change.branch) else ""
            return f"+ {turns}{where}" if change.turns else f"no new turns, but new details{where}"
        case "parted":
            whose = "" if is_push else " in the other version"
            return f"continued on both sides: {here.ident(change.branch)} has {turns}{whose}"
        case "merged":
            return f"+ {turns}, merged with {here.ident(change.branch)}"
        case "joined":
            return f"{f'+ {turns}, ' if change.turns else ''}details from both sides"
        case "kept":
            missing = f": {turns} were missing there" if change.turns else ""
            return f"deleted there, kept here{missing}"
        case what:
            return what


def _has_other_version(here: Invocation, session: str) -> bool:
    return any(layout.is_other_version(branch.name) for branch in here.index.branches(session))


def _divergence_hints(here: Invocation, changes: Sequence[BranchChange]) -> Iterator[str]:
    """Yield how to compare and merge two versions of a session, if another one came or grew."""
    diverged = [
        change
        for change in changes
        if change.what == "parted"
        or (change.what == "forward" and change.turns and layout.is_other_version(change.branch))
    ]
    if not diverged:
        return
    ours, theirs = here.ident(diverged[0].session), here.ident(diverged[0].branch)
    branch = here.index.branch(diverged[0].session)
    is_archived = branch is not None and branch.archived
    steps = [
        f"Compare them: sessgit diff {ours} {theirs}",
        f"unarchive it: sessgit unarchive {ours}" if is_archived else "",
        f"merge them: sessgit merge {theirs} --into {ours}",
    ]
    yield from text.fold(steps, here.width, "   ·   ")
    if len(diverged) > 1:
        yield "Do the same with the others."


def _resume_hints(here: Invocation, behind: Sequence[str]) -> Iterator[str]:
    """Yield how to continue with turns that the client's own files lack."""
    if behind:
        have, lack = ("has", "file lacks") if len(behind) == 1 else ("have", "files lack")
        commands = [f"sessgit resume {here.ident(session)}" for session in behind[:_LIMIT]]
        sentence = f"{text.counted(len(behind), 'conversation')} {have} turns that your client's {lack}."
        yield from text.fold([sentence, f"Continue with: {commands[0]}"], here.width, " ")
        yield from (f"{'':15}{command}" for command in commands[1:])
        if len(behind) > _LIMIT:
            yield f"and {len(behind) - _LIMIT:,} more"


def _same_names(here: Invocation, changes: Sequence[BranchChange]) -> Iterator[str]:
    """Yield names that two conversations of a project have now, because each machine gave one."""
    received = {change.session for change in changes if change.what in _MOVING}
    named: dict[tuple[str, str], list[str]] = {}
    for outline in here.index.outlines() if received else ():
        if outline.authored_name:
            named.setdefault((outline.authored_name, project.project_key(outline.project)), []).append(outline.name)
    for (name, _), sessions in named.items():
        if len(sessions) > 1 and received.intersection(sessions):
            both = " and ".join(map(here.ident, sorted(sessions)))
            quoted = f"“{text.clean(name, 100)}”"
            yield from paragraph(here, f"{quoted} now names both {both}: rename one with sessgit rename.")


def _skipped(here: Invocation, items: Sequence[SkippedItem]) -> Iterator[str]:
    """Yield what was skipped, why, and what to do about it."""
    for item in items[:_LIMIT]:
        what = layout.short_name(item.what) if "-" in item.what and "/" not in item.what else item.what
        yield from paragraph(here, f"Skipped: {text.clean(what)}: {text.clean(item.why)}. {text.clean(item.hint)}")
    if len(items) > _LIMIT:
        yield f"and {len(items) - _LIMIT:,} more were skipped"
