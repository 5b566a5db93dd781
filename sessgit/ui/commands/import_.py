"""`sessgit import`: conversations that nobody recorded while they were held."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sessgit.ui import context, options, render, text


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

    here = context.read()
    if not here.has_store:
        stores.create(here.store_path)
    with render.progress(here, "Importing") as progress:
        done = importing.run(here.store, here.index, paths or [], here.config, progress)
    if as_json:
        errors = [{"path": str(failure.path), "reason": failure.reason} for failure in done.errors]
        counts = {"sessions": done.sessions, "turns": done.turns, "unchanged": done.unchanged}
        render.document("import/v1", {**counts, "errors": errors})
        return
    for failure in done.errors:
        render.tell(f"{here.short(failure.path)}: {failure.reason}")
    brought = f"{text.counted(done.sessions, 'conversation')}, {text.counted(done.turns, 'turn')} brought in"
    unread = f"; {text.counted(len(done.errors), 'file')} could not be read" if done.errors else ""
    render.write(f"{brought}; {done.unchanged:,} were here already{unread}\n")
