"""A pull ends with what to type where the client's own file lacks the turns that came."""

from __future__ import annotations

from pathlib import Path

import pytest
from desks import Desks, desks
from transcripts import OTHER, SESSION, Talk


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Desks:
    """Two machines that have two conversations, each in a file of its own client."""
    made = desks(monkeypatch, capsys, tmp_path)
    for session in (SESSION, OTHER):
        made.here.record(Talk(session, cwd=str(made.here.shell.project)).turns("one"))
    made.here("push", "--all")
    assert "lacks" not in made.there("pull").out
    for session in (SESSION, OTHER):
        made.there("restore", session, "--project", str(made.there.shell.project))
    return made


def went_on(pair: Desks, *sessions: str) -> None:
    """The conversations go on here, and are pushed."""
    for session in sessions:
        pair.here.record(Talk(session, cwd=str(pair.here.shell.project)).turns("one", "two"))
    pair.here("push", "--all")


def test_one_conversation(pair: Desks) -> None:
    went_on(pair, SESSION)
    assert "lack" not in pair.there("pull", "--dry-run").out
    assert pair.there.out("pull").splitlines()[-2:] == [
        "1 conversation has turns that your client's file lacks.",
        f"Continue with: sessgit resume {SESSION}",
    ]
    assert "2 turns" in pair.there("log", SESSION).out
    assert pair.there("resume", SESSION, "--print").err == "The client's file lacked 1 turn, now appended.\n"
    assert pair.there.out("pull") == ""


def test_several_conversations(pair: Desks) -> None:
    went_on(pair, SESSION, OTHER)
    assert pair.there.out("pull").splitlines()[-3:] == [
        "2 conversations have turns that your client's files lack.",
        f"Continue with: sessgit resume {SESSION}",
        f"               sessgit resume {OTHER}",
    ]


def test_for_programs_and_in_a_sync(pair: Desks) -> None:
    went_on(pair, SESSION)
    assert pair.there.json("pull", "--dry-run")["behind"] == []
    assert pair.there.json("pull")["behind"] == [SESSION]
    went_on(pair, OTHER)
    assert "Continue with: sessgit resume" in pair.there("sync").out


def test_what_was_said_of_it_and_what_has_no_file_lack_nothing(pair: Desks) -> None:
    pair.here.out("rename", SESSION, "parser")
    pair.here("push", "--all")
    assert pair.there.json("pull")["behind"] == []
    next(pair.there.shell.config.glob(f"projects/*/{OTHER}.jsonl")).unlink()
    went_on(pair, OTHER)
    assert pair.there.json("pull")["behind"] == []


def test_the_other_side_is_not_what_the_file_lacks(pair: Desks) -> None:
    path = next(pair.there.shell.config.glob(f"projects/*/{SESSION}.jsonl"))
    talk = Talk(SESSION, cwd=str(pair.there.shell.project)).turns("one")
    talk.file.counts = {kind: number + 5000 for kind, number in talk.file.counts.items()}
    path.write_bytes(path.read_bytes() + b"".join(line + b"\n" for line in talk.turns("aside").lines[-8:]))
    pair.there("log", SESSION)
    went_on(pair, SESSION)
    done = pair.there.json("pull")
    assert [one["change"] for one in done["changes"]] == ["diverged"]
    assert done["behind"] == []
