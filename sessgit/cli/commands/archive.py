"""`sessgit archive`, `sessgit unarchive`: conversations hidden, and shown again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import frame, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.archive import ArchiveResult, OldSessions

_LISTED = 20
"""So many are listed where they were not named one by one, unless they are only to be shown."""


@frame.command("archive", needs="conversations")
def archive(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    addresses: options.Addresses = None,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="WHEN",
            help="Archive those last used before: 30d, 12w, 2026-03-01.",
            show_default=False,
        ),
    ] = "",
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="With --older-than: only with this label.")
    ] = None,
    state: Annotated[
        Literal["active", "ended", "interrupted"] | None,
        typer.Option("--state", help="With --older-than: only in this state.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With --older-than: all projects, with headless and empty ones.")
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="With --older-than: the project at DIR.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")] = False,
) -> Answer:
    """Hide conversations without deleting them.

    `sessgit ls` lists them with --archived only. Everything else works as before, and a conversation that continues
    leaves the archive. --older-than archives the old ones of this project, except those that are open, labelled keep,
    or manage others. The setting archive.after = "90d" does this automatically in all projects.
    """
    from sessgit.branch import archive as archives
    from sessgit.branch import edit
    from sessgit.cli import session_argument
    from sessgit.cli.arguments import moments
    from sessgit.errors import UsageError
    from sessgit.history import ls

    narrowed = bool(label or state or everything or project)
    if addresses and (older_than or narrowed):
        raise UsageError("addresses and --older-than cannot be combined.", "Use one of the two.")
    if not addresses and not older_than:
        raise UsageError(
            "no conversations selected.",
            "`sessgit archive ADDRESS`, or `sessgit archive --older-than 30d`.",
        )
    found = archives.OldSessions(())
    if addresses:
        found = archives.OldSessions(
            tuple(edit.addressed_session(session_argument.target(here, each, changes=True)) for each in addresses)
        )
    else:
        folder = here.folder(str(project)) if project else here.cwd
        wanted = ls.SessionFilter(
            folder=None if everything else folder,
            labels=tuple(label or ()),
            state=state,
            before=moments.since(older_than, here.now),
            headless=everything,
            empty=everything,
        )
        found = archives.old_sessions(here.index, wanted, here.config)
    sessions = tuple(dict.fromkeys(found.sessions))
    if dry_run:
        already = tuple(b.name for b in here.index.branches_named(sessions) if b.archived)
        done = archives.ArchiveResult(tuple(name for name in sessions if name not in already), already)
    else:
        done = archives.archive(here.store, here.index, sessions, here.config, here.privacy, here.now)
    shown = bool(addresses) or dry_run or len(done.sessions) <= _LISTED
    lines = _page(here, done, found, shown=shown, dry_run=dry_run)
    return Answer(lambda: _json(done, found, dry_run=dry_run), lines)


def _page(here: Invocation, done: ArchiveResult, found: OldSessions, *, shown: bool, dry_run: bool) -> Iterator[str]:
    from sessgit.cli.pages import moved_sessions

    if shown:
        notes = dict.fromkeys(done.already, "already archived")
        branches = {branch.name: branch for branch in here.index.branches_named([*done.sessions, *done.already])}
        yield from moved_sessions.lines(here, [branches[name] for name in dict.fromkeys(found.sessions)], notes)
    count = text.counted(len(done.sessions), "conversation")
    if dry_run:
        yield f"{count} would be archived."
    elif done.operation:
        yield f"{count} archived (undo: sessgit undo)"
    elif not done.already:
        yield "Nothing to archive."
    if found.passed_over:
        reasons = Counter(found.passed_over.values())
        told = ", ".join(f"{count:,} {why}" for why, count in sorted(reasons.items()))
        yield from text.fold([f"Skipped: {told}"], here.width, "")


def _json(done: ArchiveResult, found: OldSessions, *, dry_run: bool) -> dict[str, object]:
    return {
        "archived": list(done.sessions),
        "already": list(done.already),
        "skipped": [{"id": name, "reason": why} for name, why in found.passed_over.items()],
        "operation_id": done.operation.id if done.operation else None,
        "dry_run": dry_run,
    }


@frame.command("unarchive", needs="conversations")
def unarchive(
    here: Invocation,
    addresses: options.Addresses = None,
) -> Answer:
    """Take conversations out of the archive."""
    from sessgit.branch import archive as archives
    from sessgit.branch import edit
    from sessgit.cli import session_argument
    from sessgit.cli.pages import moved_sessions
    from sessgit.errors import UsageError

    if not addresses:
        raise UsageError("no conversations selected.", "`sessgit ls --archived` lists archived conversations.")
    sessions = list(dict.fromkeys(edit.addressed_session(session_argument.recorded(here, each)) for each in addresses))
    done = archives.unarchive(here.store, here.index, sessions, here.now)
    operation = done.operation.id if done.operation else None
    value = {"unarchived": list(done.sessions), "already": list(done.already), "operation_id": operation}
    branches = {branch.name: branch for branch in here.index.branches_named(sessions)}
    notes = dict.fromkeys(done.already, "not archived")
    lines = list(moved_sessions.lines(here, [branches[name] for name in sessions], notes))
    if done.operation:
        lines.append(f"{text.counted(len(done.sessions), 'conversation')} unarchived (undo: sessgit undo)")
    return Answer(lambda: value, lines)
