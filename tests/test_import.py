"""`sessgit import`: what it brings in, what it says of files that it cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION


def test_all_of_the_clients_and_again(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one", "two"))
    sessgit.keep(sessgit.talk(OTHER).turns("three"))
    assert sessgit.out("import") == "2 conversations, 3 turns brought in\n"
    refs = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("import") == "0 conversations, 0 turns brought in; 2 were here already\n"
    assert run_git(sessgit.store, "for-each-ref") == refs
    assert sessgit.json("import") == {
        "sessions": 0, "turns": 0, "unchanged": 2, "excluded": 0, "archived": 0, "deleted": 0, "errors": [],
    }  # fmt: skip


def test_files_and_folders(sessgit: Shell, tmp_path: Path) -> None:
    one = sessgit.talk().turns("one").save(tmp_path / "a")
    sessgit.talk(OTHER).turns("two").save(tmp_path / "b" / "c")
    assert sessgit.out("import", str(one)) == "1 conversation, 1 turn brought in\n"
    assert sessgit.out("import", str(tmp_path)) == "1 conversation, 1 turn brought in; 1 was here already\n"


def test_a_fork_finds_its_parent_whatever_the_order(sessgit: Shell, tmp_path: Path) -> None:
    parent = sessgit.talk(OTHER).turns("one", "two")
    fork = parent.branch(SESSION).turns("three")
    sessgit.out("import", str(fork.save(tmp_path / "a")), str(parent.save(tmp_path / "b")))
    assert [(s["id"], s["parent"], s["fork_turn"]) for s in sessgit.json("ls")] == [
        (OTHER, None, None),
        (SESSION, OTHER, 2),
    ]


def test_what_cannot_be_read_is_named_and_the_others_go_on(sessgit: Shell, tmp_path: Path) -> None:
    good = sessgit.talk().turns("one").save(tmp_path)
    missing = tmp_path / "missing.jsonl"
    done = sessgit("import", str(missing), str(good))
    assert (done.code, done.out, done.err) == (
        1,
        "1 conversation, 1 turn brought in; 1 file could not be read\n",
        f"{missing}: there is no file {missing}\n",
    )


def test_without_git_the_store_is_whole(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    sessgit.keep(sessgit.talk().turns("one"))
    done = sessgit("import")
    assert (done.code, done.out) == (0, "1 conversation, 1 turn brought in\n")
    assert done.err == (
        "The store could not be packed: git is missing. Install git 2.30 or later: the store is packed with it.\n"
    )
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@1 one\n"
