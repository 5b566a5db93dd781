"""What commands say and do about a conversation that went on elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pingpong import Machine, uuids
from plain import run_git
from shell import Shell
from strategies import SECRET
from transcripts import OTHER, SESSION, Talk


@pytest.fixture
def went_on(sessgit: Shell, tmp_path: Path) -> tuple[Shell, Machine, Path]:
    """A conversation that is recorded here, has gone on elsewhere, and is pulled."""
    talk = sessgit.talk(cwd="/home/ada/shop").turns("one", f"two {SECRET}")
    path = sessgit.recorded(talk)
    sessgit.out("config", "project.map./home/ada", str(sessgit.home))
    other = Machine(tmp_path / "other", talk)
    run_git(other.store.path, "fetch", "-q", str(sessgit.store), f"refs/heads/{SESSION}:refs/heads/{SESSION}")
    other.restore()
    other.adopt()
    talk.turns("three", "four")
    other.keep()
    run_git(sessgit.store, "fetch", "-q", str(other.store.path), f"refs/heads/{SESSION}:refs/heads/{SESSION}")
    return sessgit, other, path


def test_restore_says_what_it_appended(went_on: tuple[Shell, Machine, Path]) -> None:
    sessgit, other, path = went_on
    done = sessgit("restore", "5e55")
    assert (done.code, done.err) == (0, "The client's file lacked 2 turns, now appended.\n")
    there = f"~/{path.relative_to(sessgit.home)} already exists:\nall turns, but not the same bytes.\n"
    assert done.out == there.replace("already exists", "was completed")
    assert uuids(path.read_bytes()) == other.uuids
    assert sessgit.out("restore", "5e55") == there
    found = sessgit.json("restore", "5e55")
    assert (found["already"], found["appended"]) == (True, 0)
    assert len(sessgit.json("log", "5e55")["turns"]) == 4


def test_restore_of_a_truncated_file_says_that_it_lacked_turns(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    start = len(talk.data)
    path = sessgit.recorded(talk.turns("two", "three"))
    data = path.read_bytes()
    path.write_bytes(data[:start])
    done = sessgit("restore", "5e55")
    assert (done.code, done.err) == (0, "The client's file lacked 2 turns, now appended.\n")
    assert done.out.startswith(f"~/{path.relative_to(sessgit.home)} was completed:\n")
    assert path.read_bytes() == data
    assert "already exists" in sessgit.out("restore", "5e55")


def test_resume_appends_first(went_on: tuple[Shell, Machine, Path]) -> None:
    sessgit, other, path = went_on
    done = sessgit("resume", "5e55", "--print")
    assert (done.code, done.out) == (0, f"claude --resume {SESSION}\n")
    assert done.err == "The client's file lacked 2 turns, now appended.\n"
    assert uuids(path.read_bytes()) == other.uuids
    assert sessgit("resume", "5e55", "--print").err == ""


def test_a_merge_into_it_waits_for_them(went_on: tuple[Shell, Machine, Path]) -> None:
    sessgit, _, path = went_on
    theirs = Talk(OTHER, cwd=str(sessgit.project)).turns("theirs")
    sessgit.recorded(theirs)
    data = path.read_bytes()
    done = sessgit("pick", f"{OTHER}@1", "--into", SESSION)
    assert (done.code, done.err) == (
        3,
        "Error: 5e551011 was continued elsewhere, and its file here lacks those turns.\n"
        "Hint: Append them: `sessgit restore 5e551011`\n",
    )
    assert path.read_bytes() == data
    sessgit("restore", SESSION)
    assert sessgit("pick", f"{OTHER}@1", "--into", SESSION).code == 0
    assert len(sessgit.json("log", SESSION)["turns"]) == 5


def test_another_machines_branch_is_forked_and_not_restored(went_on: tuple[Shell, Machine, Path]) -> None:
    sessgit, _, path = went_on
    run_git(sessgit.store, "branch", f"{SESSION}.m-a0000003", SESSION)
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", f"{SESSION}~3")
    (sessgit.store / "state" / f"{SESSION}.json").unlink()
    data = path.read_bytes()
    done = sessgit("restore", "5e55.m")
    assert (done.code, done.err) == (
        2,
        "Error: 5e551011.m-a0000003 is another version of the conversation, without a file here.\n"
        "Hint: `sessgit fork 5e551011.m-a0000003` makes it a conversation of its own.\n",
    )
    fork = sessgit.json("fork", "5e55.m")
    assert [turn["prompt"] for turn in sessgit.json("log", fork["id"])["turns"]][2:] == ["three", "four"]
    assert path.read_bytes() == data
