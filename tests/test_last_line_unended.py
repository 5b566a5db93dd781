"""A transcript whose last line nobody ended, recorded to its end: nothing says that it has gone on since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shell import NOW, Shell
from transcripts import OTHER, SESSION

DAY = 86_400
LATER = NOW + 40 * DAY


@pytest.fixture
def unended(sessgit: Shell) -> Path:
    """As a person or another program wrote it: without the last newline."""
    path = sessgit.keep(sessgit.talk().turns("one"))
    path.write_bytes(path.read_bytes()[:-1])
    sessgit.out("import")
    os.utime(path, (LATER - DAY,) * 2)
    sessgit.now = LATER
    return path


def test_an_old_one_is_archived(sessgit: Shell, unended: Path) -> None:
    found = sessgit.json("archive", "--older-than", "30d", "--dry-run")
    assert (found["archived"], found["passed_over"]) == ([SESSION], [])
    assert sessgit.json("restore", SESSION, "--verify")["same"]
    with unended.open("ab") as file:
        file.write(b"\n" + sessgit.talk(OTHER).turns("more").lines[0] + b"\n")
    os.utime(unended, (LATER - DAY,) * 2)
    found = sessgit.json("archive", "--older-than", "30d", "--dry-run")
    assert (found["archived"], found["passed_over"]) == ([], [{"id": SESSION, "why": "gone on unrecorded"}])


def test_one_that_is_archived_has_not_gone_on(sessgit: Shell, unended: Path) -> None:
    sessgit.out("archive", SESSION)
    assert sessgit.out("import") == "0 conversations, 0 turns brought in; 1 was here already\n"
    with unended.open("ab") as file:
        file.write(b"\n")
    assert sessgit.json("import")["archived"] == 1


def test_it_counts_as_recorded(sessgit: Shell, unended: Path) -> None:
    assert "all recorded" in sessgit.out("status", SESSION)
    os.utime(unended, (LATER - 29 * DAY,) * 2)
    assert sessgit.json("status")["deleting"]["unrecorded"] == 0
