"""What was recovered: a line for each conversation, and the command that goes on with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sessgit.branch import fork
from sessgit.check.recover import Outcome, Recovered
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history import client_files
from sessgit.history.resolve import session_title
from sessgit.model import canonical
from sessgit.model.conversation.session import Session

_INDENT = 10
_TITLE = 40
_CUT = {"call": "stopped during a call", "answer": "stopped before an answer"}


def full(here: Invocation, done: Outcome) -> Iterator[str]:
    """The whole page."""
    if not done.sessions and not done.errors and not done.waiting:
        yield "Nothing needs to be recovered."
    paint = Paint(here.colour)
    for one in done.sessions:
        state, ident = one.branch.state, here.ident(one.branch.name)
        parts = [f"{ident}  {text.clean(session_title(state), _TITLE)}", *_said(here, one)]
        first, *rest = text.fold(parts, here.width, "  ·  ", " " * _INDENT)
        yield paint("bold", first[: len(ident)]) + first[len(ident) :]
        yield from rest
        yield " " * _INDENT + canonical.printable(_command(here, state) or _instead(here, one))
    for left in done.waiting:
        seconds = text.counted(math.ceil(left.seconds), "second")
        words = f"{here.ident(left.session)}  its file was just written: run sessgit recover again in {seconds}"
        yield from text.fold([words], here.width, "", " " * _INDENT)


def as_json(here: Invocation, done: Outcome) -> dict[str, Any]:
    """Return what `recover --json` prints."""
    return {
        "sessions": [
            {
                "id": one.branch.name,
                "title": session_title(one.branch.state),
                "project": one.branch.state.project,
                "updated": one.branch.state.updated or None,
                "state": one.branch.state.state,
                "turns": one.branch.state.turns,
                "recorded": one.turns,
                "cut": one.cut or None,
                "command": _command(here, one.branch.state) or None,
            }
            for one in done.sessions
        ],
        "errors": [{"id": failure.session, "reason": failure.reason} for failure in done.errors],
        "waiting": [{"id": left.session, "seconds": math.ceil(left.seconds)} for left in done.waiting],
    }


def _said(here: Invocation, one: Recovered) -> Iterator[str]:
    yield text.ago(canonical.seconds(one.branch.state.updated), here.now) or "time unknown"
    yield f"{text.counted(one.turns, 'turn')} recorded" if one.turns else "fully recorded"
    if one.cut:
        yield _CUT[one.cut]


def _command(here: Invocation, state: Session) -> str:
    """The command that goes on with it, or ``""`` where the client cannot be started in its folder."""
    return "" if client_files.is_folder_gone(state.project) else fork.resume_command(state, here.cwd)


def _instead(here: Invocation, one: Recovered) -> str:
    folder = here.short(one.branch.state.project)
    return f"{folder} is gone: sessgit fork {here.ident(one.branch.name)} --project DIR"
