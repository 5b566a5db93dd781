"""`sessgit prompt`: a word for a shell prompt, and a status line for a client."""

from __future__ import annotations

import json
import sys

from sessgit.cli import frame, prompt, render, text
from sessgit.cli.frame import option
from sessgit.cli.invocation import Invocation
from sessgit.history import turn_log
from sessgit.model import canonical, humanize, ids


@frame.command("prompt")
def run(
    cli: Invocation,
    statusline: bool = option("--statusline", "Print a status line for the session in the JSON on standard input."),
) -> None:
    """Print the last turn here, for a shell prompt.

    Prints one word, such as a41f9c02@4: the newest conversation of this project with its last turn; nothing where none
    is recorded. It takes less than 50 ms. For bash: PS1='$(sessgit prompt) \\$ '.

    `sessgit install --statusline` has Claude Code run it with --statusline. A script of your own can do so too; it must
    pass on what the client writes to its standard input.
    """
    if not statusline:
        prompt.main()
        return
    render.write(f"{_status_line(cli, sys.stdin.read())}\n")


def _status_line(cli: Invocation, payload: str) -> str:
    """Return the session, its last turn, whether it is recorded, its forks and its cost."""
    from sessgit.check import status
    from sessgit.record import privacy

    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        document = None
    said = document if isinstance(document, dict) else {}
    session = ids.session_id(str(said.get("session_id") or cli.env.session))
    folder = str(said.get("cwd") or cli.cwd)
    records = status.recording(cli.env.store, cli.env.homes).on and privacy.verdict(cli.privacy, folder).recorded
    branch = cli.index.branch(session) if cli.has_store else None
    parts = [session[:8], "recorded" if records else "not recorded"]
    if branch is not None:
        cost = turn_log.session_cost(branch.state, cli.prices)
        forks = len(cli.index.forks_of(session))
        parts[0] = " ".join(filter(None, (f"{cli.ident(session)}@{branch.state.turns}", branch.state.name)))
        parts += [text.counted(forks, "fork")] if forks else []
        parts += [humanize.format_money(cost)] if cost else []
    return canonical.printable(" · ".join(filter(None, parts)))
