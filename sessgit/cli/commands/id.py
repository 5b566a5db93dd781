"""`sessgit id`: the whole id of a session."""

from __future__ import annotations

from sessgit.cli import frame, render
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation


@frame.command("id", reads=True)
def run(
    here: Invocation,
    address: options.Address = "",
) -> Answer:
    """Print the full id of a session."""
    from sessgit import agents
    from sessgit.cli import session_argument
    from sessgit.history import resolve
    from sessgit.model import ids

    if address:
        found = session_argument.target(here, address).branch.name
    elif told := here.told_session:
        found = ids.session_id(told)
    elif client := agents.at(here.config).home.client_above(here.config, here.where.pid):
        found = ids.session_id(client.agent_id)
    else:
        found, guess = resolve.current_branch(here.index, here.where)
        if guess:
            render.tell(f"({guess})")
    return Answer(lambda: {"id": found}, [found])
