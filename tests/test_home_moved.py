"""A home that lies at another path than when its conversations were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell
from transcripts import OTHER, SESSION


@pytest.fixture
def moved(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """One conversation that was archived before the move and one that was not."""
    sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("two"))
    sessgit.out("archive", SESSION)
    to = sessgit.home.with_name(f"{sessgit.home.name}-moved")
    sessgit.home.rename(to)
    monkeypatch.setenv("HOME", str(to))
    monkeypatch.chdir(to / "shop")
    sessgit.home, sessgit.config, sessgit.store = to, to / ".claude", to / ".claude" / "session-store"
    return sessgit


def transcript(moved: Shell, session: str) -> Path:
    return next(moved.config.glob(f"projects/*/{session}.jsonl"))


def test_what_is_archived_has_not_gone_on(moved: Shell) -> None:
    assert moved.out("log", SESSION).startswith(f"{SESSION}  one\n")


def test_what_is_archived_and_went_on(moved: Shell) -> None:
    path = transcript(moved, SESSION)
    path.write_bytes(path.read_bytes() + b'{"type":"mode","mode":"plan"}\n')
    told = f"{SESSION}: it is archived, and has new turns: sessgit unarchive\n"
    assert moved("log", SESSION).err == told


def test_the_file_is_compared_where_it_lies_now(moved: Shell) -> None:
    for session in (SESSION, OTHER):
        assert moved.out("restore", session, "--verify").endswith(
            f"Compared   equal to ~/{transcript(moved, session).relative_to(moved.home)}\n"
        )


def test_the_card_does_not_say_that_it_is_gone(moved: Shell) -> None:
    assert "only in this store" not in moved.out("show", OTHER)
    transcript(moved, OTHER).unlink()
    assert "only in this store" in moved.out("show", OTHER)
    assert moved.out("restore", OTHER, "--verify").endswith("only this store has it.\n")
