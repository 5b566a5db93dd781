"""`sessgit off`: a project that is recorded no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessgit.cli import invocation, render, text
from sessgit.cli.arguments import options

if TYPE_CHECKING:
    from sessgit.record.privacy import Switched


def run(
    folder: options.Folder = "",
    as_json: options.Json = False,
) -> None:
    """Record nothing of a project from now on.

    The project is the git repository of the folder with all its worktrees, or the folder itself, and all below it.
    What is recorded already stays. sessgit config record.exclude holds what is off, and takes globs too.
    """
    from sessgit.record import privacy
    from sessgit.store.layout import StorePaths

    here = invocation.read()
    here.create_store()
    done = privacy.switch_off(StorePaths(here.store_path), here.folder(folder), str(here.home))
    kept = len(privacy.recorded_of(here.index, done.project))
    if as_json:
        value = {"project": done.project, "recorded": False, "changed": done.changed, "sessions": kept}
        render.document("off/v1", value)
    else:
        render.lines(here, _told(here, done, kept))


def _told(here: invocation.Invocation, done: Switched, kept: int) -> Iterator[str]:
    project = here.shown(done.project)
    if done.changed:
        yield f"Off: nothing of {project} is recorded from now on (undo: sessgit on)."
    else:
        yield f"{project} is off already (record.exclude has “{here.shown(done.glob)}”)."
    if kept:
        yield f"What is recorded already stays: {text.counted(kept, 'conversation')}."
