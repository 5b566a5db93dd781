"""`sessgit restore` and `sessgit resume`: a conversation back as the client's file, and continued."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.agents.claude import home
from sessgit.cli import text


def test_a_file_that_the_client_has_deleted(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one", "two").rewind(1).turns("other two"))
    data = path.read_bytes()
    path.unlink()
    shown, size = f"~/{path.relative_to(sessgit.home)}", text.size(len(data))
    assert sessgit.out("restore", "5e55") == f"{shown} was restored:\n{size}, byte for byte as the client wrote it.\n"
    assert path.read_bytes() == data
    assert (path.stat().st_mode & 0o777) == 0o600
    assert sessgit.out("restore", "5e55") == (
        f"{shown} already exists:\n{size}, byte for byte as the client wrote it.\n"
    )


def test_never_over_another_file(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    path.write_text("something else\n")
    done = sessgit("restore", "5e55")
    assert (done.code, path.read_text()) == (3, "something else\n")
    assert done.err.splitlines()[-1] == ("Hint: It was not changed. To write elsewhere, use `--output FILE`.")


def test_to_another_place(sessgit: Shell, tmp_path: Path) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    found = sessgit.json("restore", "5e55", "--output", str(tmp_path / "out.jsonl"))
    assert found == {
        "id": SESSION,
        "path": str(tmp_path / "out.jsonl"),
        "bytes": path.stat().st_size,
        "exact": True,
        "redacted": 0,
        "missing": 0,
        "rewritten": False,
        "proved": 2,
        "already": False,
        "named": False,
        "appended": 0,
        "files": [],
        "turns": None,
        "file": None,
        "same": None,
    }
    assert (tmp_path / "out.jsonl").read_bytes() == path.read_bytes()


def test_to_another_place_where_a_file_is(sessgit: Shell, tmp_path: Path) -> None:
    path, out = sessgit.recorded(sessgit.talk().turns("one")), tmp_path / "out.jsonl"
    for already in (False, True):
        assert sessgit.json("restore", "5e55", "--output", str(out))["already"] is already
        assert out.read_bytes() == path.read_bytes()
    for other in (path.read_bytes() + b"more\n", b"something else\n"):
        out.write_bytes(other)
        assert (sessgit("restore", "5e55", "--output", str(out)).code, out.read_bytes()) == (3, other)


def test_to_standard_output(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one", "zwei – drei"))
    assert sessgit.out("restore", "5e55", "-o", "-").encode() == path.read_bytes()
    assert list(sessgit.project.iterdir()) == []
    assert sessgit("restore", "5e55", "-o", "-", "--json").code == 2
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert sessgit("restore", "5e55", "-o", "-").err == (
        "Error: a transcript cannot be shown on a terminal.\nHint: Use `--output FILE`, or a pipe.\n"
    )


def test_what_is_not_as_written_is_said_beside_standard_output(sessgit: Shell) -> None:
    token = "ghp_" + "Zk3vQ8yT1mXw7LrB5nCd9PsJ2hFg6AuEtR4W"
    sessgit.recorded(sessgit.talk().prompt(f"use {token}").answer("No."))
    done = sessgit("restore", "5e55", "-o", "-")
    assert (done.code, token in done.out, done.out.count("\n")) == (0, False, 3)
    assert done.err.endswith(" kB, as the client wrote it except for 1 secret that is redacted.\n")


def test_what_was_redacted_is_said(sessgit: Shell, tmp_path: Path) -> None:
    token = "ghp_" + "Zk3vQ8yT1mXw7LrB5nCd9PsJ2hFg6AuEtR4W"
    sessgit.recorded(sessgit.talk().prompt(f"use {token}").answer("No."))
    said = sessgit.out("restore", "5e55", "--output", str(tmp_path / "out.jsonl"))
    assert said.endswith(" kB, as the client wrote it except for 1 secret that is redacted.\n")
    assert token not in (tmp_path / "out.jsonl").read_text()


def test_the_proof(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one", "two"))
    assert (
        sessgit.out("restore", "5e55", "--verify")
        == f"""\
{SESSION}: 2 turns, no damage.
Hashes     3 hashes of lines match (Lines-SHA256, taken when they were recorded)
File       {text.size(path.stat().st_size)}, byte for byte as the client wrote it.
Compared   equal to ~/{path.relative_to(sessgit.home)}
"""
    )
    path.unlink()
    assert sessgit.out("restore", "5e55", "--verify").splitlines()[-1] == (
        "The client has deleted its file: only this store has it."
    )
    found = sessgit.json("restore", "5e55", "--verify")
    assert (found["path"], found["exact"], found["proved"], found["file"], found["same"]) == (None, True, 3, None, None)
    assert not path.exists()


def test_damage_is_found(sessgit: Shell) -> None:
    """A commit whose trailer does not fit its lines, as a wrong program could have made it."""
    sessgit.recorded(sessgit.talk().turns("one"))
    message = run_git(sessgit.store, "log", "-1", "--format=%B", SESSION).strip()
    assert "Lines-SHA256" in message
    wrong = message.replace("Lines-SHA256: ", "Lines-SHA256: 00")
    tree = run_git(sessgit.store, "rev-parse", f"{SESSION}^{{tree}}").strip()
    parent = run_git(sessgit.store, "rev-parse", f"{SESSION}^").strip()
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = run_git(sessgit.store, *identity, "commit-tree", tree, "-p", parent, "-m", wrong).strip()
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", commit)
    (sessgit.store / "state" / f"{SESSION}.json").unlink()
    next(sessgit.config.glob("projects/*/*.jsonl")).unlink()
    done = sessgit("restore", "5e55", "--verify")
    assert done.code == 6
    assert done.err.startswith("Error: the lines of turn ")


def test_only_whole_conversations(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    done = sessgit("restore", "5e55@1")
    assert (done.code, done.err) == (
        2,
        "Error: only a whole conversation can be restored.\n"
        "Hint: `sessgit fork 5e551011 --at 1` makes a conversation that ends there.\n",
    )


def test_a_hint_names_one_of_two_whose_ids_begin_alike(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"), sessgit.talk(OTHER).turns("one", "three"))
    done = sessgit("restore", f"{SESSION}@1")
    assert done.err.splitlines()[-1] == (f"Hint: `sessgit fork {SESSION} --at 1` makes a conversation that ends there.")


def test_resume_restores_first(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    path.unlink()
    monkeypatch.chdir(tmp_path)
    ran: list[object] = []

    def execvp(program: str, arguments: list[str]) -> None:
        ran.extend((program, arguments, str(Path.cwd())))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvp", execvp)
    done = sessgit("resume", "5e55")
    assert done.err == f"The client had deleted it: ~/{path.relative_to(sessgit.home)} was restored.\n"
    assert ran == ["claude", ["claude", "--resume", SESSION], str(sessgit.project)]
    assert path.exists()


def test_resume_only_at_the_end(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    assert sessgit.out("resume", "5e55@2", "--print") == f"claude --resume {SESSION}\n"
    done = sessgit("resume", "5e55@1", "--print")
    assert (done.code, done.err) == (
        2,
        "Error: only a whole conversation can be continued.\n"
        "Hint: `sessgit fork 5e551011 --at 1 --run` makes a conversation that ends there.\n",
    )


def test_resume_where_the_folder_is_gone(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk(OTHER, cwd="/nowhere").turns("one"))
    monkeypatch.chdir(tmp_path)
    done = sessgit("resume", OTHER)
    assert (done.code, done.err) == (
        4,
        "Error: the project's folder is gone: /nowhere.\n"
        f"Hint: `sessgit fork {OTHER[:8]} --project DIR` makes a copy that continues in DIR.\n",
    )


def test_the_last_lines_of_a_killed_client_are_recorded_once_it_has_been_quiet(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    path = sessgit.recorded(talk)
    path = sessgit.keep(talk.turns("two").title("A late title"))
    sessgit.out("log", "5e55")
    assert sessgit.json("restore", "5e55", "--verify")["missing"] >= len(talk.lines[-1])
    hint = "Lines after the last turn are missing: its client was killed. To record them: sessgit recover\n"
    for arguments in (("--verify",), ("-o", str(sessgit.home / "copy")), ("-o", "-")):
        assert sessgit("restore", "5e55", *arguments).err.endswith(hint)

    os.utime(path, (sessgit.now - 120,) * 2)
    assert sessgit.json("restore", "5e55", "--verify")["missing"] == 0
    assert sessgit("restore", "5e55", "--verify").err == ""
    data = path.read_bytes()
    path.unlink()
    sessgit.out("restore", "5e55")
    assert path.read_bytes() == data


@pytest.mark.parametrize("stopped", [False, True])
def test_a_project_that_moved_takes_its_transcript_along(sessgit: Shell, stopped: bool) -> None:
    old = sessgit.home / "old"
    old.mkdir()
    talk = sessgit.talk(cwd=str(old)).turns("one")
    place = home.project_folder(sessgit.config, str(old)) / f"{SESSION}.jsonl"
    place.parent.mkdir(parents=True)
    place.write_bytes(talk.data)
    assert sessgit("import").code == 0
    old.rename(sessgit.home / "new")
    target = home.project_folder(sessgit.config, str(sessgit.home / "new")) / place.name
    if stopped:  # between the new name and the end of the old one
        target.parent.mkdir()
        target.hardlink_to(place)
    done = sessgit.out("restore", SESSION, "--project", str(sessgit.home / "new"))
    assert done.splitlines()[0] == f"~/{target.relative_to(sessgit.home)} was moved:"
    assert (place.exists(), target.read_bytes()) == (False, talk.data)
    assert sessgit.json("log", SESSION)["session"]["project"] == str(sessgit.home / "new")


def test_a_file_that_has_gone_on_is_said_to_be_there(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    monkeypatch.setenv("SESSGIT_OFF", "1")
    with path.open("ab") as file:
        file.write(b'{"type":"mode"}\n')
    done = sessgit("restore", "5e55")
    hint = "Hint: Nothing needs to be restored. To record the rest, use `sessgit import FILE`."
    assert (done.code, done.err.splitlines()[-1]) == (3, hint)
    assert sessgit("restore", "5e55", "--output", str(sessgit.home / "none" / "x")).code == 4
    assert not (sessgit.home / "none").exists()
