"""`sessgit on`, `sessgit off`: whether a project is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessgit.cli import frame, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.check.status import Recording
    from sessgit.record.privacy import SwitchResult


@frame.command("on", needs="store")
def on(
    here: Invocation,
    folder: options.Folder = "",
) -> Answer:
    """Record a project again after `sessgit off`.

    Turns from the meantime are recorded with the next turn of their conversation, or by `sessgit import`.
    """
    from sessgit.check import status
    from sessgit.record import privacy
    from sessgit.store.layout import StorePaths

    done = privacy.switch_on(StorePaths(here.store_path), here.folder(folder), str(here.home))
    recording = status.recording(here.store_path, here.config)
    return Answer(
        lambda: {"project": done.project, "recorded": recording.on, "changed": done.changed},
        _on_lines(here, done, recording),
    )


def _on_lines(here: Invocation, done: SwitchResult, recording: Recording) -> Iterator[str]:
    project = here.shown(done.project)
    if done.changed:
        yield f"On: {project} is recorded from now on."
        yield "Turns from the meantime are recorded with the next turn, or by sessgit import."
    else:
        yield f"{project} is already on."
    if not recording.on:
        yield f"But nothing is recorded: {recording.why}"


@frame.command("off")
def off(
    here: Invocation,
    folder: options.Folder = "",
) -> Answer:
    """Stop recording a project.

    The project is the git repository of DIR with all its worktrees, or else DIR itself, with all subfolders. What is
    already recorded stays. The setting record.exclude lists the projects that are off; it also takes globs.
    """
    from sessgit.record import privacy
    from sessgit.store.layout import StorePaths

    here.create_store()
    done = privacy.switch_off(StorePaths(here.store_path), here.folder(folder), str(here.home))
    kept = len(privacy.recorded_sessions(here.index, done.project))
    value: dict[str, object] = {"project": done.project, "recorded": False, "changed": done.changed, "sessions": kept}
    return Answer(lambda: value, _off_lines(here, done, kept))


def _off_lines(here: Invocation, done: SwitchResult, kept: int) -> Iterator[str]:
    project = here.shown(done.project)
    if done.changed:
        yield f"Off: {project} is no longer recorded (undo: sessgit on)."
    else:
        yield f"{project} is already off (record.exclude has “{here.shown(done.glob)}”)."
    if kept:
        yield f"{text.counted(kept, 'recorded conversation')} {'stays' if kept == 1 else 'stay'} in the store."
