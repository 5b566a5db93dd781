"""`sessgit bridge`: answers to a program's questions about a session and its cells, as long as it asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument
from sessgit.cli.arguments import completion
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.api.bridge import Answer
    from sessgit.cli.invocation import Invocation
    from sessgit.store.sqlite.rows import Branch
    from sessgit.store.store import Store


@frame.command("bridge", needs="store", reads=True, has_json=False)
def run(    here: Invocation, session: Annotated[
        str,
        typer.Argument(metavar="SESSION", help="The session (default: the current one).", show_default=False,
                       autocompletion=completion.addresses),
    ] = "",
    operation: Annotated[
        str, typer.Option("--op", metavar="OP", help="Ask this one question, then exit.", show_default=False)
    ] = "",
    args: Annotated[
        str, typer.Option("--args", metavar="JSON", help="With --op: its arguments, a JSON object.", show_default=False)
    ] = "",
) -> None:  # fmt: skip
    """Answer a program's questions about a session.

    Reads one JSON object per line from standard input, such as {"op": "cells", "args": {"type": "tool"}}, and prints
    one line per answer. The operations are session, cells, cell and dependency_chain; the last two need {"cell_id": …}.
    If a question has an id, its answer repeats it. If something is wrong, the answer is {"error": …}, and the next
    question is read.

    New lines of the session's transcript are recorded before each answer.
    """
    from sessgit.errors import UsageError

    if args and not operation:
        raise UsageError("--args needs --op.", "`sessgit bridge --op cells --args '{}'`")
    given = _arguments(args) if args else None
    asked = _Asked(here, session)
    if operation:
        answer = asked.bridge.ask(operation, given)
        _say(answer)
        raise typer.Exit(1 if "error" in answer else 0)
    if sys.stdin is not None and sys.stdin.isatty():
        render.tell('(one question per line, such as {"op": "session"}; Ctrl-D ends)')
    for line in _lines():
        _say(asked.answer(line))


def _arguments(said: str) -> object:
    from sessgit.errors import UsageError

    try:
        return json.loads(said)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {error}", 'An object is wanted, as \'{"type": "tool"}\'.') from error


def _say(answer: Answer) -> None:
    render.write(json.dumps(answer) + "\n")


def _lines() -> Iterator[bytes | None]:
    """The lines of standard input that are not empty; None stands for one that is too long, and was not kept."""
    from sessgit.api.bridge import LONGEST_REQUEST

    if sys.stdin is None:
        return
    stream = sys.stdin.buffer
    while line := stream.readline(LONGEST_REQUEST + 1):
        if len(line) <= LONGEST_REQUEST or line.endswith(b"\n"):
            if line.strip():
                yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_REQUEST)
        yield None


class _Asked:
    """The session that is asked about, found anew for each question."""

    def __init__(self, here: Invocation, session: str) -> None:
        """Raises NotFoundError where a session is named that is not there, or where nothing is recorded at all."""
        from sessgit.api.bridge import Bridge

        self.here, self.session = here, session
        self.told = set[str]()
        with self._once():
            if session:
                self.session = session_argument.target(here, session).branch.name
            elif self._current() is None:
                here.check_recorded()
        self.bridge = Bridge(self._open, here.index, self._find)

    def answer(self, line: bytes | None) -> Answer:
        from sessgit.api.bridge import LONGEST_REQUEST

        if line is None:
            return {"error": f"a question can have at most {LONGEST_REQUEST} bytes"}
        return self.bridge.answer(line)

    def _open(self) -> Store:
        return self.here.store

    def _find(self) -> Branch | None:
        self.here.index.sync()
        with self._once():
            return self._named() if self.session else self._current()

    def _named(self) -> Branch | None:
        from sessgit.errors import NotFoundError

        try:
            return session_argument.target(self.here, self.session).branch
        except NotFoundError:
            return None

    def _current(self) -> Branch | None:
        """The current session; one that was never recorded is now."""
        from sessgit.errors import NotFoundError

        found = session_argument.current(self.here)
        if found is not None:
            return found.branch
        try:
            return session_argument.target(self.here, "").branch
        except NotFoundError:
            return None

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Of what is told beside an answer, as that it may be older, nothing is told twice."""
        said = StringIO()
        try:
            with redirect_stderr(said):
                yield
        finally:
            for line in said.getvalue().splitlines():
                if line not in self.told:
                    self.told.add(line)
                    render.tell(line)
