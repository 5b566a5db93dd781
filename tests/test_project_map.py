"""`project.map`: the folders of other machines, and the ones here that stand for them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from pingpong import Machine
from plain import run_git
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.branch import restore
from sessgit.history import client_files
from sessgit.store import settings
from sessgit.store.store import Store

THERE = "/Users/anna/src"


def from_elsewhere(sessgit: Shell, folder: Path, talk: Talk) -> Machine:
    """A session that another machine recorded, as a pull brings it."""
    sessgit("install")
    other = Machine(folder / "other", talk)
    other.keep()
    run_git(sessgit.store, "fetch", "-q", str(other.store.path), f"refs/heads/{SESSION}:refs/heads/{SESSION}")
    return other


@pytest.fixture
def mapped(sessgit: Shell, tmp_path: Path) -> Shell:
    """A session of a folder that is not here, which is the working folder here."""
    from_elsewhere(sessgit, tmp_path, Talk(cwd=f"{THERE}/shop").turns("one", "two"))
    assert sessgit.out("config", f"project.map.{THERE}", str(sessgit.home)) == ""
    return sessgit


def place(sessgit: Shell, folder: Path) -> Path:
    return home.project_folder(sessgit.config, str(folder)) / f"{SESSION}.jsonl"


# Where a folder is


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("/u/src", "/h/code"),
        ("/u/src/shop", "/h/code/shop"),
        ("/u/src/big/x/y", "/b/x/y"),
        ("/u/src/big", "/b"),
        ("/u/srcs/shop", "/u/srcs/shop"),
        ("/u", "/u"),
        ("", ""),
        ("/home/me/there/x", "/home/me/here/x"),
        ("/usr/x.y/z", "/usr/x.y/z"),
        ("/none/\0/x", "/h/none/\0/x"),
    ],
)
def test_the_longest_whole_prefix_counts(folder: str, found: str) -> None:
    mapping = {"/u/src/": "/h/code", "/u/src/big": "/b/", "~/there": "~/here", "/usr": "/nowhere", "/none": "/h/none"}
    assert client_files.local_path_map({**mapping, "/usr/x.y": "/usr/x.y"}, "/home/me")(folder) == found


def test_a_folder_that_is_here_stays(tmp_path: Path) -> None:
    here = client_files.local_path_map({str(tmp_path): "/elsewhere"}, "/home/me")
    assert here(str(tmp_path)) == str(tmp_path)
    assert here(f"{tmp_path}/gone") == "/elsewhere/gone"


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=6)), st.text(max_size=9))
def test_any_text_has_a_folder(mapping: dict[str, str], folder: str) -> None:
    known = {left: right for left, right in mapping.items() if settings.is_folder(left) and settings.is_folder(right)}
    assert isinstance(client_files.local_path_map(known, "/home/me")(folder), str)


# What commands do


def test_restore_and_resume_go_to_the_folder_here(mapped: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tip = place(mapped, mapped.project), run_git(mapped.store, "rev-parse", SESSION)
    done = mapped("resume", "5e55", "--print")
    assert (done.code, done.out) == (0, f"claude --resume {SESSION}\n")
    assert done.err == f"It is from another machine: ~/{path.relative_to(mapped.home)} was written.\n"
    assert path.is_file()
    assert run_git(mapped.store, "rev-parse", SESSION) == tip
    monkeypatch.chdir(mapped.home)
    there = shlex.quote(str(mapped.project))
    assert mapped.out("resume", "5e55", "--print") == f"cd {there} && claude --resume {SESSION}\n"
    ran: list[str] = []

    def execvp(program: str, arguments: list[str]) -> None:
        ran.extend((*arguments, str(Path.cwd())))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvp", execvp)
    mapped("resume", "5e55")
    assert ran == ["claude", "--resume", SESSION, str(mapped.project)]
    path.unlink()
    assert mapped.out("restore", "5e55").startswith(f"~/{path.relative_to(mapped.home)} was restored:")


def test_what_was_never_here_is_not_lost(mapped: Shell, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "other")
    assert mapped.json("restore", "--all-lost")["restored"] == []
    mapped("restore", "5e55")
    mapped("log", "5e55")
    place(mapped, mapped.project).unlink()
    (back,) = mapped.json("restore", "--all-lost")["restored"]
    assert back["path"] == str(place(mapped, mapped.project))


def test_lists_count_it_in(mapped: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (listed,) = mapped.json("ls")["sessions"]
    assert (listed["id"], listed["project"]) == (SESSION, str(mapped.project))
    assert SESSION[:8] in mapped.out("tree")
    assert SESSION in json.dumps(mapped.json("search", "one"))
    assert [one["key"] for one in mapped.json("stats", "--by", "project")["rows"]] == [str(mapped.project)]
    assert "~/shop" in mapped.out("log", "5e55")
    assert mapped("log").err == f"(using {SESSION[:8]}, the most recent conversation in this project)\n"
    (mapped.home / "else").mkdir()
    monkeypatch.chdir(mapped.home / "else")
    assert mapped.json("ls")["sessions"] == []


def test_a_name_is_unique_in_the_folder_here(mapped: Shell) -> None:
    mapped.keep(Talk("0e55ffff-0000-4000-8000-000000000009", cwd=str(mapped.project)).turns("mine"))
    mapped("import")
    mapped.out("rename", "5e55", "the parser")
    done = mapped("rename", "0e55", "the parser")
    assert done.code == 3, done


def test_a_fork_is_written_for_it_and_stays_of_its_project(mapped: Shell) -> None:
    fork = mapped.json("fork", "5e55", "--at", "1")
    assert Path(fork["transcript"]).parent == place(mapped, mapped.project).parent
    assert fork["resume"] == f"claude --resume {fork['id']}"
    assert f'"cwd": "{THERE}/shop"' in run_git(mapped.store, "show", f"{fork['id']}:session.json")


def test_what_goes_on_here_keeps_the_project_of_its_origin(mapped: Shell, tmp_path: Path) -> None:
    mapped("restore", "5e55")
    path = place(mapped, mapped.project)
    talk = Talk(cwd=str(mapped.project))
    talk.lines[:] = path.read_bytes().split(b"\n")[:-1]
    talk.file.counts, talk.file.seconds = dict.fromkeys("abcd", 100), 5000
    talk.leaf = "d0000004-0000-4000-8000-000000000001"
    path.write_bytes(talk.turns("three").data)
    log = mapped.json("log", "5e55")
    assert (len(log["turns"]), log["session"]["project"]) == (3, str(mapped.project))
    state = run_git(mapped.store, "show", f"{SESSION}:session.json")
    assert f'"cwd": "{THERE}/shop"' in state
    assert f'"transcript_path": "{path}"' in state
    # Back on the machine of its origin its own file is meant, wherever the state says that it was.
    other = Store(tmp_path / "other" / "store")
    run_git(other.path, "fetch", "-q", str(mapped.store), f"+refs/heads/{SESSION}:refs/heads/{SESSION}")
    done = restore.restore_session(other, SESSION, claude_homes(tmp_path / "other" / "claude"))
    assert (done.appended, done.path.parent.name) == (1, "-home-ada-shop")


def test_without_a_mapping_the_hint_names_it(sessgit: Shell, tmp_path: Path) -> None:
    from_elsewhere(sessgit, tmp_path, Talk(cwd=f"{THERE}/shop").turns("one"))
    done = sessgit("resume", "5e55", "--print")
    assert (done.code, done.err) == (
        4,
        f"Error: the project's folder is gone: {THERE}/shop.\n"
        f"Hint: map its folder to one here with `sessgit config project.map.{THERE}/shop DIR`.\n",
    )


def test_a_restore_without_a_mapping_says_so_too(sessgit: Shell, tmp_path: Path) -> None:
    from_elsewhere(sessgit, tmp_path, Talk(cwd=f"{THERE}/my shop").turns("one"))
    assert sessgit("restore", "5e55").err == (
        f"The project's folder is gone: {THERE}/my shop. "
        "To continue it elsewhere: sessgit fork 5e551011 --project DIR; map its folder to one here with `"
        f"sessgit config 'project.map.{THERE}/my shop' DIR`.\n"
    )


def test_a_restore_for_a_folder_here_leaves_the_other_machines_project_alone(sessgit: Shell, tmp_path: Path) -> None:
    from_elsewhere(sessgit, tmp_path, Talk(cwd=f"{THERE}/my shop").turns("one"))
    tip = run_git(sessgit.store, "rev-parse", SESSION)
    done = sessgit("restore", "5e55", "--project", ".")
    path = place(sessgit, sessgit.project)
    assert (done.code, done.out.splitlines()[0]) == (0, f"~/{path.relative_to(sessgit.home)} was restored:")
    assert done.err == (
        f"{THERE}/my shop is mapped to ~/shop on this machine "
        f"(undo: sessgit config --unset 'project.map.{THERE}/my shop').\n"
    )
    assert path.is_file()
    assert run_git(sessgit.store, "rev-parse", SESSION) == tip
    assert [one["id"] for one in sessgit.json("ls")["sessions"]] == [SESSION]
    assert sessgit.out("resume", "5e55", "--print") == f"claude --resume {SESSION}\n"
    again = sessgit("restore", "5e55", "--project", ".")
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith(f"~/{path.relative_to(sessgit.home)} already exists:")
    sessgit.out("config", "--unset", f"project.map.{THERE}/my shop")
    assert sessgit.json("ls")["sessions"] == []


def test_one_that_was_restored_for_its_missing_folder_first_stays_the_other_machines(
    sessgit: Shell, tmp_path: Path
) -> None:
    from_elsewhere(sessgit, tmp_path, Talk(cwd=f"{THERE}/my shop").turns("one"))
    shutil.rmtree(tmp_path / "other")
    sessgit("restore", "5e55")
    sessgit("log", "5e55")
    tip = run_git(sessgit.store, "rev-parse", SESSION)
    done = sessgit("restore", "5e55", "--project", ".")
    assert done.err.startswith(f"{THERE}/my shop is mapped to ~/shop on this machine (undo: ")
    assert run_git(sessgit.store, "rev-parse", SESSION) == tip


def test_a_folder_here_that_moved_stands_for_the_other_machines_all_the_same(mapped: Shell) -> None:
    mapped("restore", "5e55")
    mapped("log", "5e55")
    old, tip = place(mapped, mapped.project), run_git(mapped.store, "rev-parse", SESSION)
    moved = mapped.project.rename(mapped.home / "store")
    done = mapped("restore", "5e55", "--project", str(moved))
    assert done.out.splitlines()[0] == f"~/{place(mapped, moved).relative_to(mapped.home)} was moved:"
    assert f"{THERE}/shop is mapped to ~/store on this machine" in done.err
    assert (old.exists(), run_git(mapped.store, "rev-parse", SESSION)) == (False, tip)
    assert mapped.json("log", "5e55")["session"]["project"] == str(moved)


def test_what_was_held_here_moves_by_its_state(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk(cwd="/nowhere/shop").turns("one")).unlink()
    sessgit.out("restore", "5e55", "--project", str(tmp_path))
    assert run_git(sessgit.store, "log", "-1", "--format=%s", SESSION).startswith("edit: project /")
    assert sessgit.out("config", "project.map") == ""


def test_what_is_off_here_is_off_by_the_folder_here(mapped: Shell) -> None:
    mapped("restore", "5e55")
    mapped("off")
    path = place(mapped, mapped.project)
    with path.open("ab") as file:
        file.write(Talk().turns("three").lines[0] + b"\n")
    assert "its project is off" in mapped("log", "5e55").err


# The setting


def test_set_and_unset(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert sessgit.out("config", "project.map") == ""
    sessgit.out("config", "project.map./home/anna.b/code", THERE)
    sessgit.out("config", "project.map.~/v1.2", "~/v2")
    assert sessgit.out("config", "project.map").splitlines() == [
        f"project.map./home/anna.b/code  {THERE}",
        "project.map.~/v1.2             ~/v2",
    ]
    assert sessgit.out("config", "project.map./home/anna.b/code") == f"{THERE}\n"
    assert (sessgit.store / "config.toml").read_text() == (
        f'[project.map]\n"/home/anna.b/code" = "{THERE}"\n"~/v1.2" = "~/v2"\n'
    )
    sessgit.out("config", "--unset", "project.map./home/anna.b/code")
    sessgit.out("config", "--unset", "project.map")
    assert sessgit.out("config", "project.map") == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [("project.map.src", "/x"), ("project.map./x", "src"), ("project.map./x", "7"), ("project.x", "/x")],
)
def test_what_is_no_folder(sessgit: Shell, key: str, value: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    done = sessgit("config", key, value)
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "Hint: Nothing was changed. `sessgit config` lists keys and values.",
    )
    assert not (sessgit.store / "config.toml").exists()
