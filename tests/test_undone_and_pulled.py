"""A merge that is undone just before turns of another machine come."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import Clone, pair
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import restore
from sessgit.check import verify


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Clone, Clone]]:
    with pair(tmp_path) as found:
        yield found


def merged_and_undone(here: Clone, talk: Talk) -> None:
    """What a copy of the conversation had more is merged, and taken back; the file is as it was before."""
    other = talk.fork_session(OTHER)
    other.file.counts = dict.fromkeys("abcde", 70)
    here.record(other.turns("aside"))
    here.merge(OTHER)
    assert here.keys() == [*talk.prompts, other.prompts[-1]]
    here.undo()
    assert (here.place / f"{SESSION}.jsonl").read_bytes() == talk.data
    assert here.keys() == talk.prompts


def test_the_file_goes_on_without_them(machines: tuple[Clone, Clone]) -> None:
    """They never stood in it, and so on no branch that a rewind left."""
    here, there = machines
    talk = Talk().turns("one", "two")
    here.record(talk, final=True)
    here.push()
    there.pull()
    there.record(copy.deepcopy(talk).turns("three there"))
    there.push()
    merged_and_undone(here, talk)
    here.pull(SESSION)
    assert here.keys() == [*talk.prompts, "a0000003-0000-4000-8000-000000000001"]
    talk.file.counts.update(dict.fromkeys("abcde", 50))
    here.record(talk.turns("three here"), final=True)
    assert {name for name in here.refs() if SESSION in name} == {
        f"refs/heads/{SESSION}",
        f"refs/heads/{SESSION}.m-a0000003",
    }
    assert here.keys() == talk.prompts
    assert restore.rebuild_file(here.store, SESSION).data == talk.data


def test_what_waited_for_a_prompt_is_not_missed(machines: tuple[Clone, Clone]) -> None:
    """The name is in a line that the merge's turn stood behind, and that waits once more."""
    here, there = machines
    talk = Talk().turns("one").title("Tries")
    here.record(talk)
    here.push()
    there.pull()
    merged_and_undone(here, talk)
    assert verify.verify_session(here.store, SESSION, deep=True).findings == ()
    here.record(talk, final=True)
    assert restore.rebuild_file(here.store, SESSION).data == talk.data
