"""`sessgit recover`: conversations whose client was killed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial

from sessgit.check import recover as checks
from sessgit.check.recover import Outcome
from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.history import client_files
from sessgit.model import canonical
from sessgit.model.conversation.session import Session

_WAIT_STEP = 0.1
_INDENT = " " * 10
_CUT = {"call": "stopped during a call", "answer": "stopped before an answer"}


@frame.command("recover", needs="store")
def run(cli: Invocation, everything: bool = option("--all", "Search all projects.")) -> Answer:
    """Find conversations whose client was killed.

    Records what their transcripts still hold, marks them as interrupted or ended, and prints the command that continues
    each one. This includes a conversation that was killed in its first turn, before anything was recorded: a transcript
    written since `sessgit install` that ends without an answer. Other missing conversations need `sessgit import`.
    Imported conversations that are active in their system, although their process is gone, are listed until they are
    continued. If a file was written seconds ago, recover waits for it. It stops no process, and skips conversations
    that are open in a client.
    """
    wait = partial(wait_until_quiet, cli)
    result = checks.recover(cli.context, None if everything else cli.cwd, clock=time.time, wait=wait)
    notes = (f"{cli.ident(failure.session)}: {failure.reason}" for failure in result.errors)
    sessions = []
    for recovered in result.sessions:
        state = recovered.branch.state
        sessions.append(
            {
                "id": recovered.branch.name,
                "title": state.display_title,
                "project": state.project,
                "updated": state.updated or None,
                "state": state.state,
                "turns": state.turns,
                "recorded": recovered.turns,
                "cut": recovered.cut or None,
                "command": _command(cli, state) or None,
            }
        )
    document = {
        "sessions": sessions,
        "errors": [{"id": failure.session, "reason": failure.reason} for failure in result.errors],
        "waiting": [{"id": one.session, "seconds": math.ceil(one.seconds)} for one in result.waiting],
    }
    return Answer(document, _session_lines(cli, result), notes=notes)


def wait_until_quiet(cli: Invocation, seconds: float) -> None:
    """Wait until files are no longer written, with a bar on a terminal."""
    end = time.monotonic() + seconds
    progress = render.progress(cli, "waiting for files that were just written", "seconds")
    while (left := end - time.monotonic()) > 0:
        progress(int(seconds - left), math.ceil(seconds))
        time.sleep(min(left, _WAIT_STEP))
    render.remove_progress()


def _session_lines(cli: Invocation, outcome: Outcome) -> Iterator[str]:
    """Yield the whole page."""
    if not outcome.sessions and not outcome.errors and not outcome.waiting:
        yield "Nothing needs to be recovered."
    for recovered in outcome.sessions:
        state, ident = recovered.branch.state, cli.ident(recovered.branch.name)
        yield from text.heading(
            cli,
            ident,
            text.title(state, 40),
            text.ago(cli, state.updated) or "time unknown",
            f"{text.counted(recovered.turns, 'turn')} recorded" if recovered.turns else "fully recorded",
            _CUT.get(recovered.cut, ""),
        )
        folder_gone = f"{cli.short(state.project)} is gone: sessgit fork {ident} --project DIR"
        yield _INDENT + canonical.printable(_command(cli, state) or folder_gone)
    for waiting in outcome.waiting:
        seconds = text.counted(math.ceil(waiting.seconds), "second")
        ident = cli.ident(waiting.session)
        yield text.cut(f"{ident}  its file was just written: run sessgit recover again in {seconds}", cli.width)


def _command(cli: Invocation, state: Session) -> str:
    """Return the command that continues the conversation, or ``""`` if its folder is gone."""
    return "" if client_files.is_folder_gone(state.project) else client_files.resume_command(state, cli.cwd)
