"""A session whose file lies in two projects, and goes on in each by itself."""

from __future__ import annotations

import copy
from pathlib import Path

from clones import Clone, bare
from transcripts import SESSION, Talk

from sessgit.branch import restore
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store.context import Context


def read(clone: Clone, path: Path) -> None:
    record(Context(clone.index), TranscriptSource(path, SESSION, clone.config))


def writer(talk: Talk) -> Talk:
    """A writer of a copy of the file, whose lines have ids of their own."""
    other = Talk(file=copy.deepcopy(talk.file))
    other.leaf, other.turn = talk.leaf, talk.turn
    other.file.seconds, other.file.counts = 500, dict.fromkeys("abcde", 500)
    return other


def test_a_file_is_restored_so_that_the_client_goes_on_where_the_head_is(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "one", bare(tmp_path / "hub"))
    here = Talk().turns("one", "two")
    there = writer(here)
    paths = [
        here.turns("three here", "four here").save(clone.place),
        there.turns("three there").save(clone.config / "projects" / "-home-ada-other"),
    ]
    for path in [*paths, paths[0]]:
        read(clone, path)
    head = clone.keys()
    assert head == here.prompts
    laid = restore.rebuild_file(clone.store, SESSION).data.splitlines()
    waiting = {*here.lines[-5:-2], *there.lines[-5:-2]}  # for a prompt; the last two stand behind earlier turns as well
    assert set(laid) == {*here.lines, *there.lines} - waiting
    assert laid[-1] == here.lines[-6]
    before = clone.refs()
    for path in paths:
        path.unlink()
    (clone.store.path / "state" / f"{SESSION}.json").unlink()
    restored = clone.place / f"{SESSION}.jsonl"
    restored.write_bytes(restore.rebuild_file(clone.store, SESSION).data)
    read(clone, restored)
    assert clone.refs() == before
    clone.close()
