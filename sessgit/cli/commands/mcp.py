"""`sessgit mcp`: the server of the Model Context Protocol."""

from __future__ import annotations

from sessgit.cli import frame, mcp
from sessgit.cli.invocation import Invocation


@frame.command("mcp")
def run(cli: Invocation) -> None:
    """Let a client's model search conversations.

    A server of the Model Context Protocol on standard input and output, which a client starts. It has the tools search,
    show, log, note and fork, and ends when its input does. Claude Code's plugin sets it up; other clients need its
    command, `sessgit mcp`, in their settings.
    """
    mcp.main()
