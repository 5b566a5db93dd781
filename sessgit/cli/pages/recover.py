"""What `recover` prints: a line for each conversation, and the command that continues it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sessgit.branch import fork
from sessgit.check.recover import Outcome, Recovered
from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.history import client_files
from sessgit.history.resolve import session_title
from sessgit.model import canonical
from sessgit.model.conversation.session import Session

_INDENT = " " * 10
_CUT = {"call": "stopped during a call", "answer": "stopped before an answer"}


def full(here: Invocation, outcome: Outcome) -> Iterator[str]:
    """Yield the whole page."""
    if not outcome.sessions and not outcome.errors and not outcome.waiting:
        yield "Nothing needs to be recovered."
    for recovered in outcome.sessions:
        state, ident = recovered.branch.state, here.ident(recovered.branch.name)
        yield from blocks.heading(
            here,
            ident,
            blocks.title(state, 40),
            blocks.ago(here, state.updated) or "time unknown",
            f"{text.counted(recovered.turns, 'turn')} recorded" if recovered.turns else "fully recorded",
            _CUT.get(recovered.cut, ""),
        )
        folder_gone = f"{here.short(state.project)} is gone: sessgit fork {ident} --project DIR"
        yield _INDENT + canonical.printable(_command(here, state) or folder_gone)
    for waiting in outcome.waiting:
        seconds = text.counted(math.ceil(waiting.seconds), "second")
        ident = here.ident(waiting.session)
        yield text.cut(f"{ident}  its file was just written: run sessgit recover again in {seconds}", here.width)


def as_json(here: Invocation, outcome: Outcome) -> dict[str, Any]:
    """Return what `recover --json` prints."""
    return {
        "sessions": [_session_json(here, recovered) for recovered in outcome.sessions],
        "errors": [{"id": failure.session, "reason": failure.reason} for failure in outcome.errors],
        "waiting": [{"id": one.session, "seconds": math.ceil(one.seconds)} for one in outcome.waiting],
    }


def _session_json(here: Invocation, recovered: Recovered) -> dict[str, Any]:
    state = recovered.branch.state
    return {
        "id": recovered.branch.name,
        "title": session_title(state),
        "project": state.project,
        "updated": state.updated or None,
        "state": state.state,
        "turns": state.turns,
        "recorded": recovered.turns,
        "cut": recovered.cut or None,
        "command": _command(here, state) or None,
    }


def _command(here: Invocation, state: Session) -> str:
    """Return the command that continues the conversation, or ``""`` if its folder is gone."""
    return "" if client_files.is_folder_gone(state.project) else fork.resume_command(state, here.cwd)
