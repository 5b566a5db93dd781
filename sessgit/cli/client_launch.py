"""Handing over to the client."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from sessgit.cli.invocation import Invocation
from sessgit.errors import NotFoundError
from sessgit.model.conversation.session import Session

PROGRAM = "claude"


def way_on(here: Invocation, state: Session, command: str) -> str:
    """How a session is continued, by the command for it; in a folder that is gone the client cannot be started."""
    from sessgit.history import client_files

    if client_files.is_folder_gone(state.project):
        return f"Continue it in another folder:  sessgit fork {here.ident(state.id)} --project DIR"
    return f"Continue it:  {command}"


def resume(state: Session, cwd: str, prompt: str = "") -> NoReturn:
    """Becomes the client, continuing the session in the folder of its project, with a first prompt if one is given."""
    from sessgit.branch import fork
    from sessgit.model import humanize

    folder = state.project or cwd
    try:
        os.chdir(folder)
    except OSError as error:
        raise NotFoundError(
            f"cannot enter the project's folder {folder}: {error.strerror}",
            "The client finds a conversation only from its own folder.",
        ) from error
    sys.stdout.flush()
    named = fork.resume_id(state)
    try:
        os.execvp(PROGRAM, [PROGRAM, "--resume", named, *([prompt] if prompt else [])])
    except OSError as error:
        raise NotFoundError(
            f"cannot start {PROGRAM}: {error.strerror}",
            f"Install the client, then run `{PROGRAM} --resume {humanize.quote_for_shell(named)}`.",
        ) from error
