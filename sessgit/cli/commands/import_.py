"""`sessgit import`: conversations that nobody recorded while they were held."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.record.bulk.families import ImportFailure
    from sessgit.record.imports import ImportResult

_FEW = 3
"""So many ids are named."""
_SHORTEST = 4
"""Characters of an id that are enough."""


@frame.command("import")
def run(
    here: Invocation,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Transcripts or folders (default: all of the client's).",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SYSTEM",
            help="The files' origin: claude (a whole folder), rlm, dialectic, apex or io-log.",
            show_default=False,
        ),
    ] = "",
    ident: Annotated[
        str,
        typer.Option(
            "--id", metavar="ID", help="Only this conversation, even if it was deleted here.", show_default=False
        ),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported from another system.")
    ] = False,
) -> Answer:
    """Import older conversations.

    Conversations that are already in the store do not change, so you can import again at any time. --from claude DIR
    imports a folder like ~/.claude from anywhere, with plans, todos and tasks. Archived conversations stay archived,
    and deleted ones stay deleted unless --id names them. If the lines of a file name no session, the file name is its
    id; of two such files with the same name, the second is skipped.

    --from rlm, dialectic, apex or io-log DIR imports the sessions of another system, reports what became of each of its
    files, and changes none of them. `sessgit undo` reverts the whole import.
    """
    from sessgit.errors import UsageError
    from sessgit.exchange import systems
    from sessgit.record import imports
    from sessgit.store.packing import background_repack

    if ident and (source or len(ident) < _SHORTEST):
        wrong = "--id and --from cannot be combined." if source else f"“{ident}” is too short for an id."
        raise UsageError(wrong, "`sessgit import --id ID [PATH]` imports one conversation.")
    if source in systems.SYSTEMS:
        return _bring(here, source, paths or [], dry_run=dry_run)
    if dry_run:
        raise UsageError(
            "--dry-run works only with another system's files.",
            f"Use it with --from {', '.join(sorted(systems.SYSTEMS))}.",
        )
    if source and source not in imports.SOURCES:
        there = sorted({*imports.SOURCES, *systems.SYSTEMS})
        raise UsageError(f"cannot import from “{source}”", f"SYSTEM is one of {', '.join(there)}.")
    bring_in = imports.SOURCES[source] if source else imports.run_import
    if not here.has_store:
        _make_store(here, named=bool(paths))
    store = here.store
    with (
        _told_if_interrupted(here),
        render.progress(here, "Importing") as reading,
        render.progress(here, "Packing", unit="objects") as packing,
    ):
        world = (paths or [], here.config, here.privacy, imports.ImportProgress(reading, packing))
        if ident:
            done = imports.import_one(store, here.index, ident, *world, here.now)
        else:
            done = bring_in(store, here.index, *world)
    if done.turns:
        _index(here)
        background_repack.start_repack(here.store_path, os.environ)
    if done.unpacked:
        render.tell(f"Cannot pack the store: {done.unpacked}")
    told = _told(here, done, in_folders=bool(paths))
    lines = (folded for line in told for folded in text.wrap(line, here.width))
    return Answer(lambda: _json(done), lines, exit_code=int(bool(done.errors)))


def _make_store(here: Invocation, *, named: bool) -> None:
    """Makes the store; raises NotFoundError where nothing would come into it: no files were named, and the client has
    none."""
    from sessgit import agents
    from sessgit.errors import NotFoundError
    from sessgit.record import privacy
    from sessgit.store import store as stores

    privacy.check_on(off=here.off)
    if not named and next(agents.at(here.config).home.transcripts(here.config), None) is None:
        raise NotFoundError(
            f"there is nothing to import: the client has no conversations in {here.short(here.config)}",
            "`sessgit install` starts recording, `sessgit import PATH` imports other transcripts.",
        )
    stores.create_store(here.store_path)


def _index(here: Invocation) -> None:
    """Makes what came in searchable, and says why some of it is not yet."""
    from sessgit.history import search

    with render.progress(here, "Indexing", unit="conversations") as progress:
        behind = search.update_fulltext(here.index, progress)
    if behind:
        render.tell(f"({behind})")


def _bring(here: Invocation, system: str, paths: list[Path], *, dry_run: bool) -> Answer:
    """Brings in the sessions of another system, or says what that would do."""
    from sessgit.cli.pages import import_report as page
    from sessgit.errors import UsageError
    from sessgit.exchange import incoming
    from sessgit.record import imports, privacy
    from sessgit.store import store as stores
    from sessgit.store.packing import background_repack

    if len(paths) != 1:
        raise UsageError(f"--from {system} needs exactly one folder.", f"`sessgit import --from {system} DIR`")
    privacy.check_on(off=here.off)
    if not here.has_store and not dry_run:
        stores.create_store(here.store_path)
    store = here.store_path if here.has_store else None
    with render.leaving_in_order(), render.progress(here, "Importing", unit="conversations") as progress:
        world = (here.config, here.privacy, here.now, progress)
        done = incoming.run_import(store, system, paths[0], *world, dry_run=dry_run)
    if done.operation:
        unpacked = imports.pack_import(here.store)
        if unpacked:
            render.tell(f"Cannot pack the store: {unpacked}")
        _index(here)
        background_repack.start_repack(here.store_path, os.environ)
    remarks = (f"{what}: {why}" for what, why in (done.errors if here.json else done.refused))
    lines = page.full(here, done, dry_run=dry_run)
    return Answer(lambda: page.as_json(done, dry_run=dry_run), lines, remarks, int(bool(done.errors)))


@contextmanager
def _told_if_interrupted(here: Invocation) -> Iterator[None]:
    """Says how many came in when a person ends an import, and how it goes on."""
    from sessgit.store import layout, refs

    before = refs.read_all(here.store_path, layout.HEADS)
    try:
        yield
    except KeyboardInterrupt:
        after = refs.read_all(here.store_path, layout.HEADS)
        names = {layout.session_of(ref.removeprefix(layout.HEADS)) for ref in after if after[ref] != before.get(ref)}
        render.tell(f"Interrupted: {text.counted(len(names), 'conversation')} imported. Run import again to continue.")
        raise


def _json(done: ImportResult) -> dict[str, object]:
    return {
        "sessions": done.sessions, "turns": done.turns, "unchanged": done.unchanged, "excluded": done.excluded,
        "archived": done.archived, "deleted": len(done.deleted), "links": done.passed_over.links,
        "empty": done.passed_over.empty, "subagents": done.passed_over.subagents,
        "errors": [{"path": str(failure.path), "reason": failure.reason} for failure in done.errors],
    }  # fmt: skip


def _failed(here: Invocation, failure: ImportFailure) -> list[str]:
    """The path, which is never broken, and why; a long reason stands under it."""
    path, why = here.short(failure.path), text.clean(failure.reason).replace(f" {failure.path}", "")
    if text.width(path) + 2 + text.width(why) <= here.width:
        return [f"{path}: {why}"]
    return [f"{path}:", *(f"  {line}" for line in text.wrapped(why, here.width - 2))]


def _told(here: Invocation, done: ImportResult, *, in_folders: bool) -> Iterator[str]:
    for failure in done.errors:
        for line in _failed(here, failure):
            render.tell(line)
    brought = f"{text.counted(done.sessions, 'conversation')}, {text.counted(done.turns, 'turn')} imported"
    unbrought = f"; {text.counted(len(done.errors), 'file')} could not be imported" if done.errors else ""
    there = (
        f"; {done.unchanged:,} {'was' if done.unchanged == 1 else 'were'} already imported" if done.unchanged else ""
    )
    yield f"{brought}{there}{unbrought}"
    if done.archived:
        count = "conversation has" if done.archived == 1 else "conversations have"
        yield f"{done.archived:,} archived {count} new turns: sessgit unarchive"
    if done.deleted:
        few = done.deleted if len(done.deleted) <= _FEW else ()
        left = f"{text.counted(len(done.deleted), 'conversation')} skipped, deleted here before:"
        again = f"sessgit import --id {' or '.join(map(here.ident, few)) or 'ID'}"
        yield from text.fold([left, again], here.width, " ", "  ")
    if done.excluded:
        left = "was" if done.excluded == 1 else "were"
        yield f"{text.counted(done.excluded, 'conversation')} of projects that are off {left} skipped"
    alone = [(done.passed_over.links, "link"), (done.passed_over.empty * in_folders, "empty file")]
    told = [text.counted(count, what) for count, what in alone if count]
    if told:  # the client leaves empty files in its own folder, which are nobody's business
        yield f"{' and '.join(told)} skipped"
    if done.passed_over.subagents and in_folders:
        left = f"{text.counted(done.passed_over.subagents, 'subagent file')} skipped:"
        why = "the client keeps them in ID/subagents/ next to the transcript ID.jsonl"
        yield from text.fold([left, why], here.width, " ", "  ")
