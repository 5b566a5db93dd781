"""`sessgit recover`: conversations whose client was killed."""

from __future__ import annotations

import math
import time
from typing import Annotated

import typer

from sessgit.cli import invocation, render
from sessgit.cli.arguments import options

_STEP = 0.1


def run(
    everything: Annotated[bool, typer.Option("--all", help="Those of every project.")] = False,
    as_json: options.Json = False,
) -> None:
    """Find the conversations whose client is gone, and go on with them.

    A client that was killed tells nobody. What its transcript still holds is recorded, the conversation counts as
    interrupted or ended from then on, and the command that goes on with it is shown. So is one that was killed in its
    first turn, when nothing was recorded yet: a transcript since sessgit install that ends without an answer. Any other
    that is missing, sessgit import brings in. A file that was written seconds ago is waited for. No process is touched,
    and a conversation that a client has open is left alone.
    """
    from sessgit.check import recover
    from sessgit.cli.pages import recover as page

    here = invocation.read()
    here.check_store()
    folder = None if everything else here.cwd
    done = recover.recover(
        lambda: here.store, here.index, here.config, here.privacy, folder, clock=time.time,
        wait=lambda seconds: _wait(here, seconds),
    )  # fmt: skip
    if as_json:
        render.document("recover/v1", page.as_json(here, done))
    else:
        for failure in done.errors:
            render.tell(f"{here.ident(failure.session)}: {failure.reason}")
        render.lines(here, page.full(here, done))


def _wait(here: invocation.Invocation, seconds: float) -> None:
    """Waits until files are at rest, which a terminal is told."""
    ends = time.monotonic() + seconds
    with render.progress(here, "waiting until what was just written is at rest", unit="seconds") as told:
        while (left := ends - time.monotonic()) > 0:
            told(int(seconds - left), math.ceil(seconds))
            time.sleep(min(left, _STEP))
