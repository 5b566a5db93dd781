"""`sessgit bridge`, `mcp`: answers to the questions of a program, or of a client's model, as long as it asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO

import typer

from sessgit.api.bridge import LONGEST_REQUEST, Answer, Bridge
from sessgit.cli import frame, mcp, operands, render
from sessgit.cli.frame import argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import NotFoundError, UsageError
from sessgit.store.index import Branch


@frame.command("bridge", reads=True, requires={"--args": "--op"})
def run_bridge(
    cli: Invocation,
    session: str = argument("SESSION", "The session (default: the current one).", complete="addresses"),
    operation: str = option("--op OP", "Ask this one question, then exit."),
    args: str = option("--args JSON", "With --op: its arguments, a JSON object."),
) -> None:
    """Answer a program's questions about a session.

    Reads one JSON object per line from standard input, such as {"op": "cells", "args": {"type": "tool"}}, and prints
    one line per answer. The operations are session, cells, cell and dependency_chain, of which the last two need
    {"cell_id": …}; peek, with {"of": "conversation", "start": 0, "end": 1000}; and search, with {"query": …}. If a
    question has an id, its answer repeats it. If something is wrong, the answer is {"error": …}, and the next question
    is read.

    New lines of the session's transcript are recorded before each answer.
    """
    try:
        arguments = json.loads(args) if args else None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {error}", 'Pass an object, such as \'{"type": "tool"}\'.') from error
    # Without a store there is no session: a program reads JSON only.
    bridge = Bridge(cli.context, _Subject(cli, session).find) if cli.has_store else Bridge(None, lambda: None)
    if operation:
        answer = bridge.ask(operation, arguments)
        _print(answer)
        raise typer.Exit(1 if "error" in answer else 0)
    if sys.stdin is not None and sys.stdin.isatty():
        render.tell('(one question per line, such as {"op": "session"}; Ctrl-D ends)')
    for line in mcp.bounded_lines(sys.stdin.buffer, LONGEST_REQUEST) if sys.stdin is not None else ():
        if line is None:
            _print({"error": f"a question can have at most {LONGEST_REQUEST} bytes"})
        elif line.strip():
            _print(bridge.answer(line))


def _print(answer: Answer) -> None:
    render.write(json.dumps(answer) + "\n")


class _Subject:
    """The session that the questions are about, found and recorded again for each of them."""

    def __init__(self, cli: Invocation, session: str) -> None:
        """Raises NotFoundError if the named session does not exist, or if nothing is recorded at all."""
        self.cli, self.session = cli, session
        self.remarks = set[str]()
        with self._once():
            if session:
                self.session = operands.target(cli, session).branch.name
            elif self._branch() is None:
                cli.check_recorded()

    def find(self) -> Branch | None:
        self.cli.index.sync()
        with self._once():
            return self._branch()

    def _branch(self) -> Branch | None:
        """Return the session's branch, or None; the current session is recorded if it never was."""
        target = None if self.session else operands.current(self.cli)
        try:
            return (target or operands.target(self.cli, self.session)).branch
        except NotFoundError:
            return None

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Print each remark once, such as that an answer may be older."""
        output = StringIO()
        try:
            with redirect_stderr(output):
                yield
        finally:
            for line in output.getvalue().splitlines():
                if line not in self.remarks:
                    self.remarks.add(line)
                    render.tell(line)


@frame.command("mcp")
def run_mcp(cli: Invocation) -> None:
    """Let a client's model search conversations.

    A server of the Model Context Protocol on standard input and output, which a client starts. It has the tools search,
    show, log, note and fork, and ends when its input does. Claude Code's plugin sets it up; other clients need its
    command, `sessgit mcp`, in their settings.
    """
    mcp.main()
