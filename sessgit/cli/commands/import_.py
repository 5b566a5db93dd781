"""`sessgit import`: conversations from files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import argument, option
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import search
from sessgit.record import privacy
from sessgit.store import layout, refs
from sessgit.store.context import Context

if TYPE_CHECKING:
    from sessgit.record.imports import ImportResult

_NAMED_SESSIONS = 3
_NAMED_PLANS = 10
_SHORTEST_ID = 4


@frame.command("import", excludes={"--id": "--from"})
def run(
    here: Invocation,
    paths: list[Path] = argument("PATH...", "Transcripts or folders (default: all of the client's)."),
    source: str = option(
        "--from SYSTEM", "The files' origin: claude (a whole folder), rlm, dialectic, apex or io-log."
    ),
    ident: str = option("--id ID", "Only this conversation, even if it was deleted here."),
    dry_run: bool = option("--dry-run", "Show what would be imported, change nothing."),
) -> Answer:
    """Import older conversations.

    Conversations that are already in the store do not change, so you can import again at any time. --from claude DIR
    imports a folder like ~/.claude from anywhere, with plans, todos and tasks. Archived conversations stay archived,
    and deleted ones stay deleted unless --id names them. If the lines of a file name no session, the file name is its
    id; of two such files with the same name, the second is skipped.

    --from rlm, dialectic, apex or io-log DIR imports the sessions of another system, reports what became of each of its
    files, and changes none of them. `sessgit undo` reverts the whole import.
    """
    from sessgit.exchange import systems
    from sessgit.record import imports

    if ident and len(ident) < _SHORTEST_ID:
        raise UsageError(
            f"“{ident}” is too short for an id.", "`sessgit import --id ID [PATH]` imports one conversation."
        )
    if source in systems.MODULES:
        return _import_system(here, source, paths, dry_run=dry_run)
    if source and source not in imports.SOURCES:
        known = sorted({*imports.SOURCES, *systems.MODULES})
        raise UsageError(f"cannot import from “{source}”", f"SYSTEM is one of {', '.join(known)}.")
    import_all = imports.SOURCES[source] if source else imports.run_import
    if not here.has_store:
        privacy.check_on(off=here.env.off)
        if not paths and next(agents.transcripts(here.env.homes), None) is None:
            folders = " or ".join(sorted(map(here.short, here.env.homes.folders.values())))
            raise NotFoundError(
                f"there is nothing to import: no conversations in {folders}",
                "`sessgit install` starts recording, `sessgit import PATH` imports other transcripts.",
            )
        if not dry_run:
            here.create_store()
    with (
        _scratch_context(here) if dry_run else _count_if_interrupted(here) as context,
        render.progress(here, "Importing") as reading,
        render.progress(here, "Packing", unit="objects") as packing,
    ):
        progress = imports.ImportProgress(reading, packing)
        result = imports.import_one(context, ident, paths, progress) if ident else import_all(context, paths, progress)
    if result.turns and not dry_run:
        _index_and_pack(here)
    if result.unpacked:
        render.tell(f"Cannot pack the store: {result.unpacked}")
    document = {
        **frame.attributes(result, "sessions", "turns", "unchanged", "excluded", "archived"),
        "deleted": len(result.deleted),
        **frame.attributes(result.passed_over, "links", "empty", "subagents", "plans"),
        "dry_run": dry_run,
        "errors": [frame.attributes(failure, "path", "reason") for failure in result.errors],
    }
    page = _page(here, result, has_paths=bool(paths), dry_run=dry_run)
    lines = (part for line in page for part in text.wrap(line, here.width))
    return Answer(document, lines, _failures(here, result), int(bool(result.errors)))


def _import_system(here: Invocation, system: str, paths: list[Path], *, dry_run: bool) -> Answer:
    from sessgit.api.store import Store
    from sessgit.cli.pages import import_report as page
    from sessgit.exchange import systems
    from sessgit.record import imports

    if len(paths) != 1:
        raise UsageError(f"--from {system} needs exactly one folder.", f"`sessgit import --from {system} DIR`")
    privacy.check_on(off=here.env.off)
    if not dry_run:
        here.create_store()
    store = Store(here.env.store, here.env.homes, here.env.home, off=here.env.off, now=lambda: here.now)
    with render.exit_on_signals(), render.progress(here, "Importing", unit="conversations") as progress:
        result = systems.import_folder(store, system, paths[0], progress, dry_run=dry_run)
    if result.report.operation:
        unpacked = imports.pack_import(here.store)
        if unpacked:
            render.tell(f"Cannot pack the store: {unpacked}")
        _index_and_pack(here)
    remarks = (f"{path}: {reason}" for path, reason in (result.errors if here.json else result.refused))
    lines = page.full(here, result, dry_run=dry_run)
    return Answer(lambda: page.as_json(result, dry_run=dry_run), lines, remarks, int(bool(result.errors)))


def _index_and_pack(here: Invocation) -> None:
    """Make the new turns searchable and pack the store again: in the background if there is much of it."""
    from sessgit.store import maintenance

    if maintenance.start_repack(here.env.store, os.environ):
        return
    with render.progress(here, "Indexing", unit="conversations") as progress:
        problem = search.update_fulltext(here.index, progress)
    if problem:
        render.tell(f"({problem})")


@contextmanager
def _scratch_context(here: Invocation) -> Iterator[Context]:
    """Yield a context with a scratch store that has what the store has, if there is one."""
    from sessgit.record import scratch_store
    from sessgit.store.index import Index

    other = here.env.store if here.has_store else None
    with scratch_store.scratch_store(other) as scratch, closing(Index(scratch.path, lambda: scratch)) as index:
        yield Context(index, here.env.homes, here.privacy, os.environ, lambda: here.now, here.settings.prices)


@contextmanager
def _count_if_interrupted(here: Invocation) -> Iterator[Context]:
    before = refs.read_all(here.env.store, layout.HEADS)
    try:
        yield here.context
    except KeyboardInterrupt:
        after = refs.read_all(here.env.store, layout.HEADS)
        names = {layout.session_of(ref.removeprefix(layout.HEADS)) for ref in after if after[ref] != before.get(ref)}
        render.tell(f"Interrupted: {text.counted(len(names), 'conversation')} imported. Run import again to continue.")
        raise


def _failures(here: Invocation, result: ImportResult) -> Iterator[str]:
    """Say which files could not be imported; a path is never broken."""
    for failure in result.errors:
        path, reason = here.short(failure.path), text.clean(failure.reason).replace(f" {failure.path}", "")
        if text.width(path) + 2 + text.width(reason) <= here.width:
            yield f"{path}: {reason}"
        else:
            yield f"{path}:"
            yield from (f"  {line}" for line in text.wrapped(reason, here.width - 2))


def _page(here: Invocation, result: ImportResult, *, has_paths: bool, dry_run: bool) -> Iterator[str]:
    imported = "would be imported" if dry_run else "imported"
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
        names = map(here.ident, result.deleted) if len(result.deleted) <= _NAMED_SESSIONS else ["ID"]
        again = f"sessgit import --id {' or '.join(names)}"
        skipped = f"{text.counted(len(result.deleted), 'conversation')} skipped, deleted here before:"
        yield from text.fold([skipped, again], here.width, " ", "  ")
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
        yield from text.fold([skipped, why], here.width, " ", "  ")
    if skips.plans:
        count = f"{text.counted(len(skips.plans), 'plan')} skipped, named in no conversation:"
        yield from text.fold([count, *map(text.clean, text.some(skips.plans, _NAMED_PLANS))], here.width, " ", "  ")


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
