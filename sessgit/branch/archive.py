"""Archives sessions, and unarchives them: moves their branches between `refs/heads/` and `refs/archive/`.

Nothing else changes: archived sessions are found, shown, searched, forked and restored as before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from sessgit import agents
from sessgit.errors import ConflictError, NotFoundError
from sessgit.history import ls
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count
from sessgit.record import catch_up
from sessgit.store import layout, operations, refs
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.operations import Move, Operation

KEEP = "keep"
"""The label of a session that is archived only by name."""
_CHECK_INTERVAL = 3600.0
"""Seconds between two times that old sessions are archived by themselves."""


@frozen
class ArchiveResult:
    """The sessions that were moved, those that were there already, and the operation, None where nothing moved."""

    sessions: tuple[str, ...]
    already: tuple[str, ...] = ()
    operation: Operation | None = None


@frozen
class OldSessions:
    """The sessions without recent turns, and those that are passed over, with the reason."""

    sessions: tuple[str, ...]
    passed_over: Mapping[str, str] = field(default_factory=dict)


def archive(context: Context, sessions: Sequence[str]) -> ArchiveResult:
    """Archive the sessions, all or none, after the last lines of their transcripts were recorded.

    Raises ConflictError where one is open in a client.
    """
    live, session_filter = agents.open_sessions(context.homes), set(sessions)
    open_ones = [
        outline.name
        for outline in context.index.outlines()
        if outline.agent_id in live and outline.name in session_filter
    ]
    if open_ones:
        raise ConflictError(
            f"{min(open_ones)[:8]} is open in a client", "Nothing was archived. Close it there, and try again."
        )
    _record_last_lines(context, sessions)
    return _move_sessions(context, sessions, ("archive", "archived"))


def unarchive(context: Context, sessions: Sequence[str]) -> ArchiveResult:
    """Unarchive the sessions, all or none."""
    return _move_sessions(context, sessions, ("unarchive", "unarchived"), back=True)


def bring_back(context: Context, session: str) -> ArchiveResult:
    """Unarchive a session that continues in its client, as a background operation."""
    what = (operations.BACKGROUND, "unarchived, because it continues")
    return _move_sessions(context, [session], what, back=True)


def old_sessions(index: Index, session_filter: ls.SessionFilter, homes: Homes) -> OldSessions:
    """Return the matching sessions that may be archived because of their age; those that are open in a client, are
    labelled `keep`, manage others, or have a transcript written after the moment `before` are only archived by name."""
    live = agents.open_sessions(homes)
    matching = ls.matching_sessions(index, session_filter)
    managers = index.managing_sessions()
    places = index.session_transcripts([outline.name for outline in matching])
    passed: dict[str, str] = {}
    for outline in matching:
        if outline.agent_id in live:
            passed[outline.name] = "open in a client"
        elif KEEP in json.loads(outline.labels):
            passed[outline.name] = f"labelled {KEEP}"
        elif outline.name in managers:
            passed[outline.name] = "managing others"
        elif _has_gone_on(index.path, outline.name, places[outline.name], session_filter.before or 0):
            passed[outline.name] = "with unrecorded turns"
    return OldSessions(tuple(o.name for o in matching if o.name not in passed), passed)


def _record_last_lines(context: Context, sessions: Sequence[str]) -> None:
    """Record the last lines of sessions that no client has open: archived sessions are not recorded in the
    background."""
    places = context.index.session_transcripts(sessions)
    for session in sessions:
        path = Path(places.get(session) or "/")
        if not path.name or catch_up.is_level(context.store.paths, session, path, final=True):
            continue
        file = agents.transcript_at(context.homes, path)
        if file is None:
            continue
        branch = context.index.branch(session)
        if branch is not None and not branch.archived and file.agent_id == branch.state.agent_id:
            catch_up.record_file(context, file, project=branch.state.project, final=True)


def archive_old(context: Context, *, after: float) -> ArchiveResult:
    """Archive the sessions without a turn for `after` seconds, of all projects, but not again within the hour.

    The caller holds the maintenance lock.
    """
    now = context.now()
    mark = context.store.paths.archiving
    if mark.exists() and now - _CHECK_INTERVAL < mark.stat().st_mtime <= now:
        return ArchiveResult(())
    mark.touch(0o600)
    context.index.sync()
    old = old_sessions(
        context.index, ls.SessionFilter(before=now - after, headless=True, empty=True), context.homes
    ).sessions
    if not old:
        return ArchiveResult(())
    _record_last_lines(context, old)
    return _move_sessions(context, old, (operations.BACKGROUND, "archived automatically"))


def _move_sessions(
    context: Context, sessions: Collection[str], what: tuple[str, str], *, back: bool = False
) -> ArchiveResult:
    """Move all branches of the sessions; `what` is the command, and what it did. A branch that is both live and
    archived counts as live."""
    store, names = context.store, dict.fromkeys(sessions)
    source, target = (layout.ARCHIVE, layout.HEADS) if back else (layout.HEADS, layout.ARCHIVE)

    def attempt() -> ArchiveResult:
        tips, branches = refs.read_all(store.path), dict[str, list[str]]()
        for name in (ref.removeprefix(source) for ref in tips if ref.startswith(source)):
            branches.setdefault(layout.session_of(name), []).append(name)
        moves, already = list[Move](), [session for session in names if session not in branches.get(session, ())]
        if gone := next((session for session in already if target + session not in tips), ""):
            raise NotFoundError(f"{gone} no longer exists", "`sessgit ls --all` lists all conversations.")
        for name in (name for session in names for name in branches.get(session, ())):
            tip, there = tips[source + name], tips.get(target + name)
            if there is None or (not back and there != tip):
                moves.append(Move(target + name, there, tip))
            moves.append(Move(source + name, tip, None))
        result = ArchiveResult(tuple(one for one in names if one in branches.get(one, ())), tuple(already))
        if not moves:
            return result
        moved = result.sessions or list(names)
        named = f"{moved[0][:8]}:" if len(moved) == 1 else format_count(len(moved), "conversation")
        summary = f"{named} {what[1]}"
        return replace(result, operation=operations.perform_operation(store, what[0], summary, moves, context.now()))

    result = operations.retry_moved(store, "the branches kept changing while they were archived", attempt)
    if result.operation:
        context.index.sync()
    return result


def _has_gone_on(store: Path, session: str, place: str, moment: float) -> bool:
    """Return whether a transcript was written after a moment and has unrecorded lines."""
    try:
        written = Path(place).stat().st_mtime if place else 0.0
    except (OSError, ValueError):
        return False
    return written >= moment and not catch_up.is_level(layout.StorePaths(store), session, Path(place))
