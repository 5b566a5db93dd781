"""`sessgit status`: whether recording is on, and what needs attention. `sessgit` alone begins with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessgit.cli import frame, invocation, render
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.check.status import Status


@frame.command("status")
def run(
    here: Invocation,
    address: options.Address = "",
) -> Answer:
    """Show what is recorded and what needs attention.

    Also shows how far the current session, or the one at ADDRESS, is recorded, and which transcripts the client will
    soon delete.
    """
    from sessgit.cli import session_argument
    from sessgit.cli.pages import status as page

    if address:
        here.check_store()
    session = (
        session_argument.target(here, address)
        if address
        else session_argument.current(here)
        if here.has_store
        else None
    )
    found = _status(here)
    return Answer(lambda: page.as_json(here, found, session), page.full(here, found, session), then=here.record_waiting)


def first() -> None:
    """What `sessgit` says without a command."""
    from sessgit.cli import session_argument
    from sessgit.cli.pages import welcome as page

    here = invocation.read()
    session = session_argument.current(here) if here.has_store else None
    render.lines(here, page.full(here, _status(here), session))
    here.record_waiting()


def _status(here: Invocation) -> Status:
    from sessgit.check import status

    index = here.index if here.has_store else None
    return status.status(here.store_path, here.config, index, here.privacy, cwd=here.cwd, now=here.now)
