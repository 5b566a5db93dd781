"""`sessgit doctor`: whether everything works, and what to do where it does not."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.store.index import Index


@frame.command("doctor")
def run(
    here: Invocation,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what can be fixed without losing anything.")] = False,
) -> Answer:
    """Check that recording works.

    Checks hooks and settings, waiting events, indexes, locks, leftovers of killed commands, permissions of the store,
    transcripts that the client will soon delete, the disk, packing, git, remotes, the clock, and errors in the log.
    Each finding says what to do. --fix does what loses nothing, and says what it did. Exit code 1 if anything is wrong.
    """
    from sessgit.check import doctor
    from sessgit.check.doctoring.context import Patient
    from sessgit.cli.pages import doctor as page
    from sessgit.errors import SessgitError
    from sessgit.model.config import RecordConfig
    from sessgit.record.privacy import Privacy

    index, why = _opened(here)
    try:
        privacy = here.privacy
    except SessgitError:  # the settings are wrong, which is told
        privacy = Privacy(RecordConfig(), str(here.home), here.off)
    patient = Patient(
        here.store_path, here.config, here.home, privacy, index, dict(os.environ), sys.executable, here.now, why
    )
    found = doctor.examine(patient, fix=fix)
    return Answer(lambda: page.as_json(found), page.full(here, found), exit_code=1 if not found.is_sound else 0)


def _opened(here: Invocation) -> tuple[Index | None, str]:
    """The index of the store, if there is one that can be opened; else why not."""
    from sessgit.errors import SessgitError

    try:
        if not here.has_store:
            return None, ""
        return here.index if here.store else None, ""
    except SessgitError as error:
        return None, str(error)
