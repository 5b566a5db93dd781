"""`sessgit recover`: conversations whose client was killed."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sessgit.ui import context, render
from sessgit.ui.arguments import options


def run(
    everything: Annotated[bool, typer.Option("--all", help="Those of every project.")] = False,
    as_json: options.Json = False,
) -> None:
    """Find the conversations whose client is gone, and go on with them.

    A client that was killed tells nobody. What its transcript still holds is recorded, the conversation counts as
    interrupted or ended from then on, and the command that goes on with it is shown. No process is touched, and a
    conversation that a client has open is left alone.
    """
    from sessgit.ops import recover
    from sessgit.ui.pages import recover as page

    here = context.read()
    here.check_recorded()
    folder = None if everything else here.cwd
    done = recover.recover(lambda: here.store, here.index, here.config, here.privacy, folder, time.time())
    if as_json:
        render.document("recover/v1", page.as_json(here, done))
    else:
        for failure in done.errors:
            render.tell(f"{here.ident(failure.session)}: {failure.reason}")
        render.lines(here, page.full(here, done))
