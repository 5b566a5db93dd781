"""`sessgit sync`: a pull, and a push of what may leave this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessgit.cli import invocation, remote_argument, render
from sessgit.cli.arguments import options
from sessgit.cli.commands.push import SETTING

if TYPE_CHECKING:
    from sessgit.sync.outcome import Pulled, Pushed


def run(
    remote: options.Remote = "",
    as_json: options.Json = False,
) -> None:
    """Pull, then push what sync.include selects.

    Without that setting, sync only pulls: nothing leaves this machine unless you ask for it.
    """
    from sessgit.errors import SessgitError
    from sessgit.sync import pull as pulling
    from sessgit.sync import push as pushing
    from sessgit.sync import selection

    here = invocation.read()
    here.check_store()
    include = here.settings.sync.include
    sent = None
    with remote_argument.linked(here, remote_argument.one(here, remote)) as link:
        came = pulling.pull(here.store, here.index, link, here.config, here.now)
        if include:
            sessions = selection.included(here.index, include, here.privacy)
            try:
                sent = pushing.push(here.store, here.index, link, sessions, here.now)
            except SessgitError:  # what came is here all the same
                _tell(here, came, None, as_json=as_json)
                raise
    _tell(here, came, sent, as_json=as_json)
    if sent is None:
        render.tell(f"Nothing was sent: sync.include is empty. To select conversations: {SETTING}")


def _tell(here: invocation.Invocation, came: Pulled, sent: Pushed | None, *, as_json: bool) -> None:
    from sessgit.cli.pages import sync as page

    if as_json:
        went = page.pushed_json(sent) if sent is not None else None
        render.document("sync/v1", {"pull": page.pulled_json(came), "push": went})
    else:
        render.lines(here, page.synced(here, came, sent))
