"""A project is the same on two machines if it is a clone of the same remote."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain import run_git
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.store.project import normalized_url, project_remote

THERE = "/home/anna/work/shop"


@pytest.mark.parametrize(
    "url",
    [
        "git@Example.com:anna/shop.git",
        "example.com:anna/shop",
        "ssh://git@example.com/anna/shop.git",
        "ssh://git@example.com:2222/anna/shop",
        "https://example.com/anna/shop.git",
        "https://example.com/anna/shop/",
        "HTTPS://anna:secret@example.com:8443/anna/shop.git/",
        "git://example.com/anna/shop.git",
    ],
)
def test_all_forms_of_a_url_are_one(url: str) -> None:
    assert normalized_url(url) == "example.com/anna/shop"


@pytest.mark.parametrize(
    "url", ["", "/srv/git/shop.git", "../shop", "file:///srv/git/shop.git", "https://", "a:", "a://b"]
)
def test_what_names_no_other_machine(url: str) -> None:
    assert normalized_url(url) == ""


def test_the_remote_of_a_project(tmp_path: Path) -> None:
    repository = tmp_path / "shop"
    assert project_remote(str(repository)) == ""
    run_git(tmp_path, "init", "-q", str(repository))
    assert project_remote(str(repository)) == ""
    run_git(repository, "remote", "add", "upstream", "https://example.com/all/shop.git")
    assert project_remote(str(repository)) == "example.com/all/shop"
    run_git(repository, "remote", "add", "fork", "https://example.com/eve/shop.git")
    assert project_remote(str(repository)) == ""
    run_git(repository, "remote", "add", "origin", "git@example.com:anna/shop.git")
    run_git(repository, "config", "--add", "remote.origin.url", "git@example.com:anna/other.git")
    run_git(repository, "config", "branch.main.url", "git@example.com:no/remote.git")
    assert project_remote(str(repository)) == "example.com/anna/shop"
    run_git(repository, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "first")
    run_git(repository, "worktree", "add", "-q", str(tmp_path / "side"))
    assert project_remote(str(tmp_path / "side")) == "example.com/anna/shop"
    (repository / ".git" / "config").write_bytes(b'\xff[remote "origin"\nurl')
    assert project_remote(str(repository)) == ""


def clone(folder: Path, url: str) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    run_git(folder, "init", "-q")
    run_git(folder, "remote", "add", "origin", url)


@pytest.fixture
def second(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A second machine, whose clone is at another path and has another form of the URL. The store came by `pull`."""
    there = tmp_path / "anna" / "work" / "shop"
    clone(there, "git@example.com:anna/shop.git")
    monkeypatch.setenv("HOME", str(tmp_path / "anna"))
    talk = Talk(cwd=str(there)).turns("one", "two")
    talk.save(home.project_folder(tmp_path / "anna" / ".claude", str(there)))
    assert sessgit("import").code == 0
    run_git(tmp_path, "init", "-q", "--bare", str(tmp_path / "shared.git"))
    assert sessgit("remote", "add", "origin", str(tmp_path / "shared.git")).code == 0
    assert sessgit("push", "origin", "--all").code == 0
    there.rename(tmp_path / "gone")
    monkeypatch.setenv("HOME", str(sessgit.home))
    clone(sessgit.project, "https://bob:token@example.com/anna/shop")
    sessgit.out("install")
    assert sessgit("remote", "add", "origin", str(tmp_path / "shared.git")).code == 0
    assert sessgit("pull", "origin").code == 0
    return sessgit


def test_ls_and_log_on_the_second_machine(second: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (listed,) = second.json("ls")["sessions"]
    assert (listed["id"], listed["project"]) == (SESSION, str(second.project))
    assert second("log").err == f"(using {SESSION[:8]}, the most recent conversation in this project)\n"
    assert [turn["turn"] for turn in second.json("log", SESSION)["turns"]] == [1, 2]
    monkeypatch.chdir(second.home)
    (listed,) = second.json("ls", "--all")["sessions"]
    assert listed["project"] != str(second.project)  # no conversation was recorded in the clone, so it is not known


def test_resume_on_the_second_machine(second: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.project_folder(second.config, str(second.project)) / f"{SESSION}.jsonl"
    done = second("resume", "5e55", "--print")
    assert (done.code, done.out) == (0, f"claude --resume {SESSION}\n")
    assert path.is_file()
    other = second.talk("0e55ffff-0000-4000-8000-000000000009").turns("mine")
    second.recorded(other)
    monkeypatch.chdir(second.home)
    assert {one["project"] for one in second.json("ls", "--all")["sessions"]} == {str(second.project)}
    assert second.out("resume", "5e55", "--print") == f"cd {second.project} && claude --resume {SESSION}\n"


def test_a_clone_of_another_remote_is_another_project(second: Shell) -> None:
    run_git(second.project, "remote", "set-url", "origin", "https://example.com/eve/shop")
    assert second.json("ls")["sessions"] == []


def test_project_map_comes_first(second: Shell) -> None:
    mapped = second.home / "mapped"
    mapped.mkdir()
    (listed,) = second.json("ls")["sessions"]
    state = run_git(second.store, "show", f"{SESSION}:session.json")
    assert '"git_remote": "example.com/anna/shop"' in state
    project = next(line.split('"')[3] for line in state.splitlines() if '"cwd"' in line)
    second.out("config", f"project.map.{project}", str(mapped))
    (listed,) = second.json("ls", "--all")["sessions"]
    assert listed["project"] == str(mapped)
