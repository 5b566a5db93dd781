"""Older conversations that can be brought in: only what an import takes is counted, before it and after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shell import Shell
from transcripts import OTHER, SESSION

THIRD = "5e551011-0000-4000-8000-000000000003"


@pytest.fixture
def folder(sessgit: Shell) -> Path:
    """One conversation, and files beside it that an import takes none of."""
    path = sessgit.keep(sessgit.talk().turns("one"))
    path.with_name(f"{OTHER}.jsonl").write_text('{"kind":"of another program"}\n' * 100)
    path.with_name(f"{THIRD}.jsonl").write_bytes(b"no JSON at all\n")
    return path.parent


def older(sessgit: Shell) -> int:
    count = sessgit.json("status")["older"]
    assert sessgit.json("install")["older"] == count
    return int(count)


def test_what_an_import_refuses_is_not_counted(sessgit: Shell, folder: Path) -> None:
    assert older(sessgit) == 1
    done = sessgit("import")
    assert done.out == "1 conversation, 1 turn imported; 2 files could not be imported\n"
    assert older(sessgit) == 0
    assert "older" not in sessgit.out("install")
    (folder / f"{OTHER}.jsonl").write_bytes(sessgit.talk(OTHER).turns("now it is one").data)
    assert older(sessgit) == 1


def test_one_that_is_named_by_its_lines_is_known_by_them(sessgit: Shell, folder: Path) -> None:
    (folder / "copied by hand.jsonl").write_bytes(sessgit.talk(OTHER).turns("two").data)
    assert older(sessgit) == 2
    sessgit("import")
    assert older(sessgit) == 0
    assert sessgit.json("log", OTHER)["turns"][0]["prompt"] == "two"


def test_a_first_line_that_is_longer_than_what_is_looked_at(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().prompt("x" * 2_000_000).answer("long"))
    assert older(sessgit) == 1
    assert sessgit.out("import") == "1 conversation, 1 turn imported\n"
    assert older(sessgit) == 0


def test_one_that_was_deleted_is_not_counted_again(sessgit: Shell, folder: Path) -> None:
    sessgit("import")
    sessgit.out("delete", SESSION, "--yes")
    assert older(sessgit) == 0


def test_those_that_the_client_deletes_soon(sessgit: Shell, folder: Path) -> None:
    sessgit("import")
    for path in folder.iterdir():
        os.utime(path, (sessgit.now - 29 * 86_400,) * 2)
    going = sessgit.json("status")["deleting"]
    assert (going["transcripts"], going["unrecorded"]) == (3, 0)
