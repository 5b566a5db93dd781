"""What a program held is left out of lists, unless a user forked or named it."""

from __future__ import annotations

from pathlib import Path

import pytest
from coded import Coded
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import home


@pytest.fixture
def coded(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> Coded:
    made = Coded(sessgit, monkeypatch)
    made.record(by_program(sessgit.talk(), "one", "two"))
    return made


def by_program(talk: Talk, *texts: str) -> Talk:
    """Turns as a client writes them that a program started."""
    for text in texts:
        talk.prompt(text, entrypoint="sdk-cli").answer(f"About {text}.").stop_lines()
    return talk


def listed(sessgit: Shell, command: str = "ls") -> list[str]:
    """The sessions that are listed in the working folder, all of them as not headless."""
    if command == "tree":
        return [node["id"] for family in sessgit.json("tree")["families"] for node in family["nodes"]]
    found = sessgit.json("ls")["sessions"]
    assert not any(one["headless"] for one in found)
    return [one["id"] for one in found]


def test_a_fork_is_listed_in_its_project_and_in_its_worktree(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit = coded.shell
    assert listed(sessgit) == []
    made = sessgit.json("fork", SESSION, "--at", "1", "--worktree", "../tree")
    fork, path = made["id"], Path(made["transcript"])
    for again in (False, True):
        if again:
            talk = by_program(Talk(fork, cwd=str(coded.project.parent / "tree")), "three")
            path.write_bytes(path.read_bytes() + talk.data)
            sessgit("log", fork)
        assert (listed(sessgit), fork in listed(sessgit, "tree")) == ([fork], True)
        assert "headless" not in sessgit.out("show", fork)
        with monkeypatch.context() as patch:
            patch.chdir(coded.project.parent / "tree")
            assert listed(sessgit) == [fork]
    assert (
        sessgit.out("ls").splitlines()[-1] == "1 of 2 conversations is in this project. All projects: sessgit ls --all"
    )


@pytest.mark.parametrize("at", ["1", "1.1"])
def test_a_fork_that_a_program_goes_on_with_is_listed(coded: Coded, at: str) -> None:
    sessgit = coded.shell
    made = sessgit.json("fork", SESSION, "--at", at)
    path = Path(made["transcript"])
    talk = by_program(Talk(made["id"], cwd=str(coded.project)), "three")
    path.write_bytes(path.read_bytes() + talk.data)
    sessgit("log", made["id"])
    assert listed(sessgit) == [made["id"]]


def test_what_has_a_name_is_listed_as_long_as_it_has_it(coded: Coded) -> None:
    sessgit = coded.shell
    sessgit.out("rename", SESSION, "Review")
    assert listed(sessgit) == listed(sessgit, "tree") == [SESSION]
    coded.record(by_program(sessgit.talk(), "one", "two", "three"))
    assert listed(sessgit) == [SESSION]
    sessgit.out("rename", "--clear", "Review")
    assert listed(sessgit) == []


def test_a_fork_that_the_client_made_for_a_program_stays_headless(coded: Coded) -> None:
    sessgit = coded.shell
    talk = by_program(sessgit.talk(), "one", "two").branch(OTHER)
    by_program(talk, "three").save(home.project_folder(sessgit.config, str(coded.project)))
    sessgit("import")
    assert sessgit.json("ls", "--headless")["sessions"][1]["id"] == OTHER
    assert listed(sessgit) == []


def test_the_store_says_what_the_lines_say(coded: Coded) -> None:
    sessgit = coded.shell
    made = sessgit.json("fork", SESSION, "--at", "1", "--name", "mine")
    path = Path(made["transcript"])
    path.write_bytes(path.read_bytes() + b'{"type":"mode","mode":"plan"}\n')
    sessgit("log", made["id"])
    sessgit.out("rename", SESSION, "Review")
    assert sessgit("verify", "--deep").code == 0
