"""What commands say of the client's files, and how a conversation is continued in the client."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from sessgit import agents
from sessgit.agents.values import KINDS
from sessgit.cli import frame, text
from sessgit.cli.invocation import Invocation
from sessgit.errors import NotFoundError
from sessgit.history import client_files
from sessgit.model import humanize
from sessgit.model.conversation.session import Session

if TYPE_CHECKING:
    from sessgit.branch.sidecars import WrittenFile


def continuation(cli: Invocation, state: Session) -> tuple[str, str]:
    """Return the command that continues a session in the client, "" if its folder is gone, and a line that says how."""
    state = client_files.localize_state(state, cli.local_path)
    if client_files.is_folder_gone(state.project):
        return "", f"Its folder is gone. Continue it in another:  sessgit fork {cli.ident(state.id)} --project DIR"
    command = client_files.resume_command(state, cli.cwd)
    return command, f"Continue it:  {command}"


def start_client(state: Session, cwd: str, prompt: str = "") -> NoReturn:
    """Replace this process by the client, which continues the session in its project's folder."""
    folder, command = state.project or cwd, agents.of(state).home.resume(state)
    try:
        os.chdir(folder)
    except OSError as error:
        hint = "The client finds a conversation only from its own folder."
        raise NotFoundError(f"cannot enter the project's folder {folder}: {error.strerror}", hint) from error
    sys.stdout.flush()
    try:
        os.execvp(command[0], [*command, *([prompt] if prompt else [])])
    except OSError as error:
        hint = f"Install the client, then run `{' '.join(map(humanize.quote_for_shell, command))}`."
        raise NotFoundError(f"cannot start {command[0]}: {error.strerror}", hint) from error


def written(files: Sequence[WrittenFile], *, count_secrets: bool = True) -> Iterator[str]:
    """Say which sidecar files were written, and which were there with other contents."""
    new = [file for file in files if file.outcome != "left"]
    if names := _counts(new):
        secrets = sum(file.redacted for file in new) if count_secrets else 0
        note = f" ({text.counted(secrets, 'secret')} redacted)" if secrets else ""
        yield f"Also written: {names}{note}."
    if names := _counts([file for file in files if file.outcome == "left"]):
        yield f"Not overwritten, because the contents differ: {names}."


def _counts(files: Sequence[WrittenFile]) -> str:
    """Return `2 subagents, 3 tasks and a plan`, or ""."""
    counts = {kind: sum(file.kind == kind and file.counts for file in files) for kind in KINDS}
    parts = [f"a {kind}" if number == 1 else text.counted(number, kind) for kind, number in counts.items() if number]
    return text.listed(parts)


def as_json(files: Sequence[WrittenFile]) -> list[dict[str, object]]:
    """Return each file with its path and `written`, `already` or `left`."""
    return [frame.attributes(file, "path", "kind", "outcome", "redacted") for file in files]


def appended(turns: int) -> str:
    """Say how many turns a transcript lacked and got: it was truncated, or the conversation was continued elsewhere."""
    return f"The client's file lacked {text.counted(turns, 'turn')}, now appended."


def redacted(secrets: int, where: str) -> list[str]:
    """Say how many secrets are redacted somewhere; nothing if there are none."""
    return [f"{text.counted(secrets, 'secret')} {'is' if secrets == 1 else 'are'} redacted in {where}."] * bool(secrets)
