"""What a recording has read of the store, and somebody else changes before it writes."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clones import Clone, bare
from pictures import branches, conversation, log, rewound
from plain import Keep, Rivalled
from transcripts import SESSION, Talk

from sessgit.branch import restore
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.backend import Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store


class _RivalledIndex(Index):
    """A real index that somebody else acts before when it is first brought level."""

    act: Callable[[], object] | None = None

    def sync(self, session: str | None = None) -> None:
        act, self.act = self.act, None
        if act is not None:
            act()
        super().sync(session)


class _KilledError(Exception):
    pass


def recorded(store: Store, path: Path, index: Index | None = None) -> None:
    own = index or Index(store.path, lambda: store)
    record(Context(own), TranscriptSource(path, SESSION, path.parents[2]))
    if index is None:
        own.close()


def test_a_prompt_that_somebody_records_between_the_refs_and_the_index(
    keep: Keep, store: Store, claude: Path, tmp_path: Path
) -> None:
    """Of two recorders without a lock one has moved the first of two refs when the other reads them, and the second one
    when that one asks the index: the new prompt is known there, and is no second copy of a line for that."""
    talk = Talk().turns("one", "two")
    keep(talk)
    path = talk.rewind(1).turns("three").save(claude)
    moved = list[str]()

    def kill() -> None:
        if moved:
            raise _KilledError
        moved.append("the first ref")

    store.repo = Rivalled(store.path, kill, times=2)
    with pytest.raises(_KilledError):
        recorded(store, path)
    assert set(branches(store)) == {SESSION, rewound(2)}
    store.repo = Repository(store.path)
    index = _RivalledIndex(store.path, lambda: store)
    index.act = lambda: recorded(Store(store.path), path)
    recorded(store, path, index)
    index.close()

    stores.create_store(tmp_path / "alone")
    alone = Store(tmp_path / "alone")
    recorded(alone, path)
    assert conversation(store) == conversation(alone)
    keep(talk, final=True)
    assert restore.rebuild_file(store, SESSION).data == talk.data


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Clone, Clone]]:
    """Two machines with one conversation of two turns, and a remote that holds it."""
    remote, clock = bare(tmp_path / "remote"), itertools.count()
    here, there = (Clone(tmp_path / f"clone-{number}", remote, number, clock) for number in range(2))
    yield here, there
    here.check()
    here.close()
    there.close()


def test_turns_from_elsewhere_that_are_pulled_while_the_file_is_recorded(machines: tuple[Clone, Clone]) -> None:
    """They never stood in this file: they are another machine's, and not a branch left behind by a rewind."""
    here, there = machines
    talk = Talk().turns("one", "two")
    here.record(talk)
    here.push()
    there.pull()
    there.record(copy.deepcopy(talk).turns("three there"))
    there.push()
    talk.file.counts["a"] = 50
    here.store.repo = Rivalled(here.store.path, here.pull)
    here.record(talk.turns("three here"))
    assert {name: log(here.store, name)[1:] for name in branches(here.store)} == {
        SESSION: ["turn 1: one", "turn 2: two", "turn 3: three here"],
        f"{SESSION}.m-a0000003": ["turn 1: one", "turn 2: two", "turn 3: three there"],
    }
    here.record(talk, final=True)
    assert restore.rebuild_file(here.store, SESSION).data == talk.data
