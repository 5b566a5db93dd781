"""The last conversation is deleted: that goes to a remote as any other deletion does."""

from __future__ import annotations

from pathlib import Path

import pytest
from desks import Desks, desks
from purging import refs
from transcripts import SESSION


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Desks:
    return desks(monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize("words", [("push", "--all"), ("push",)])
def test_the_last_one_is_deleted_there(pair: Desks, words: tuple[str, ...]) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    pair.here.out("config", "sync.include", '["/*"]')
    pair.here.out("push")
    pair.here.out("delete", SESSION, "--yes")
    (change,) = pair.here.json(*words)["changes"]
    assert (change["id"], change["change"]) == (SESSION, "deleted")
    assert [ref.split("/")[1] for ref in refs(pair.hub)] == ["deleted"]


def test_where_nothing_ever_was_it_says_so(pair: Desks) -> None:
    for words in (("push", "--all"), ("push", "origin", SESSION), ("push", "--label", "x")):
        done = pair.here(*words)
        assert (done.code, done.err.startswith("Error: nothing is recorded yet")) == (4, True)
