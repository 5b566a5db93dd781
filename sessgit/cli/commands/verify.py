"""`sessgit verify`: what is stored, held against every promise of the format."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import invocation, render, session_argument
from sessgit.cli.arguments import completion, options


def run(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="SESSION; the whole store if left out.",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    deep: Annotated[bool, typer.Option("--deep", help="Hash every object, cut every file once more.")] = False,
    as_json: options.Json = False,
) -> None:
    """Check that nothing stored is damaged.

    Turns are numbered without gaps; what stands in commits, cells and counts is what the lines say; commits change what
    their event may change; merges and joins are what their two sides make of them; lines have the hashes that were
    taken when they were recorded; refs lead where they should, also tags and what is kept for undo. Nothing is changed.
    Each finding says where it is and what to do next, and leaves all other conversations as they are; a note costs
    nothing that was recorded. Exit code 6 if anything is damaged or wrong.

    --deep has git read and hash every object, lays every transcript out to cut it into turns once more, and holds the
    title and what else its lines say, the indexes, and the client's own files against what is stored: where the files
    of subagents belong, and the proofs of words that were redacted.
    """
    from sessgit.check import verify
    from sessgit.cli.pages import verify as page
    from sessgit.errors import DamageError
    from sessgit.store import layout

    here = invocation.read()
    here.check_store()
    session = layout.session_of(session_argument.branch(here, address)) if address else ""
    if session:
        found = verify.one(here.store, session, deep=deep)
    else:
        with render.progress(here, "Checking", unit="turns") as progress:
            found = verify.everything(here.store, here.index, progress, deep=deep)
    if deep:
        with render.progress(here, "Hashing", unit="objects") as progress:
            found = verify.every_object(here.store, found, progress)
    if as_json:
        render.document("verify/v1", page.as_json(found, address=session, deep=deep))
    else:
        render.lines(here, page.full(here, found, deep=deep))
    if not found.is_sound:
        raise typer.Exit(DamageError.exit_code)
