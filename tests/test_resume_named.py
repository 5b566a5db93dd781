"""A session whose id is no uuid is resumed by its file: the client would not know it by anything else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from shell import Shell

from sessgit.agents.claude import home
from sessgit.model.conversation.session import Session

NAMED = "my-session"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The clients that were started."""
    found: list[list[str]] = []

    def start(program: str, words: list[str]) -> None:
        found.append(words)
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "execvp", start)
    return found


def away(path: Path) -> None:
    path.unlink()


def left(path: Path) -> None:
    assert path.exists()


@pytest.mark.parametrize("change", [left, away])
def test_it_is_started_as_it_is_printed(sessgit: Shell, ran: list[list[str]], change: Callable[[Path], None]) -> None:
    path = sessgit.recorded(sessgit.talk(NAMED).turns("one"))
    change(path)
    printed = sessgit("resume", NAMED, "--print").out
    assert printed == f"claude --resume {path}\n"
    change(path)
    done = sessgit("resume", NAMED)
    assert ran == [["claude", "--resume", str(path)]]
    assert done.code == 4
    assert done.err.endswith(f"Hint: Install the client, then run `claude --resume {path}`.\n")


def test_no_option_of_the_clients_comes_out_of_a_state() -> None:
    uuid = "5e551011-0000-4000-8000-000000000001"
    state = Session("s", NAMED, transcript="--dangerously-skip-permissions")
    assert home.resume(state)[-1] == NAMED
    assert home.resume(replace(state, transcript="/a b/my-session.jsonl"))[-1] == "/a b/my-session.jsonl"
    assert home.resume(replace(state, agent_id=uuid, transcript="/a/b.jsonl"))[-1] == uuid
