"""`sessgit status`: whether recording is on, and what needs attention. `sessgit` alone begins with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessgit.cli import frame, invocation, render, session_argument
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import ADDRESS
from sessgit.cli.pages import status as page
from sessgit.history.resolve import ResolvedTarget

if TYPE_CHECKING:
    from sessgit.check.status import Status


@frame.command("status")
def run(
    here: Invocation,
    address: str = ADDRESS,
) -> Answer:
    """Show what is recorded and what needs attention.

    Also shows how far the current session, or the one at ADDRESS, is recorded, and which transcripts the client will
    soon delete.
    """
    session = _session(here, address)
    status = _status(here)
    return Answer(
        lambda: page.as_json(here, status, session), page.full(here, status, session), then=here.record_waiting
    )


def first() -> None:
    """Print what `sessgit` says without a command."""
    here = invocation.read()
    session = _session(here)
    render.lines(here, page.welcome(here, _status(here), session))
    here.record_waiting()


def _session(here: Invocation, address: str = "") -> ResolvedTarget | None:
    if address:
        here.check_store()
        return session_argument.target(here, address)
    return session_argument.current(here) if here.has_store else None


def _status(here: Invocation) -> Status:
    from sessgit.check import status

    index = here.index if here.has_store else None
    return status.status(here.env.store, here.env.homes, index, here.privacy, cwd=here.cwd, now=here.now)
