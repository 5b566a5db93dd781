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
    as_json: options.Json = False,
) -> None:
    """Bring in older conversations.

    What is here already is left as it is: importing again changes nothing.
    """
    from sessgit.ops import importing
    from sessgit.store import store as stores
    from sessgit.store.store import Store

    here = context.read()
    if not here.has_store:
        stores.create(here.store_path)
    # Not flushed object by object: the transcripts are still there, and importing again finishes the work.
    store = Store(here.store_path)
    with render.progress(here, "Importing") as progress:
        done = importing.run(store, here.index, paths or [], here.config, here.settings.record, progress)
    if done.unpacked:
        render.tell(f"The store could not be packed: {done.unpacked}")
    if as_json:
        errors = [{"path": str(failure.path), "reason": failure.reason} for failure in done.errors]
        counts = {"sessions": done.sessions, "turns": done.turns, "unchanged": done.unchanged}
        render.document("import/v1", {**counts, "errors": errors})
    else:
        render.lines(here, _told(here, done))
    if done.errors:
        raise typer.Exit(1)


def _told(here: context.Context, done: Imported) -> Iterator[str]:
    for failure in done.errors:
        render.tell(f"{here.short(failure.path)}: {failure.reason}")
    brought = f"{text.counted(done.sessions, 'conversation')}, {text.counted(done.turns, 'turn')} brought in"
    unread = f"; {text.counted(len(done.errors), 'file')} could not be read" if done.errors else ""
    yield f"{brought}; {done.unchanged:,} were here already{unread}"
