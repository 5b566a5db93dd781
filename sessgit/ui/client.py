"""Handing over to the client."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from sessgit.errors import NotFoundError
from sessgit.model.session import Session

PROGRAM = "claude"


def resume(state: Session, cwd: str, prompt: str = "") -> NoReturn:
    """Becomes the client, continuing the session in the folder of its project, with a first prompt if one is given."""
    folder = state.project or cwd
    try:
        os.chdir(folder)
    except OSError as error:
        raise NotFoundError(
            f"the project's folder cannot be entered: {folder}: {error.strerror}",
            "The client finds a conversation only from the folder in which it was held.",
        ) from error
    sys.stdout.flush()
    try:
        os.execvp(PROGRAM, [PROGRAM, "--resume", state.agent_id, *([prompt] if prompt else [])])
    except OSError as error:
        raise NotFoundError(
            f"{PROGRAM} cannot be started: {error.strerror}",
            f"Where it is installed: {PROGRAM} --resume {state.agent_id}",
        ) from error
