"""The power goes: what was told to be safe is, and what was not comes back from the transcript."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import PurePath

import pytest
from crashstories import STORIES, next_event, recorded
from crashworld import LONG, World
from disk import moments, remains
from gate import Call, Gate
from test_kills import difference
from transcripts import Talk

from sessgit.store import locks
from sessgit.store.layout import StorePaths

_ASIDE = "/tmp_objdir-"
_SHORT = 6
"""So many moments in the short form."""


def traced(world: World, name: str, fsync: bool, *, packs: bool = False) -> tuple[dict[str, str], list[Call]]:
    """What a recorder does, call by call, and what is there when all is done; if it `packs`, that too."""
    world.done(world.cli("config", "record.fsync", str(fsync).lower()))
    gate = Gate([str(world.root)], with_data=True)
    with nullcontext() if packs else locks.maintenance_lock(StorePaths(world.store)):
        ended = world.run(world.recorder(), gate)
    assert ended.code == 0, ended
    STORIES[name].then(world)
    return world.picture(), gate.calls


_STORIES = ["the first event", "an event after rewinds", "an event, cell by cell"]


@pytest.mark.parametrize("name", _STORIES if LONG else _STORIES[1:2])
def test_whenever_the_power_goes_the_next_event_finds_all(world: World, name: str) -> None:
    STORIES[name].make(world)
    world.done(world.cli("config", "record.fsync", "true"))
    start = world.snapshot()
    after, calls = traced(world, name, fsync=True, packs=True)
    every = list(moments(calls))
    tried = set[int]()
    for until in every if LONG else every[:: max(1, len(every) // _SHORT)]:
        for without in ("", f"{world.store}/objects", f"{world.store}/refs", f"{world.store}/state"):
            found = remains(start, calls, until, without)
            if hash(frozenset(found.items())) in tried:
                continue
            tried.add(hash(frozenset(found.items())))
            told = f"{until} of {len(calls)}, {calls[until - 1].kind} {PurePath(calls[until - 1].path).name}, {without}"
            world.lay(found)
            assert world.fsck() == "", told
            world.a_while_passes()
            STORIES[name].then(world)
            assert difference(after, world.picture()) == {}, told
            assert world.fsck() == "", told


def test_objects_are_safe_before_a_ref_and_the_ref_before_the_cursor(world: World) -> None:
    next_event(world)
    _, calls = traced(world, "an event after rewinds", fsync=True)
    objects, heads = f"{world.store}/objects/", f"{world.store}/refs/heads"
    refs = [n for n, call in enumerate(calls) if call.kind in ("rename", "link") and call.path.startswith(heads)]
    cursor = next(n for n, call in enumerate(calls) if call.to == str(StorePaths(world.store).cursor(Talk().session)))
    synced = [(n, call.path) for n, call in enumerate(calls) if call.kind == "fsync"]
    named = [n for n, call in enumerate(calls) if call.to.startswith(objects) and _ASIDE not in call.to]
    for number in named:
        call = calls[number]
        assert call.kind == "rename" and _ASIDE in call.path
        assert any(path == call.path for n, path in synced if n < named[0]), call
        assert any(path == str(PurePath(call.to).parent) for n, path in synced if named[-1] < n < refs[0]), call
    assert len(named) > 20
    every = [path for _, path in synced if path.startswith(objects)]
    assert len(every) == len(set(every))
    assert max(n for n, path in synced if path.startswith(objects)) < refs[0]
    for number in refs:
        assert any(path == calls[number].path for n, path in synced if n < number)
        assert any(path == heads for n, path in synced if number < n < cursor)
    assert len(refs) >= 3 and refs[-1] < cursor


def test_refs_that_move_together_are_safe_before_they_have_their_places(world: World) -> None:
    recorded(world, world.talk().turns("one", "two").rewind(1).turns("other"))
    gate = Gate([str(world.root)])
    ended = world.run(world.cli("archive", Talk().session), gate)
    assert ended.code == 0, ended
    moved = [(n, call.path) for n, call in enumerate(gate.calls) if call.kind == "rename" and "/refs/" in call.path]
    assert len(moved) >= 2
    for number, path in moved:
        assert any(call.kind == "fsync" and call.path == path for call in gate.calls[:number]), path


def test_without_it_the_store_may_be_damaged(world: World) -> None:
    """What the setting is for, and that this file sees it."""
    next_event(world)
    world.done(world.cli("config", "record.fsync", "false"))
    start = world.snapshot()
    _, calls = traced(world, "an event after rewinds", fsync=False)
    state = str(world.store / "state")  # the list of refs, by which a lost one is known, is always synced
    assert not [
        call
        for call in calls
        if call.kind == "fsync"
        and not call.path.startswith(state)
        and "sqlite" not in call.path
        and call.path != str(world.store)
    ]
    world.lay(remains(start, calls, len(calls)))
    assert world.fsck() != ""


def test_what_is_not_derived_is_safe_at_once(world: World) -> None:
    """The key, the settings and what was forbidden come from nowhere else."""
    world.config.mkdir(parents=True)
    start = world.snapshot()
    gate = Gate([str(world.root)], with_data=True)
    world.run(world.cli("install"), gate)
    paths = StorePaths(world.store)
    first = remains(start, gate.calls, len(gate.calls))
    assert len(first[str(paths.key)] or b"") == 32
    start = world.snapshot()
    gate = Gate([str(world.root)], with_data=True)
    world.run(world.cli("off"), gate)
    assert b"exclude" in (remains(start, gate.calls, len(gate.calls))[str(paths.config)] or b"")
    recorded(world)
