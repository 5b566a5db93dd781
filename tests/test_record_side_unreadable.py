"""Files beside a transcript that seem to hold something and cannot be read: nothing is recorded again for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from plain import Git, Keep
from transcripts import Talk


def _link(path: Path) -> None:
    path.symlink_to(path.parent.parent.parent / "elsewhere")
    (path.parent.parent.parent / "elsewhere").write_text("{}")


@pytest.mark.parametrize("make", [_link, Path.mkdir], ids=["link", "folder"])
def test_what_a_subagents_notes_are_not(keep: Keep, git: Git, claude: Path, make: Callable[[Path], None]) -> None:
    """An import of a file that has not changed adds no commit."""
    talk = Talk().turns("one")
    beside = claude / talk.session / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a1.jsonl").write_text('{"promptId":"p","type":"user","message":{"content":"hi"},"uuid":"s1"}\n')
    make(beside / "agent-a1.meta.json")
    keep(talk, final=True)
    before = git("rev-list", "--all")
    for _ in range(3):
        assert not keep(talk, final=True).changed
    assert git("rev-list", "--all") == before


def test_notes_that_grew_are_recorded_once(keep: Keep, git: Git, claude: Path) -> None:
    talk = Talk().turns("one")
    beside = claude / talk.session / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a1.jsonl").write_text('{"promptId":"p","type":"user","message":{"content":"hi"},"uuid":"s1"}\n')
    notes = beside / "agent-a1.meta.json"
    notes.write_text('{"agentType":"x"}')
    keep(talk, final=True)
    notes.write_text('{"agentType":"reviewer"}')
    assert keep(talk, final=True).changed
    assert not keep(talk, final=True).changed
    shown = git("show", f"{talk.session}:turns/0000/000001/subagents/agent-a1.meta.json")
    assert shown == '{"agentType":"reviewer"}'
