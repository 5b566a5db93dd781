"""Two machines whose files of one conversation end in other lines behind its last turn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from desks import Desk, Desks, desks
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.store import refs


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Desks:
    return desks(monkeypatch, capsys, tmp_path)


def head(desk: Desk) -> str:
    return refs.read_all(desk.shell.store)[f"refs/heads/{SESSION}"]


def rounds(both: Desks) -> list[str]:
    """The heads after each of some rounds in which both bring in, get and send all."""
    found = []
    for _ in range(4):
        for desk in (both.here, both.there):
            for command in (["import"], ["pull"], ["import"], ["push", "--all"]):
                assert desk(*command).code == 0
            found.append(head(desk))
    return found


ENDS: list[Callable[[Talk], Talk]] = [Talk.compact, lambda talk: talk.title("Lexers"), lambda talk: talk]


@pytest.mark.parametrize("here", [0, 1, 2])
@pytest.mark.parametrize("there", [0, 1])
def test_they_meet_and_stay_as_they_are(both: Desks, here: int, there: int) -> None:
    talk = Talk(cwd=str(both.here.shell.project)).turns("one")
    path = both.here.record(talk)
    both.here.out("push", "--all")
    both.there.out("pull")
    assert both.there("restore", SESSION, "--project", str(both.there.shell.project)).code == 0
    other = copy.deepcopy(talk)
    other.file.seconds, other.file.counts = 500, dict.fromkeys("abcde", 500)
    place = home.project_folder(both.there.shell.config, str(both.there.shell.project)) / path.name
    assert place.read_bytes() == talk.data
    place.write_bytes(ENDS[there](other).data)
    path.write_bytes(ENDS[here](talk).data)
    found = rounds(both)
    assert len(set(found[-5:])) == 1, found
    assert (path.read_bytes(), place.read_bytes()) == (talk.data, other.data)
    for desk in (both.here, both.there):
        assert desk("verify", "--deep").code == 0
    both.here.record(talk.turns("two"))  # what waited stands before the next prompt
    both.here.out("restore", SESSION, "-o", str(both.here.shell.project / "out"))
    assert (both.here.shell.project / "out").read_bytes() == talk.data
