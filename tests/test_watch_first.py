"""`sessgit watch` right after `install`: it waits for the first conversation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hooked import hooked
from shell import Shell
from test_watch import Starts, starting
from transcripts import SESSION


@pytest.fixture
def watching(sessgit: Shell) -> Iterator[Starts]:
    """Starts a watch of a store with nothing in it."""
    assert sessgit("install").code == 0
    yield from starting()


def test_the_first_conversation_is_told(sessgit: Shell, watching: Starts) -> None:
    seen, program = watching(), watching("--json", "--all", place="all projects")
    hooked(sessgit, sessgit.talk().turns("one"))
    line = seen.line()
    assert line[line.index("5e551011") :].startswith("5e551011@1     one ")
    event = program.event()
    assert (event["event"], event["id"], event["turn"], event["new"]) == ("turn", SESSION, 1, True)
    hooked(sessgit, sessgit.talk().turns("one", "two"))
    assert "5e551011@2     two " in seen.line()
    assert program.event()["turn"] == 2
    assert (seen.end(), program.end()) == (130, 130)


def test_what_is_named_must_be_there(sessgit: Shell) -> None:
    assert sessgit("watch").err.startswith("Error: nothing is recorded yet: there is no store at ~/.claude")
    sessgit.out("install")
    assert sessgit("watch", "5e55").err.startswith("Error: nothing is recorded yet.\n")
