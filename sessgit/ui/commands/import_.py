"""`sessgit import`: conversations that nobody recorded while they were held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.ui import context, options, render, text

if TYPE_CHECKING:
    from sessgit.ops.importing import Imported


def run(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Transcripts, or folders with transcripts; all of the client's if left out.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str,
        typer.Option("--from", metavar="SYSTEM", help="Whose files they are; claude: its whole folder, from anywhere."),
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Bring in older conversations.

    What is here already is left as it is: importing again changes nothing. --from claude DIR takes a folder like
    ~/.claude that lies anywhere, with plans, todos and tasks.
    """
    from sessgit.agents.claude import home
    from sessgit.errors import NotFoundError
    from sessgit.ops import importing, search
    from sessgit.store import store as stores
    from sessgit.store.store import Store

    here = context.read()
    bring_in = importing.source_named(source) if source else importing.run
    if not here.has_store:
        if not paths and next(home.transcripts(here.config), None) is None:
            raise NotFoundError(
                f"there is nothing to bring in: the client keeps no conversation in {here.short(here.config)}",
                "sessgit install records from now on, sessgit import PATH brings in transcripts from elsewhere.",
            )
        stores.create(here.store_path)
    # Not flushed object by object: the transcripts are still there, and importing again finishes the work.
    store = Store(here.store_path)
    with render.progress(here, "Importing") as progress:
        done = bring_in(store, here.index, paths or [], here.config, here.privacy, progress)
    with render.progress(here, "Indexing", unit="conversations") as progress:
        behind = search.follow(here.index, progress) if done.turns else ""
    if behind:
        render.tell(f"({behind})")
    if done.unpacked:
        render.tell(f"The store could not be packed: {done.unpacked}")
    if as_json:
        errors = [{"path": str(failure.path), "reason": failure.reason} for failure in done.errors]
        counts = {"sessions": done.sessions, "turns": done.turns, "unchanged": done.unchanged}
        render.document("import/v1", {**counts, "excluded": done.excluded, "errors": errors})
    else:
        render.lines(here, _told(here, done))
    if done.errors:
        raise typer.Exit(1)


def _told(here: context.Context, done: Imported) -> Iterator[str]:
    for failure in done.errors:
        render.tell(f"{here.short(failure.path)}: {failure.reason}")
    brought = f"{text.counted(done.sessions, 'conversation')}, {text.counted(done.turns, 'turn')} brought in"
    unread = f"; {text.counted(len(done.errors), 'file')} could not be read" if done.errors else ""
    there = f"; {done.unchanged:,} {'was' if done.unchanged == 1 else 'were'} here already" if done.unchanged else ""
    yield f"{brought}{there}{unread}"
    if done.excluded:
        left = "was" if done.excluded == 1 else "were"
        yield f"{text.counted(done.excluded, 'conversation')} of projects that are off {left} left out"
