"""`sessgit on`: a project that is recorded again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessgit.cli import invocation, render
from sessgit.cli.arguments import options

if TYPE_CHECKING:
    from sessgit.check.status import Recording
    from sessgit.record.privacy import Switched


def run(
    folder: options.Folder = "",
    as_json: options.Json = False,
) -> None:
    """Record a project again after `sessgit off`.

    Turns from the meantime are recorded with the next turn of their conversation, or by `sessgit import`.
    """
    from sessgit.check import status
    from sessgit.record import privacy
    from sessgit.store.layout import StorePaths

    here = invocation.read()
    here.check_store()
    done = privacy.switch_on(StorePaths(here.store_path), here.folder(folder), str(here.home))
    recording = status.recording(here.store_path, here.config)
    if as_json:
        render.document("on/v1", {"project": done.project, "recorded": recording.on, "changed": done.changed})
    else:
        render.lines(here, _told(here, done, recording))


def _told(here: invocation.Invocation, done: Switched, recording: Recording) -> Iterator[str]:
    project = here.shown(done.project)
    if done.changed:
        yield f"On: {project} is recorded from now on."
        yield "Turns from the meantime are recorded with the next turn, or by sessgit import."
    else:
        yield f"{project} is already on."
    if not recording.on:
        yield f"But nothing is recorded: {recording.why}"
