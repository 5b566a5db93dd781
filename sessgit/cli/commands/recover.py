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
    everything: Annotated[bool, typer.Option("--all", help="Search all projects.")] = False,
    as_json: options.Json = False,
) -> None:
    """Find conversations whose client was killed.

    Records what their transcripts still hold, marks them as interrupted or ended, and prints the command that continues
    each one. This includes a conversation that was killed in its first turn, before anything was recorded: a transcript
    written since `sessgit install` that ends without an answer. Other missing conversations need `sessgit import`. If a
    file was written seconds ago, recover waits for it. It stops no process, and skips conversations that are open in a
    client.
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
    with render.progress(here, "waiting for files that were just written", unit="seconds") as told:
        while (left := ends - time.monotonic()) > 0:
            told(int(seconds - left), math.ceil(seconds))
            time.sleep(min(left, _STEP))
