"""`sessgit id`: the whole id of a session."""

from __future__ import annotations

from sessgit import agents
from sessgit.cli import frame, operands, render
from sessgit.cli.frame import ADDRESS, Answer
from sessgit.cli.invocation import Invocation
from sessgit.history import resolve
from sessgit.model import ids


@frame.command("id", reads=True)
def run(
    cli: Invocation,
    address: str = ADDRESS,
) -> Answer:
    """Print the full id of a session."""
    if address:
        session = operands.target(cli, address).branch.name
    elif cli.env.session:
        session = ids.session_id(cli.env.session)
    elif client := agents.client_above(cli.env.homes, cli.where.pid):
        session = ids.session_id(client.agent_id)
    else:
        session, guess = resolve.current_branch(cli.index, cli.where)
        if guess:
            render.tell(f"({guess})")
    return Answer({"id": session}, [session])
