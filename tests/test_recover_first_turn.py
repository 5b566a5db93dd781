"""`sessgit recover`: a client that was killed in its first turn, of which no event told while its file was there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hooked import hooked, lie
from shell import Shell
from test_recover import NOTHING, client, says
from transcripts import OTHER, SESSION, Talk

from sessgit.store import refs

__all__ = ["client"]
THIRD = "5e551011-0000-4000-8000-000000000003"


@pytest.fixture(autouse=True)
def installed(sessgit: Shell) -> None:
    sessgit.out("install")
    lie(sessgit.store / "hook", 100)


def prompted(talk: Talk) -> Talk:
    return talk.prompt("begin")


def called(talk: Talk) -> Talk:
    talk.prompt("begin").tool("Bash", {"command": "make"})
    talk.lines.pop()
    return talk


def told(talk: Talk) -> Talk:
    """The result is there, and no word about it."""
    return talk.prompt("begin").tool("Bash", {"command": "make"})


def announced(talk: Talk) -> Talk:
    """A text of the model's, behind which its message goes on."""
    talk.prompt("begin").answer("Running it.")
    line = json.loads(talk.lines[-1])
    line["message"]["stop_reason"] = "tool_use"
    talk.lines[-1] = json.dumps(line).encode()
    return talk


@pytest.mark.parametrize(
    ("killed", "cut"), [(prompted, "answer"), (called, "call"), (told, "answer"), (announced, None)]
)
def test_what_is_there_is_recorded(sessgit: Shell, killed: Callable[[Talk], Talk], cut: str | None) -> None:
    path = lie(sessgit.keep(killed(sessgit.talk())))
    (found,) = sessgit.json("recover")["sessions"]
    assert (found["id"], found["title"], found["turns"], found["recorded"], found["cut"]) == (
        SESSION, "begin", 1, 1, cut,
    )  # fmt: skip
    assert found["command"] == f"claude --resume {SESSION}"
    assert sessgit.json("restore", SESSION, "--verify")["same"]
    assert sessgit.out("recover") == NOTHING
    assert path.exists()


def test_the_page(sessgit: Shell) -> None:
    talk = prompted(sessgit.talk())
    lie(sessgit.keep(talk))
    sessgit.now = talk.file.born.timestamp() + 20 * 60
    assert sessgit.out("recover") == (
        "5e551011  begin  ·  19m ago  ·  1 turn recorded  ·  stopped before an answer\n"
        f"          claude --resume {SESSION}\n"
    )


def answered(talk: Talk) -> Talk:
    return talk.turns("one")


def left(talk: Talk) -> Talk:
    """A person ended it by the client's own command."""
    talk.turns("one").user("<command-name>/exit</command-name>")
    return talk.user("<local-command-stdout>Bye!</local-command-stdout>")


def opened(talk: Talk) -> Talk:
    return talk.bare("mode", mode="normal")


@pytest.mark.parametrize("made", [answered, left, opened])
def test_what_nobody_was_to_record_is_not_brought_in(sessgit: Shell, made: Callable[[Talk], Talk]) -> None:
    """A conversation of which no event came, and that was not cut: with hooks, one would have come."""
    lie(sessgit.keep(made(sessgit.talk())))
    assert sessgit.out("recover", "--all") == NOTHING
    assert refs.read_all(sessgit.store) == {}


def test_nor_what_is_older_than_the_hooks(sessgit: Shell) -> None:
    path = lie(sessgit.keep(prompted(sessgit.talk())), 200)
    assert sessgit.out("recover") == NOTHING
    assert sessgit.json("status")["older"] == 1
    lie(path, 50)
    (sessgit.store / "hook").unlink()
    assert sessgit.out("recover") == NOTHING


def test_nor_one_that_is_off_deleted_open_or_no_conversation(sessgit: Shell, client: object) -> None:
    path = lie(sessgit.keep(prompted(sessgit.talk())))
    sessgit.out("off")
    assert sessgit.out("recover") == NOTHING
    sessgit.out("on")
    open_now = says(sessgit, client.pid)  # type: ignore[attr-defined]
    assert sessgit.out("recover") == NOTHING
    open_now.unlink()
    path.with_name("notes.jsonl").write_bytes(path.read_bytes())
    lie(path.with_name("notes.jsonl"))
    assert len(sessgit.json("recover")["sessions"]) == 1
    sessgit.out("delete", SESSION, "--yes")
    assert sessgit.out("recover", "--all") == NOTHING


def test_the_project_at_hand_or_all(sessgit: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    lie(sessgit.keep(prompted(sessgit.talk(cwd=str(elsewhere)))))
    hooked(sessgit, sessgit.talk(OTHER).turns("one"))
    lie(sessgit.keep(prompted(sessgit.talk(THIRD))))
    assert [one["id"] for one in sessgit.json("recover")["sessions"]] == [OTHER, THIRD]
    assert [one["id"] for one in sessgit.json("recover", "--all")["sessions"]] == [SESSION]


def test_a_client_that_does_not_tell_whether_it_lives(sessgit: Shell) -> None:
    path = sessgit.keep(prompted(sessgit.talk(style="2.0")))
    os.utime(path)
    assert sessgit.json("recover")["waiting"] == [{"id": SESSION, "seconds": 60}]
    lie(path, 70)
    assert [one["id"] for one in sessgit.json("recover")["sessions"]] == [SESSION]
