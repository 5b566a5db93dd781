"""`sessgit verify`: what is stored, held against every promise of the format."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import frame, render, session_argument
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation


@frame.command("verify", needs="store")
def run(
    here: Invocation,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="SESSION (default: the whole store).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    deep: Annotated[bool, typer.Option("--deep", help="Also hash every object and cut every file again.")] = False,
) -> Answer:
    """Check the store for damage.

    Checks that turns are numbered without gaps; that commits, cells and counts match the lines; that each commit
    changes only what its event may change; that merges and joins follow from their two sides; that lines have the
    hashes that were taken when they were recorded; and that refs, tags and what is kept for undo point where they
    should. Changes nothing. Each finding says where it is and what to do next; a note means that no recorded data is
    lost. Exit code 6 if anything is damaged or wrong.

    --deep also lets git read and hash every object, cuts every transcript into turns again, and compares titles and
    other derived values, the indexes, the client's own files, the places of subagents' files, and the proofs of
    redacted lines with the store.
    """
    from sessgit.check import verify
    from sessgit.cli.pages import verify as page
    from sessgit.errors import DamageError
    from sessgit.store import layout

    session = layout.session_of(session_argument.branch(here, address)) if address else ""
    if session:
        found = verify.one(here.store, session, deep=deep)
    else:
        with render.progress(here, "Checking", unit="turns") as progress:
            found = verify.everything(here.store, here.index, progress, deep=deep)
    if deep:
        with render.progress(here, "Hashing", unit="objects") as progress:
            found = verify.every_object(here.store, found, progress)
    return Answer(
        lambda: page.as_json(found, address=session, deep=deep),
        page.full(here, found, deep=deep),
        exit_code=DamageError.exit_code if not found.is_sound else 0,
    )
