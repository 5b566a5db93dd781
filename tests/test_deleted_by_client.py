"""Which conversations are lost: `status`, `show`, `doctor` and `restore --all-lost` say the same of each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from clones import bare
from shell import Shell
from transcripts import OTHER, SESSION

NOTHING = "Nothing to restore: the client has every conversation of this machine.\n"
THIRD = "5e551011-0000-4000-8000-000000000003"


@pytest.fixture
def second(sessgit: Shell, tmp_path: Path) -> Shell:
    """A machine that pulled two conversations of another one, on which the user has the same home."""
    hub = bare(tmp_path / "hub")
    sessgit.recorded(sessgit.talk().turns("one", "two"), sessgit.talk(OTHER).turns("three"))
    sessgit.out("remote", "add", "origin", str(hub))
    sessgit("push", "--all")
    shutil.rmtree(sessgit.config)
    sessgit.out("install")
    sessgit.out("remote", "add", "origin", str(hub))
    sessgit("pull")
    return sessgit


def lost(sessgit: Shell) -> int:
    """How many conversations are lost, as each of the commands says it."""
    count = int(sessgit.json("status")["only_here"])
    told = [line for line in sessgit.out("status").splitlines() if "deleted" in line]
    many = "1 conversation" if count == 1 else f"{count} conversations"
    assert told == ([f"Attention   the client deleted {many}: sessgit restore --all-lost"] if count else [])
    assert (
        sum("only in this store" in sessgit("show", one["id"]).out for one in sessgit.json("ls", "--all")["sessions"])
        == count
    )
    return count


def transcript(sessgit: Shell, session: str) -> Path:
    return next(sessgit.config.glob(f"projects/*/{session}.jsonl"))


def test_what_was_never_on_this_machine_is_not_lost(second: Shell) -> None:
    assert len(second.json("ls")["sessions"]) == 2
    assert lost(second) == 0
    assert second.out("restore", "--all-lost") == NOTHING
    assert not list(second.config.glob("projects/*/*.jsonl"))


def test_what_was_recorded_on_this_machine_is_lost(second: Shell) -> None:
    second.recorded(second.talk(THIRD).turns("four"))
    second("restore", SESSION)
    second("log", SESSION)
    assert lost(second) == 0
    data = {path: path.read_bytes() for path in second.config.glob("projects/*/*.jsonl")}
    assert len(data) == 2
    for path in data:
        path.unlink()
    assert lost(second) == 2
    assert second.out("restore", "--all-lost") == "2 conversations were restored.\n"
    assert {path: path.read_bytes() for path in second.config.glob("projects/*/*.jsonl")} == data
    assert lost(second) == 0


def test_a_fork_that_was_made_here_and_never_opened_is_lost(second: Shell) -> None:
    second.out("fork", SESSION, "--at", "1")
    second.out("fork", SESSION, "--at", "1", "--no-restore")
    (made,) = second.config.glob("projects/*/*.jsonl")
    made.unlink()
    assert lost(second) == 1
    assert [one["path"] for one in second.json("restore", "--all-lost")["restored"]] == [str(made)]
    assert lost(second) == 0


def test_what_lies_in_another_folder_of_the_client_is_not_lost(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    other = path.parent.with_name("-another-project") / path.name
    other.parent.mkdir()
    path.rename(other)
    assert lost(sessgit) == 0
    assert sessgit.out("restore", "--all-lost") == NOTHING
    other.unlink()
    assert lost(sessgit) == 1
    assert sessgit.json("restore", "--all-lost")["restored"][0]["path"] == str(path)


def test_what_is_archived_is_not_lost(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one")).unlink()
    assert lost(sessgit) == 1
    sessgit.out("archive", SESSION)
    assert sessgit.json("status")["only_here"] == 0
    assert sessgit.out("restore", "--all-lost") == NOTHING
    assert "only in this store" in sessgit.out("show", SESSION)


def test_what_has_no_turns_is_lost_as_well(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one")).unlink()
    path = sessgit.recorded(sessgit.talk(OTHER).attachment())
    data = path.read_bytes()
    path.unlink()
    assert [one["turns"] for one in sessgit.json("ls", "--all")["sessions"] if one["id"] == OTHER] == [0]
    assert lost(sessgit) == 2
    assert sessgit.out("restore", "--all-lost") == "2 conversations were restored.\n"
    assert path.read_bytes() == data
    assert lost(sessgit) == 0
    assert sessgit.out("restore", "--all-lost") == NOTHING
