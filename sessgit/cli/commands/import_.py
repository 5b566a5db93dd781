"""`sessgit import`: conversations from files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.api.values import ImportedSession
from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.errors import NotFoundError, UsageError
from sessgit.exchange import systems
from sessgit.exchange.systems import FolderImport
from sessgit.history import search
from sessgit.record import imports, privacy, scratch_store
from sessgit.record.imports import ImportResult
from sessgit.store import layout, maintenance, refs
from sessgit.store.context import Context
from sessgit.store.index import Index

_NAMED_SESSIONS = 3
_NAMED_PLANS = 10
_SHORTEST_ID = 4


@frame.command("import", excludes={"--id": "--from"})
def run(
    cli: Invocation,
    paths: list[Path] = argument("PATH...", "Transcripts or folders (default: all of the client's)."),
    source: str = option(
        "--from SYSTEM", "The files' origin: claude or codex (a whole folder), rlm, dialectic, apex or io-log."
    ),
    ident: str = option("--id ID", "Only this conversation, even if it was deleted here."),
    dry_run: bool = option("--dry-run", "Show what would be imported, change nothing."),
) -> Answer:
    """Import older conversations.

    Conversations that are already in the store do not change, so you can import again at any time. --from claude DIR
    imports a folder like ~/.claude from anywhere, with plans, todos and tasks, --from codex one like ~/.codex. Archived
    conversations stay archived, and deleted ones stay deleted unless --id names them. If the lines of a file name no
    session, the file name is its id; of two such files with the same name, the second is skipped.

    --from rlm, dialectic, apex or io-log DIR imports the sessions of another system, reports what became of each of its
    files, and changes none of them. `sessgit undo` reverts the whole import.
    """
    if ident and len(ident) < _SHORTEST_ID:
        raise UsageError(
            f"“{ident}” is too short for an id.", "`sessgit import --id ID [PATH]` imports one conversation."
        )
    if source in systems.MODULES:
        return _import_system(cli, source, paths)
    if source and source not in imports.SOURCES:
        known = sorted({*imports.SOURCES, *systems.MODULES})
        raise UsageError(f"cannot import from “{source}”", f"SYSTEM is one of {', '.join(known)}.")
    import_all = imports.SOURCES[source] if source else imports.run_import
    if not cli.has_store:
        privacy.check_on(cli.privacy)
        if not paths and next(agents.transcripts(cli.env.homes), None) is None:
            folders = " or ".join(sorted(map(cli.short, cli.env.homes.folders.values())))
            raise NotFoundError(
                f"there is nothing to import: no conversations in {folders}",
                "`sessgit install` starts recording, `sessgit import PATH` imports other transcripts.",
            )
        if not dry_run:
            cli.create_store()
    with _scratch_context(cli) if dry_run else _count_if_interrupted(cli) as context:
        reading, packing = render.progress(cli, "Importing", ""), render.progress(cli, "Packing", "objects")
        progress = imports.ImportProgress(reading, packing)
        result = imports.import_one(context, ident, paths, progress) if ident else import_all(context, paths, progress)
    if result.turns and not dry_run:
        _index_and_pack(cli)
    if result.unpacked:
        render.tell(f"Cannot pack the store: {result.unpacked}")
    document = {
        **frame.attributes(result, "sessions", "turns", "unchanged", "excluded", "archived"),
        "deleted": len(result.deleted),
        **frame.attributes(result.passed_over, "links", "empty", "subagents", "plans"),
        "dry_run": dry_run,
        "errors": [frame.attributes(failure, "path", "reason") for failure in result.errors],
    }
    report = _report_lines(cli, result, has_paths=bool(paths))
    lines = (part for line in report for part in text.wrap(line, cli.width))
    return Answer(document, lines, _failures(cli, result), int(bool(result.errors)))


def _import_system(cli: Invocation, system: str, paths: list[Path]) -> Answer:
    if len(paths) != 1:
        raise UsageError(f"--from {system} needs exactly one folder.", f"`sessgit import --from {system} DIR`")
    privacy.check_on(cli.privacy)
    if not cli.dry_run:
        cli.create_store()
    store = cli.library()
    progress = render.progress(cli, "Importing", "conversations")
    with render.exit_on_signals():
        result = systems.import_folder(store, system, paths[0], progress, dry_run=cli.dry_run)
    if result.report.operation:
        unpacked = imports.pack_import(cli.store)
        if unpacked:
            render.tell(f"Cannot pack the store: {unpacked}")
        _index_and_pack(cli)
    remarks = (f"{path}: {reason}" for path, reason in (result.errors if cli.json else result.refused))
    return Answer(lambda: _as_json(cli, result), _full(cli, result), remarks, int(bool(result.errors)))


def _index_and_pack(cli: Invocation) -> None:
    """Make the new turns searchable and pack the store again: in the background if there is much of it."""
    if maintenance.start_repack(cli.env.store, os.environ):
        return
    problem = search.update_fulltext(cli.index, render.progress(cli, "Indexing", "conversations"))
    if problem:
        render.tell(f"({problem})")


@contextmanager
def _scratch_context(cli: Invocation) -> Iterator[Context]:
    """Yield a context with a scratch store that has what the store has, if there is one."""
    other = cli.env.store if cli.has_store else None
    with scratch_store.scratch_store(other) as scratch, closing(Index(scratch.path, lambda: scratch)) as index:
        yield Context(index, cli.env.homes, cli.privacy, os.environ, lambda: cli.now, cli.prices)


@contextmanager
def _count_if_interrupted(cli: Invocation) -> Iterator[Context]:
    before = refs.read_all(cli.env.store, layout.HEADS)
    try:
        yield cli.context
    except KeyboardInterrupt:
        after = refs.read_all(cli.env.store, layout.HEADS)
        names = {layout.session_of(ref.removeprefix(layout.HEADS)) for ref in after if after[ref] != before.get(ref)}
        render.tell(f"Interrupted: {text.counted(len(names), 'conversation')} imported. Run import again to continue.")
        raise


def _failures(cli: Invocation, result: ImportResult) -> Iterator[str]:
    """Say which files could not be imported; a path is never broken."""
    for failure in result.errors:
        path, reason = cli.short(failure.path), text.clean(failure.reason).replace(f" {failure.path}", "")
        if text.width(path) + 2 + text.width(reason) <= cli.width:
            yield f"{path}: {reason}"
        else:
            yield f"{path}:"
            yield from (f"  {line}" for line in text.wrapped(reason, cli.width - 2))


def _report_lines(cli: Invocation, result: ImportResult, *, has_paths: bool) -> Iterator[str]:
    imported = "would be imported" if cli.dry_run else "imported"
    counts = [f"{text.counted(result.sessions, 'conversation')}, {text.counted(result.turns, 'turn')} {imported}"]
    if result.unchanged:
        counts.append(f"{result.unchanged:,} {_were(result.unchanged)} already imported")
    if result.errors:
        counts.append(f"{text.counted(len(result.errors), 'file')} could not be imported")
    yield "; ".join(counts)
    if result.archived:
        have = "conversation has" if result.archived == 1 else "conversations have"
        yield f"{result.archived:,} archived {have} new turns: sessgit unarchive"
    if result.deleted:
        names = map(cli.ident, result.deleted) if len(result.deleted) <= _NAMED_SESSIONS else ["ID"]
        again = f"sessgit import --id {' or '.join(names)}"
        skipped = f"{text.counted(len(result.deleted), 'conversation')} skipped, deleted here before:"
        yield from text.fold([skipped, again], cli.width, " ", "  ")
    if result.excluded:
        count = text.counted(result.excluded, "conversation")
        yield f"{count} of projects that are off {_were(result.excluded)} skipped"
    skips = result.passed_over
    files = [(skips.links, "link"), (skips.empty, "empty file")]
    skipped = " and ".join(text.counted(count, what) for count, what in files if count)
    if skipped:
        yield f"{skipped} skipped"
    if skips.subagents and has_paths:
        skipped = f"{text.counted(skips.subagents, 'subagent file')} skipped:"
        why = "the client keeps them in ID/subagents/ next to the transcript ID.jsonl"
        yield from text.fold([skipped, why], cli.width, " ", "  ")
    if skips.plans:
        count = f"{text.counted(len(skips.plans), 'plan')} skipped, named in no conversation:"
        yield from text.fold([count, *map(text.clean, text.some(skips.plans, _NAMED_PLANS))], cli.width, " ", "  ")


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


_LIMIT = 100
_OUTCOME = 10
_SKIPPED = {
    "excluded": "of projects that are off: skipped",
    "archived": "with new turns since the archiving: sessgit unarchive",
    "deleted": "deleted here before: skipped (sessgit undo OP reverts a deletion)",
}
_FILES = {"imported": "imported", "empty": "empty", "left": "left out", "damaged": "damaged"}
_EXPECTED = ("", "kept as it is", "derived from the cells", "the transcript contains it")


def _full(cli: Invocation, report: FolderImport) -> Iterator[str]:
    """Yield the whole page."""
    turns = text.counted(sum(session.turns for session in report.changed), "turn")
    imported = f"{text.counted(len(report.changed), 'conversation')}, {turns}"
    outcomes = Counter[str](session.outcome for session in report.sessions)
    unchanged = outcomes["unchanged"]
    were = f"; {unchanged:,} {_were(unchanged)} already imported" if unchanged else ""
    yield f"{imported} {'would be ' if cli.dry_run else ''}imported from {report.system}{were}"
    rows = [_row(session) for session in report.changed[:_LIMIT]]
    columns = (Column(), Column("yellow"), Column(least=12), Column("dim", least=1))
    yield from text.table(cli, columns, rows)
    yield from _more(report.changed)
    for outcome, phrase in _SKIPPED.items():
        if outcomes[outcome]:
            yield f"{text.counted(outcomes[outcome], 'conversation')} {phrase}"
    yield from _files(cli, report)


def _as_json(cli: Invocation, report: FolderImport) -> dict[str, Any]:
    """Return what `import --json` prints for another system."""
    outcomes = Counter[str](session.outcome for session in report.sessions)
    return {
        "sessions": len(report.changed),
        "turns": sum(session.turns for session in report.changed),
        **{key: outcomes[key] for key in ("unchanged", "excluded", "archived", "deleted")},
        "errors": [{"path": path, "reason": reason} for path, reason in report.errors],
        "system": report.system,
        "dry_run": cli.dry_run,
        "operation_id": report.report.operation or None,
        "conversations": [
            {
                **frame.attributes(session, "id", "source_id", "outcome", "title", "turns"),
                "parent": session.parent or None, "fork_turn": session.shared if session.parent else None,
                "reason": session.why or None,
            }
            for session in report.sessions
        ],
        "files": [
            {"path": file.path, "outcome": file.outcome, "reason": file.why or None,
             "conversation": file.session or None}
            for file in report.files
        ],
        "refs": {move.ref: {"before": move.old, "after": move.new} for move in report.report.moves},
    }  # fmt: skip


def _row(session: ImportedSession) -> tuple[str, ...]:
    outcome = "fork" if session.outcome == "new" and session.parent else session.outcome
    at = f", from {layout.short_name(session.parent)}@{session.shared}" if session.parent else ""
    note = f"{text.counted(session.turns, 'turn')}{at}"
    if not session.turns and not at:
        note = session.why or ("its last turn" if session.outcome == "grown" else "its details")
    return outcome.ljust(_OUTCOME), session.id[:8], text.clean(session.title, 200), note


def _files(cli: Invocation, report: FolderImport) -> Iterator[str]:
    """Yield how many files had which outcome, and those that were not simply imported."""
    outcomes = Counter[str](file.outcome for file in report.files)
    counts = [f"{outcomes[key]:,} {phrase}" for key, phrase in _FILES.items() if outcomes[key]]
    if counts:
        counts[0] = f"{text.counted(len(report.files), 'file')}: {counts[0]}"
        yield from text.fold(counts, cli.width, ", ", "  ")
    others = [file for file in report.files if file.outcome in ("left", "damaged") or file.why not in _EXPECTED]
    for file in others[:_LIMIT]:
        room = cli.width - _OUTCOME - 2
        path = text.cut_start(cli.shown(file.path), room)
        reason = f"{path}: {file.why}" if file.why else path
        lines = [reason] if text.width(reason) <= room else [path, *text.wrapped(file.why, room)]
        yield from text.hanging_indent(file.outcome.ljust(_OUTCOME + 2), lines)
    yield from _more(others)


def _more(listed: Sequence[object]) -> Iterator[str]:
    if len(listed) > _LIMIT:
        yield f"and {len(listed) - _LIMIT:,} more: --json lists all"
