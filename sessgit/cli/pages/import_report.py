"""What an import from another system did, or would do: the conversations that changed, and the source's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sessgit.api.values import ImportedSession
from sessgit.cli import blocks, text
from sessgit.cli.blocks import Column
from sessgit.cli.invocation import Invocation
from sessgit.exchange.systems import FolderImport
from sessgit.store import layout

_LIMIT = 100
_OUTCOME = 10
_SKIPPED = {
    "excluded": "of projects that are off: skipped",
    "archived": "with new turns since the archiving: sessgit unarchive",
    "deleted": "deleted here before: skipped (sessgit undo OP reverts a deletion)",
}
_FILES = {"imported": "imported", "empty": "empty", "left": "left out", "damaged": "damaged"}
_EXPECTED = ("", "kept as it is", "derived from the cells", "the transcript contains it")


def full(here: Invocation, report: FolderImport, *, dry_run: bool) -> Iterator[str]:
    """Yield the whole page."""
    turns = text.counted(sum(session.turns for session in report.changed), "turn")
    imported = f"{text.counted(len(report.changed), 'conversation')}, {turns}"
    outcomes = Counter[str](session.outcome for session in report.sessions)
    unchanged = outcomes["unchanged"]
    were = f"; {unchanged:,} {'was' if unchanged == 1 else 'were'} already imported" if unchanged else ""
    yield f"{imported} {'would be ' if dry_run else ''}imported from {report.system}{were}"
    rows = [_row(session) for session in report.changed[:_LIMIT]]
    yield from blocks.table(here, (Column(), Column("yellow"), Column(), Column("dim")), rows, [(2, 12), (3, 1)])
    yield from _more(report.changed)
    for outcome, phrase in _SKIPPED.items():
        if outcomes[outcome]:
            yield f"{text.counted(outcomes[outcome], 'conversation')} {phrase}"
    yield from _files(here, report)


def as_json(report: FolderImport, *, dry_run: bool) -> dict[str, Any]:
    """Return what `import --json` prints for another system."""
    outcomes = Counter[str](session.outcome for session in report.sessions)
    return {
        "sessions": len(report.changed),
        "turns": sum(session.turns for session in report.changed),
        **{key: outcomes[key] for key in ("unchanged", "excluded", "archived", "deleted")},
        "errors": [{"path": path, "reason": reason} for path, reason in report.errors],
        "system": report.system,
        "dry_run": dry_run,
        "operation_id": report.report.operation or None,
        "conversations": [_session_json(session) for session in report.sessions],
        "files": [
            {"path": file.path, "outcome": file.outcome, "reason": file.why or None,
             "conversation": file.session or None}
            for file in report.files
        ],
        "refs": {move.ref: {"before": move.old, "after": move.new} for move in report.report.moves},
    }  # fmt: skip


def _session_json(session: ImportedSession) -> dict[str, Any]:
    return {
        "id": session.id,
        "source_id": session.source_id,
        "outcome": session.outcome,
        "title": session.title,
        "turns": session.turns,
        "parent": session.parent or None,
        "fork_turn": session.shared if session.parent else None,
        "reason": session.why or None,
    }


def _row(session: ImportedSession) -> tuple[str, ...]:
    outcome = "fork" if session.outcome == "new" and session.parent else session.outcome
    at = f", from {layout.short_name(session.parent)}@{session.shared}" if session.parent else ""
    note = f"{text.counted(session.turns, 'turn')}{at}"
    if not session.turns and not at:
        note = session.why or ("its last turn" if session.outcome == "grown" else "its details")
    return outcome.ljust(_OUTCOME), session.id[:8], text.clean(session.title, 200), note


def _files(here: Invocation, report: FolderImport) -> Iterator[str]:
    """Yield how many files had which outcome, and those that were not simply imported."""
    outcomes = Counter[str](file.outcome for file in report.files)
    counts = [f"{outcomes[key]:,} {phrase}" for key, phrase in _FILES.items() if outcomes[key]]
    if counts:
        counts[0] = f"{text.counted(len(report.files), 'file')}: {counts[0]}"
        yield from text.fold(counts, here.width, ", ", "  ")
    others = [file for file in report.files if file.outcome in ("left", "damaged") or file.why not in _EXPECTED]
    for file in others[:_LIMIT]:
        room = here.width - _OUTCOME - 2
        path = text.cut_start(here.shown(file.path), room)
        reason = f"{path}: {file.why}" if file.why else path
        lines = [reason] if text.width(reason) <= room else [path, *text.wrapped(file.why, room)]
        yield from text.hang(file.outcome.ljust(_OUTCOME + 2), lines)
    yield from _more(others)


def _more(listed: Sequence[object]) -> Iterator[str]:
    if len(listed) > _LIMIT:
        yield f"and {len(listed) - _LIMIT:,} more: --json lists all"
