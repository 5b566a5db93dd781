"""`sessgit recover`: conversations whose client was killed."""

from __future__ import annotations

import math
import time
from typing import Annotated

import typer

from sessgit.cli import frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

_STEP = 0.1


@frame.command("recover", needs="store")
def run(
    here: Invocation,
    everything: Annotated[bool, typer.Option("--all", help="Search all projects.")] = False,
) -> Answer:
    """Find conversations whose client was killed.

    Records what their transcripts still hold, marks them as interrupted or ended, and prints the command that continues
    each one. This includes a conversation that was killed in its first turn, before anything was recorded: a transcript
    written since `sessgit install` that ends without an answer. Other missing conversations need `sessgit import`. If a
    file was written seconds ago, recover waits for it. It stops no process, and skips conversations that are open in a
    client.
    """
    from sessgit.check import recover
    from sessgit.cli.pages import recover as page

    folder = None if everything else here.cwd
    done = recover.recover(
        lambda: here.store, here.index, here.config, here.privacy, folder, clock=time.time,
        wait=lambda seconds: _wait(here, seconds),
    )  # fmt: skip
    failures = () if here.json else done.errors
    remarks = (f"{here.ident(failure.session)}: {failure.reason}" for failure in failures)
    return Answer(lambda: page.as_json(here, done), page.full(here, done), remarks)


def _wait(here: Invocation, seconds: float) -> None:
    """Waits until files are at rest, which a terminal is told."""
    ends = time.monotonic() + seconds
    with render.progress(here, "waiting for files that were just written", unit="seconds") as told:
        while (left := ends - time.monotonic()) > 0:
            told(int(seconds - left), math.ceil(seconds))
            time.sleep(min(left, _STEP))
