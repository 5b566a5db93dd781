"""A disk that is full, broken or not ours, under every command: a clear error, and nothing is worse than before."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from crashstories import THIRD, hub, recorded, rich
from crashworld import LONG, Snapshot, World, worlds
from gate import Call, Gate
from transcripts import OTHER, SESSION

from sessgit.cli import app
from sessgit.errors import ROOM

_WHERE = {
    errno.ENOSPC: ("write", "open", "mkdir", "link", "rename"),
    errno.EIO: ("write", "fsync", "rename"),
    errno.EACCES: ("open", "mkdir", "link", "rename", "unlink"),
}
"""Which calls fail so."""

COMMANDS = {
    "install": [("install",)],
    "uninstall": [("uninstall",)],
    "on": [("on",)],
    "off": [("off",)],
    "import": [("import",)],
    "recover": [("recover",)],
    "status": [("status",)],
    "ls": [("ls", "--all")],
    "tree": [("tree",)],
    "log": [("log", SESSION)],
    "show": [("show", SESSION), ("show", f"{SESSION}@1"), ("show", f"{SESSION}@1.1")],
    "search": [("search", "one")],
    "diff": [("diff", SESSION, OTHER)],
    "stats": [("stats",)],
    "cells": [("cells", SESSION)],
    "deps": [("deps", f"{SESSION}@1.1")],
    "why": [("why", "x.py", SESSION)],
    "blame": [("blame", "x.py")],
    "new": [("new", "--title", "plans", "--parent", SESSION, "--inherit")],
    "fork": [("fork", SESSION, "--at", "1")],
    "merge": [("merge", OTHER, "--into", SESSION), ("merge", OTHER, "--into", SESSION, "--new")],
    "pick": [("pick", f"{OTHER}@1", "--into", SESSION)],
    "resume": [("resume", "--print", SESSION)],
    "restore": [("restore", THIRD), ("restore", "--all-lost")],
    "rename": [("rename", SESSION, "another")],
    "edit": [("edit", SESSION, "--description", "x")],
    "tag": [("tag", "there", SESSION)],
    "pad": [("pad", "add", "insight", "x", "--into", SESSION), ("pad", SESSION)],
    "archive": [("archive", SESSION)],
    "unarchive": [("unarchive", THIRD)],
    "delete": [("delete", OTHER, "--yes")],
    "purge": [("purge", "About else", "--yes")],
    "ops": [("ops",)],
    "undo": [("undo",)],
    "gc": [("gc",), ("gc", "--prune", "--yes")],
    "export": [("export", "markdown", SESSION, "-o", "out.md"), ("export", "claude", SESSION, "-o", "out")],
    "verify": [("verify",)],
    "repair": [("repair", SESSION)],
    "doctor": [("doctor",), ("doctor", "--fix")],
    "remote": [("remote", "add", "other", "/nowhere")],
    "push": [("push", "hub", SESSION)],
    "pull": [("pull", "hub")],
    "sync": [("sync", "hub")],
    "config": [("config", "record.granularity", "cell")],
    "id": [("id",)],
    "prompt": [("prompt",)],
}
"""Each command in the forms that write most."""
_NAMES = [name for name in COMMANDS if name in app.COMMANDS]
_WITHOUT_END = ("watch", "bridge", "bisect", "replay", "web", "mcp")
"""They wait for others, or run what one tells them to."""


class Filled(NamedTuple):
    world: World
    start: Snapshot
    picture: Mapping[str, str]


@pytest.fixture(scope="module")
def filled(gated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    with worlds(tmp_path_factory.mktemp("faults")) as world:
        recorded(world, rich(world), world.talk(OTHER).turns("else"), world.talk(THIRD).turns("third"))
        world.done(world.cli("archive", THIRD))
        (world.transcripts / f"{THIRD}.jsonl").unlink()
        hub(world)
        world.done(world.cli("push", "hub", OTHER))
        world.done(world.cli("tag", "here", SESSION))
        world.talk(OTHER).turns("else", "more").save(world.transcripts)  # so that a command has something to record
        yield Filled(world, world.snapshot(), world.picture())


def test_every_command_is_tried() -> None:
    assert {*COMMANDS, *_WITHOUT_END} >= set(app.COMMANDS)


_POINTS = 8 if LONG else 1
"""So many calls of each command fail, each with each error, for once and from there on."""


def failing(below: Path, why: int, number: int, *, lasting: bool = True) -> Gate:
    """A gate at which call `number` fails, if one of its kind can fail so; where it lasts, each one after it too."""

    def choose(n: int, call: Call) -> int | None:
        hit = n >= number if lasting else n == number
        return why if hit and call.kind in _WHERE[why] else None

    return Gate([str(below)], choose)


def _tried(count: int, chance: random.Random) -> list[int]:
    return sorted(chance.sample(range(1, count + 1), min(count, _POINTS)))


@pytest.mark.parametrize("name", _NAMES if LONG else random.Random(3).sample(_NAMES, 9))
def test_a_disk_that_fails(filled: Filled, name: str) -> None:
    world, start, before = filled
    chance = random.Random(name)
    for words in COMMANDS[name]:
        world.reset(start)
        gate = Gate([str(world.root)])
        whole = world.run(world.cli(*words), gate)
        assert whole.code in (0, 1, 3, 4, 6), (words, whole.said)
        after, count = world.picture(), len(gate.calls)
        for why in _WHERE if LONG else [chance.choice(list(_WHERE))]:
            for number in _tried(count, chance) if count else []:
                for lasting in (True, False) if LONG else [chance.random() < 0.6]:
                    world.reset(start)
                    gate = failing(world.root, why, number, lasting=lasting)
                    ended = world.run(world.cli(*words), gate)
                    told = f"{errno.errorcode[why]} {'from' if lasting else 'at'} {number} of {count}: {words}"
                    assert ended.code in (0, 1, 3, 4, 6, 7), (told, ended)
                    assert "Traceback" not in ended.said and "a bug" not in ended.said, (told, ended)
                    if ended.code == 7:
                        assert "\nHint: " in ended.said, (told, ended)
                    assert world.fsck() == "", told
                    found = world.picture()
                    for key in {*before, *found}:
                        assert found.get(key) in (before.get(key), after.get(key)) or _is_new(key, before), (told, key)
                    world.a_while_passes()
                    world.done(world.cli("log", SESSION))


@pytest.mark.parametrize("name", ["fork", "merge", "pick", "archive", "unarchive", "delete", "undo", "tag"])
def test_a_disk_that_fails_as_refs_move(filled: Filled, name: str) -> None:
    """The ref is there then, or one of several: nobody else moved it, and what git was told is not said again."""
    world, start, before = filled
    words, failed = COMMANDS[name][-1], 0
    world.reset(start)
    if name == "undo":  # of several refs
        world.done(world.cli("delete", SESSION, "--yes"))
        start, before = world.snapshot(), world.picture()
    gate = Gate([str(world.root)])
    assert world.run(world.cli(*words), gate).code == 0
    after, refs = world.picture(), world.store / "refs"
    for number, call in enumerate(gate.calls, start=1):
        if call.kind not in ("fsync", "rename") or not Path(call.to or call.path).is_relative_to(refs):
            continue
        world.reset(start)
        ended = world.run(world.cli(*words), failing(world.root, errno.EIO, number, lasting=False))
        told = (number, call, ended.said)
        assert ended.code in (0, 7), told
        assert "someone else" not in ended.said and (not ended.code or "\nHint: " in ended.said), told
        failed += ended.code == 7
        found = world.picture()
        assert all(found.get(key) in (before.get(key), after.get(key)) or _is_new(key, before) for key in found), told
        world.a_while_passes()
        world.done(world.cli("ls", "--all"))
    assert failed


def _is_new(key: str, before: Mapping[str, str]) -> bool:
    """A session that was made, or a step on the way of one."""
    return key not in before or SESSION in key or OTHER in key


@pytest.mark.parametrize("why", _WHERE, ids=errno.errorcode.get)
def test_a_recorder_on_a_disk_that_fails(filled: Filled, why: int) -> None:
    """Once there is room again, the next event brings all in."""
    world, start, _ = filled
    world.reset(start)
    talk = world.talk(OTHER).turns("else", "more")
    world.event("Stop", talk)
    begun = world.snapshot()
    gate = Gate([str(world.root)])
    world.run(world.recorder(), gate)
    world.next_event(talk, "SessionEnd")
    after, count = world.picture(), len(gate.calls)
    chance = random.Random(why)
    for number in range(1, count + 1) if LONG else sorted(chance.sample(range(1, count + 1), 2)):
        world.reset(begun)
        gate = failing(world.root, why, number)
        ended = world.run(world.recorder(), gate)
        assert (ended.code, ended.said) == (0, ""), (number, ended)
        world.a_while_passes()
        world.next_event(talk, "SessionEnd")
        assert world.picture() == after, number
        assert world.fsck() == ""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[World]:
    """A world on a disk of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mount is not allowed here")
    try:
        yield World(disk / "w", tmp_path)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_small_disk_that_is_full(small: World) -> None:
    """With no room, or hardly any: an error with a hint; and all of it comes in once there is room again."""
    recorded(small, small.talk().turns("one"), small.talk(OTHER).turns("else"))
    talk = small.talk().turns("one", "two " + "x" * 20_000)
    talk.save(small.transcripts)
    rest = small.root.parent / "rest"
    before = small.picture()
    for room in (0, 1, 2, 4, 8, 16) if LONG else (0, 4):
        with rest.open("wb") as file:
            file.write(b"x" * 4096 * max(0, os.statvfs(rest).f_bavail - room))
        for words in [("ls", "--all"), ("log", OTHER), ("search", "one"), ("rename", OTHER, "a name"), ("gc",)]:
            ended = small.run(small.cli(*words))
            assert ended.code in (0, 7) and (ended.code == 0 or "\nHint: " in ended.said), (room, ended)
        small.run(small.cli("import"))
        rest.unlink()
        assert small.fsck() == ""
    assert small.picture().keys() == before.keys()
    small.next_event(talk)
    assert "2 turns" in small.done(small.cli("log", SESSION)).said


def test_the_hint_of_a_full_disk(filled: Filled) -> None:
    world, start, _ = filled
    world.reset(start)
    ended = world.run(world.cli("rename", SESSION, "another"), failing(world.store, errno.ENOSPC, 1))
    assert (ended.code, ended.said.splitlines()[-1]) == (7, f"Hint: {ROOM}")


def test_a_store_that_cannot_be_written(filled: Filled, tmp_path: Path) -> None:
    """As on a file system that is mounted for reading: whoever only reads does so."""
    world, start, before = filled
    world.reset(start)
    reading = ("ls", "log", "search", "export", "show", "diff", "stats", "cells", "tree", "status", "ops")
    for name in reading if LONG else reading[:4]:
        for words in COMMANDS[name]:
            gate = Gate([str(world.store)], lambda n, call: errno.EROFS)
            ended = world.run(world.cli(*words), gate)
            assert ended.code == 0, (words, ended)
    writing = ("fork", "rename", "gc", "merge", "archive", "delete", "import", "pad")
    for name in writing if LONG else writing[:3]:
        for words in COMMANDS[name][:1]:
            gate = Gate([str(world.store)], lambda n, call: errno.EROFS)
            ended = world.run(world.cli(*words), gate)
            assert ended.code in (1, 3, 7) and "Hint: " in ended.said, (words, ended)
    assert {k: v for k, v in world.picture().items() if k.startswith("refs/")} == {
        k: v for k, v in before.items() if k.startswith("refs/")
    }
