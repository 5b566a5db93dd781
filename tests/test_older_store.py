"""A store that version 0.1.0 recorded: a rewind, forks at a turn and inside one, merges, a tag, an archived
conversation, a redacted value, packs. `expected` in the archive is what that version restored, and its refs."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from shell import Shell
from transcripts import OTHER, SESSION

ARCHIVE = Path(__file__).with_name("store-0.1.tar.xz")


@pytest.fixture
def older(sessgit: Shell) -> Shell:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(sessgit.home, filter="data")
    return sessgit


def test_its_refs_stay_and_every_object_is_whole(older: Shell) -> None:
    assert older("verify", "--deep").code == 0
    assert len(older.json("ls", "--all")["sessions"]) == 3
    refs = subprocess.run(
        ["git", "for-each-ref", "--format=%(objectname) %(refname)"],
        cwd=older.store, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert refs == (older.home / "expected" / "refs").read_text()
    subprocess.run(["git", "fsck", "--strict", "--no-dangling"], cwd=older.store, capture_output=True, check=True)


def test_its_turns_are_shown(older: Shell) -> None:
    turns = older.json("log", OTHER)["turns"]
    assert [turn["prompt"].splitlines()[0] for turn in turns] == [
        "another conversation",
        "its second turn",
        "its third",
        "Brought back from 6f05e11d, “variant”: 2 turns",
        "three",
        "four again",
        "five: password=[redacted:password]",
    ]
    assert older("search", "hunter2-Xq9vT7pLw").code == 1
    assert older.out("show", "start").startswith(f"{SESSION}@1  ·  10:00")


@pytest.mark.parametrize("name", [SESSION, OTHER, "variant", "partial"])
def test_it_restores_the_same_bytes(older: Shell, name: str) -> None:
    done = older("restore", name, "-o", "-")
    assert (done.code, done.out) == (0, (older.home / "expected" / f"{name}.jsonl").read_text())


def test_it_is_forked_and_recorded_further(older: Shell) -> None:
    fork = json.loads(older("fork", OTHER, "--at", "6", "--json").out)
    assert older.json("log", fork["id"])["turns"][-1]["turn"] == 6
    older.recorded(older.talk("5e551011-0000-4000-8000-00000000000a").turns("new here"))
    assert len(older.json("ls", "--all")["sessions"]) == 5
    assert older("gc").code == 0
    assert older("verify", "--deep").code == 0
