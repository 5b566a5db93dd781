"""What came from a remote and what went there: a line for each conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.resolve import session_title
from sessgit.record.tip_delivery import BranchChange
from sessgit.store import layout
from sessgit.sync.outcome import PullResult, PushResult, SkippedItem

_LISTED = 20
"""So many are listed; of more it is told how many there are."""
_TITLE = 12
_BETWEEN = "   ·   "
_MOVING = ("new", "forward", "parted", "merged", "rewound", "joined")
_STILL = ("archived", "brought back", "deleted", "kept", "purged")


def pulled(here: Invocation, done: PullResult, *, dry_run: bool = False) -> Iterator[str]:
    """What came, what to do where both sides went on, and what was left; nothing where nothing is new, but for a line
    on a terminal."""
    if not done.changes and not done.tags:
        if here.terminal:
            yield f"Nothing new in {done.remote}."
    else:
        yield from _heading(here, done, "would be received" if dry_run else "received")
        yield from _changes(here, done.changes, away=False)
        yield from _tags(here, done.tags)
        if not dry_run:
            yield from _next(here, done.changes)
            yield from _same_names(here, done.changes)
    yield from _left(here, done.left)
    yield from _behind(here, done.behind)


def pushed(here: Invocation, done: PushResult, *, dry_run: bool = False) -> Iterator[str]:
    """What went, what went along, and what was left; nothing where all is there, but for a line on a terminal."""
    if not done.changes and not done.tags:
        if here.terminal and not done.left:
            yield f"{done.remote} is up to date."
    else:
        yield from _heading(here, done, "would be sent" if dry_run else "sent")
        yield from _changes(here, done.changes, away=True)
        yield from _tags(here, done.tags)
        yield from _carried(here, done.carried, dry_run=dry_run)
        if any(change.what == "parted" and not _has_theirs(here, change) for change in done.changes):
            yield from text.wrap("The remote has turns that this store lacks. Fetch them: sessgit pull", here.width)
    yield from _left(here, done.left)


def synced(here: Invocation, came: PullResult, sent: PushResult | None) -> Iterator[str]:
    """What came, then what went; a single line on a terminal where neither did."""
    changed = [bool(done and (done.changes or done.tags)) for done in (came, sent)]
    if not any(changed):
        if here.terminal:
            yield f"{came.remote} and this machine are in sync." if sent else f"Nothing new in {came.remote}."
        yield from _left(here, (*came.left, *(sent.left if sent else ())))
        return
    if changed[0] or came.left:
        yield from pulled(here, came)
    if sent and (changed[1] or sent.left):
        yield from pushed(here, sent)


def pulled_json(done: PullResult, *, dry_run: bool = False) -> dict[str, Any]:
    """Return what `pull --json` prints."""
    return {
        **_json(done, dry_run=dry_run),
        "operation_id": done.operation.id if done.operation else None,
        "behind": list(done.behind),
    }


def pushed_json(done: PushResult, *, dry_run: bool = False) -> dict[str, Any]:
    """Return what `push --json` prints."""
    return {**_json(done, dry_run=dry_run), "carried": list(done.carried)}


def _json(done: PullResult | PushResult, *, dry_run: bool) -> dict[str, Any]:
    return {
        "remote": done.remote,
        "changes": [
            {"id": one.session, "change": one.what, "turns": one.turns, "branch": one.branch} for one in done.changes
        ],
        "tags": list(done.tags),
        "skipped": [{"what": one.what, "reason": one.why, "hint": one.hint} for one in done.left],
        "dry_run": dry_run,
    }


def _heading(here: Invocation, done: PullResult | PushResult, verb: str) -> Iterator[str]:
    """`origin  ·  3 conversations came, 14 turns`, and how many were archived or deleted."""
    moving = [change for change in done.changes if change.what in _MOVING]
    sessions, turns = {change.session for change in moving}, sum(change.turns for change in moving)
    counts = Counter[str](change.what for change in done.changes)
    told = [(len(sessions), verb), *((counts[what], what) for what in _STILL)]
    (count, word), *others = [one for one in told if one[0]] or [(0, "")]
    parts = (
        [f"{text.counted(count, 'conversation')} {word}"]
        if count
        else [f"{text.counted(len(done.tags), 'tag')} {verb}"]
    )
    parts += [text.counted(turns, "turn")] * bool(turns)
    parts += [f"{count:,} {word}" for count, word in others]
    first, *more = text.wrap(f"{done.remote}  ·  {', '.join(parts)}", here.width)
    yield Paint(here.colour)("bold", done.remote) + first.removeprefix(done.remote)
    yield from more


def _changes(here: Invocation, changes: Sequence[BranchChange], *, away: bool) -> Iterator[str]:
    """A line for each session: its id, what it is called, and what became of it."""
    by_session: dict[str, list[BranchChange]] = {}
    for change in changes:
        by_session.setdefault(change.session, []).append(change)
    shown = {
        session: ", ".join(_whats(here, found, away=away)) for session, found in list(by_session.items())[:_LISTED]
    }
    titles = {
        branch.name: text.clean(session_title(branch.state), 200) for branch in here.index.branches_named(list(shown))
    }
    idents = {session: here.ident(session) for session in shown}
    wide = max((text.width(ident) for ident in idents.values()), default=0)
    longest = max((n for what in shown.values() if (n := text.width(what)) <= here.width // 3), default=0)
    called = max((text.width(name) for name in titles.values()), default=0)
    room = min(called, max(_TITLE, here.width - wide - longest - 6))
    paint = Paint(here.colour)
    for session, told in shown.items():
        line = f"  {paint('yellow', idents[session].ljust(wide))}"
        line += f"  {text.fit(titles.get(session, ''), room)}" if room else ""
        beside = here.width - wide - room - (6 if room else 4)
        if text.width(told) <= beside:
            yield f"{line}  {told}"
        else:
            yield line
            yield from text.wrap(f"{' ' * (wide + 4)}{told}", here.width)
    if len(by_session) > len(shown):
        yield f"  and {len(by_session) - len(shown):,} more"


def _whats(here: Invocation, changes: Sequence[BranchChange], *, away: bool) -> Iterator[str]:
    """What became of one session; what several rewinds left is told once."""
    rewound = [change for change in changes if change.what == "rewound"]
    yield from (_what(here, change, away=away) for change in changes if change.what != "rewound")
    if len(rewound) > 1:
        turns = text.counted(sum(change.turns for change in rewound), "turn")
        yield f"{len(rewound)} rewinds left {turns} behind"
    elif rewound:
        yield f"a rewind left {text.counted(rewound[0].turns, 'turn')} behind: {here.ident(rewound[0].branch)}"


def _has_theirs(here: Invocation, change: BranchChange) -> bool:
    """Return whether another version of the session is here."""
    return any(layout.is_other_version(branch.name) for branch in here.index.branches(change.session))


def _what(here: Invocation, change: BranchChange, *, away: bool) -> str:
    turns = text.counted(change.turns, "turn")
    match change.what:
        case "new":
            return f"new, {turns}" if change.turns else "new"
        case "forward":
            where = f" in {here.ident(change.branch)}" if layout.is_side_branch(change.branch) else ""
            return f"+ {turns}{where}" if change.turns else f"no new turns, but new details{where}"
        case "parted":
            whose = "" if away else " in the other version"
            return f"continued on both sides: {here.ident(change.branch)} has {turns}{whose}"
        case "merged":
            return f"+ {turns}, merged with {here.ident(change.branch)}"
        case "joined":
            return f"{f'+ {turns}, ' if change.turns else ''}details from both sides"
        case "kept":
            return (
                f"deleted there, kept here: {turns} were missing there" if change.turns else "deleted there, kept here"
            )
        case other:
            return other


def _tags(here: Invocation, tags: Sequence[str]) -> Iterator[str]:
    if tags:
        more = [f"and {len(tags) - _LISTED:,} more"] if len(tags) > _LISTED else []
        yield from text.wrap(f"  tags: {', '.join([*map(text.clean, tags[:_LISTED]), *more])}", here.width)


def _carried(here: Invocation, carried: Sequence[str], *, dry_run: bool) -> Iterator[str]:
    """The conversations whose turns went along inside of others."""
    if not carried:
        return
    shown = [here.ident(session) for session in carried[:_LISTED]]
    more = [f"{len(carried) - _LISTED:,} more"] if len(carried) > _LISTED else []
    verb = "would be sent" if dry_run else "sent"
    yield from text.wrap(
        f"  also {verb}: turns of {', '.join([*shown, *more])} that a fork or a merge contains", here.width
    )


def _next(here: Invocation, changes: Sequence[BranchChange]) -> Iterator[str]:
    """How to look at what both sides did, and bring it together, where that is new."""
    parted = [change for change in changes if change.what == "parted" or _is_other_side(change)]
    for change in parted[:1]:
        ours, theirs = here.ident(change.session), here.ident(change.branch)
        branch = here.index.branch(change.session)
        steps = [
            f"Compare them: sessgit diff {ours} {theirs}",
            *([f"unarchive it: sessgit unarchive {ours}"] if branch is not None and branch.archived else []),
            f"merge them: sessgit merge {theirs} --into {ours}",
        ]
        yield from text.fold(steps, here.width, _BETWEEN)
    if len(parted) > 1:
        yield "Do the same with the others."


def _behind(here: Invocation, behind: Sequence[str]) -> Iterator[str]:
    """How to go on with the turns that came: the client knows only those in its own file."""
    if not behind:
        return
    first, *others = behind[:_LISTED]
    many = text.counted(len(behind), "conversation")
    file = "has turns that your client's file lacks" if len(behind) == 1 else "have turns that your client's files lack"
    yield from text.fold([f"{many} {file}.", f"Continue with: sessgit resume {here.ident(first)}"], here.width, " ")
    yield from (f"               sessgit resume {here.ident(other)}" for other in others)
    if len(behind) > _LISTED:
        yield f"and {len(behind) - _LISTED:,} more"


def _is_other_side(change: BranchChange) -> bool:
    """Return whether another version of the session got more turns."""
    return change.what == "forward" and bool(change.turns) and layout.is_other_version(change.branch)


def _same_names(here: Invocation, changes: Sequence[BranchChange]) -> Iterator[str]:
    """Names that two conversations of a project have now, since each machine gave one."""
    from sessgit.store import project

    came = {change.session for change in changes if change.what in _MOVING}
    if not came:
        return
    named: dict[tuple[str, str], list[str]] = {}
    for outline in here.index.outlines():
        if outline.authored_name:
            named.setdefault((outline.authored_name, project.project_key(outline.project)), []).append(outline.name)
    for (name, _), sessions in named.items():
        if len(sessions) > 1 and came & set(sessions):
            whose = " and ".join(here.ident(session) for session in sorted(sessions))
            yield from text.wrap(
                f"“{text.clean(name, 100)}” now names both {whose}: rename one with sessgit rename.", here.width
            )


def _left(here: Invocation, left: Sequence[SkippedItem]) -> Iterator[str]:
    """What was passed over, why, and what to do about it."""
    for one in left[:_LISTED]:
        what = layout.short_name(one.what) if "-" in one.what and "/" not in one.what else one.what
        yield from text.wrap(f"Skipped: {text.clean(what)}: {text.clean(one.why)}. {text.clean(one.hint)}", here.width)
    if len(left) > _LISTED:
        yield f"and {len(left) - _LISTED:,} more were skipped"
