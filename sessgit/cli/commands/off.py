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
    """Stop recording a project.

    The project is the git repository of DIR with all its worktrees, or else DIR itself, with all subfolders. What is
    already recorded stays. The setting record.exclude lists the projects that are off; it also takes globs.
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
        yield f"Off: {project} is no longer recorded (undo: sessgit on)."
    else:
        yield f"{project} is already off (record.exclude has “{here.shown(done.glob)}”)."
    if kept:
        yield f"{text.counted(kept, 'recorded conversation')} {'stays' if kept == 1 else 'stay'} in the store."
