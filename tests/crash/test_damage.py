"""A disk that lost something: derived files come back, and damage in one session leaves all others usable."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from crashstories import THIRD, hub, recorded, rich
from crashworld import LONG, Snapshot, World, worlds
from plain import run_git
from transcripts import OTHER, SESSION

from sessgit.store.layout import StorePaths

READING = [
    ("log", OTHER), ("show", OTHER), ("show", f"{OTHER}@1"), ("cells", OTHER), ("show", f"{OTHER}@1.1"),
    ("deps", f"{OTHER}@1.1"), ("diff", OTHER, THIRD), ("export", "json", OTHER), ("restore", OTHER, "--verify"),
    ("resume", "--print", OTHER), ("why", "x.py", OTHER), ("pad", OTHER),
]  # fmt: skip
WRITING = [
    ("rename", OTHER, "another"), ("edit", OTHER, "--description", "x"), ("tag", "there", OTHER),
    ("pad", "add", "insight", "x", "--into", OTHER), ("fork", OTHER, "--at", "1"), ("import",),
    ("pick", f"{THIRD}@1", "--into", OTHER), ("merge", THIRD, "--into", OTHER), ("archive", OTHER),
    ("unarchive", OTHER), ("push", "hub", OTHER), ("pull", "hub"),
    ("delete", THIRD, "--yes"), ("undo",),
]  # fmt: skip
"""One after another, on sessions that are whole."""
WHOLE = [
    ("ls", "--all"), ("search", "else"), ("stats",), ("status",), ("tree",), ("verify",), ("doctor",), ("gc",),
    ("sync", "hub"),
    ("restore", "--all-lost"), ("recover",), ("log", SESSION), ("show", SESSION), ("show", f"{SESSION}@1"),
    ("fork", SESSION, "--at", "1"), ("restore", SESSION, "--verify"), ("merge", SESSION, "--into", OTHER),
    ("repair", SESSION),
    ("archive", SESSION), ("delete", SESSION, "--yes"), ("push", "hub", SESSION), ("export", "markdown", SESSION),
]  # fmt: skip
"""On all, or on the one that is damaged: an answer, or an error that says what to do."""


@pytest.fixture(scope="module")
def filled(gated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Snapshot]]:
    with worlds(tmp_path_factory.mktemp("damage")) as world:
        recorded(world, rich(world), world.talk(OTHER).turns("else", "more"), world.talk(THIRD).turns("third"))
        hub(world)
        world.done(world.cli("ls", "--all"))
        world.done(world.cli("search", "else"))
        yield world, world.snapshot()


def answers(world: World, words: tuple[str, ...]) -> tuple[int, str]:
    ended = world.run(world.cli(*words))
    assert ended.code != 70 and "Traceback" not in ended.said, (words, ended)
    return ended.code, ended.said


# Derived files


def _version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")


def _emptied(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%(%'").fetchall():
            if not name.startswith("sqlite_"):
                db.execute(f"DROP TABLE IF EXISTS {name}")
        db.commit()


DERIVED: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage": lambda path: path.write_bytes(random.Random(1).randbytes(9000)),
    "garbage inside": lambda path: path.write_bytes(path.read_bytes()[:5000] + random.Random(1).randbytes(9000)),
    "of another version": _version,
    "without its tables": _emptied,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("how", DERIVED if LONG else ["truncated", "without its tables"])
def test_an_index_that_is(filled: tuple[World, Snapshot], how: str) -> None:
    world, start = filled
    paths = StorePaths(world.store)
    asked = [("ls", "--all"), ("search", "else"), *READING[:3]]
    world.reset(start)
    expected = [answers(world, words) for words in asked]
    for words, wanted in zip(asked, expected, strict=True):
        world.reset(start)
        for path in (paths.index, paths.text):
            DERIVED[how](path)
        found = answers(world, words)
        if (how, words[0]) == ("a folder", "search"):
            assert found[0] == 7 and "Hint: " in found[1]
        else:
            assert found == wanted
    world.reset(start)
    for path in (paths.index, paths.text):
        DERIVED[how](path)
    talk = world.talk(OTHER).turns("else", "more", "most")
    talk.save(world.transcripts)
    world.next_event(talk)
    assert "3" in answers(world, ("log", OTHER))[1].splitlines()[1]


def test_an_index_that_is_locked(filled: tuple[World, Snapshot]) -> None:
    """By a process that goes on for as long as it likes; that one keeps nobody from recording, nor from reading."""
    world, start = filled
    world.reset(start)
    paths = StorePaths(world.store)
    with closing(sqlite3.connect(paths.index)) as one, closing(sqlite3.connect(paths.text)) as two:
        one.execute("BEGIN EXCLUSIVE")
        two.execute("BEGIN EXCLUSIVE")
        begun = time.monotonic()
        for words in [("ls", "--all"), READING[0]]:
            code, said = answers(world, words)
            assert code in (0, 7) and (not code or "Hint: " in said), said
        assert time.monotonic() - begun < 60
    assert answers(world, ("ls", "--all"))[0] == 0


# The truth itself


def _object(world: World, name: str) -> Path:
    oid = run_git(world.store, "rev-parse", name).strip()
    return world.store / "objects" / oid[:2] / oid[2:]


def _loose(world: World) -> None:
    """Everything lies loose, so that one object can be damaged alone."""
    for pack in (world.store / "objects" / "pack").glob("*.pack"):
        away = pack.rename(world.root / pack.name)
        pack.with_suffix(".idx").unlink()
        with away.open("rb") as file:
            subprocess.run(
                ["git", "-C", str(world.store), "unpack-objects", "-q"], stdin=file, check=True, env=world.env
            )
        away.unlink()


def _spoil(world: World, name: str, data: bytes | None) -> None:
    _loose(world)
    path = _object(world, f"refs/heads/{SESSION}{name}")
    path.chmod(0o600)
    path.unlink() if data is None else path.write_bytes(data)


def _own_pack(world: World) -> None:
    """A pack of what only that session has, cut in its middle."""
    _loose(world)
    own, others = (
        {line.split()[0] for line in run_git(world.store, "rev-list", "--objects", *heads).splitlines()}
        for heads in ([f"refs/heads/{SESSION}"], [f"refs/heads/{name}" for name in (OTHER, THIRD)])
    )
    oids = "".join(f"{oid}\n" for oid in sorted(own - others))
    place = world.store / "objects" / "pack" / "pack"
    subprocess.run(["git", "-C", str(world.store), "pack-objects", "-q", str(place)], input=oids.encode(), check=True,
                   capture_output=True, env=world.env)  # fmt: skip
    run_git(world.store, "prune-packed", "-q")
    (pack,) = place.parent.glob("*.pack")
    pack.chmod(0o600)
    os.truncate(pack, pack.stat().st_size // 2)


def _ref(data: bytes) -> Callable[[World], None]:
    def damage(world: World) -> None:
        (world.store / "refs" / "heads").mkdir(exist_ok=True)
        (world.store / "refs" / "heads" / SESSION).write_bytes(data)

    return damage


def _cut_packed(world: World) -> None:
    """In the middle of the damaged one's line, which is made the last one."""
    run_git(world.store, "pack-refs", "--all")
    packed = world.store / "packed-refs"
    lines = packed.read_text().splitlines(keepends=True)
    own = [line for line in lines if line.rstrip().endswith(SESSION)]
    packed.write_text("".join(line for line in lines if line not in own) + own[0][:50])


TRUTH: dict[str, Callable[[World], object]] = {
    "a blob is garbage": lambda world: _spoil(world, ":turns/0000/000001/transcript.jsonl", b"what a disk gives"),
    "a blob is empty": lambda world: _spoil(world, ":turns/0000/000001/transcript.jsonl", b""),
    "a blob is missing": lambda world: _spoil(world, ":turns/0000/000001/transcript.jsonl", None),
    "the state is garbage": lambda world: _spoil(world, ":session.json", b"what a disk gives"),
    "the state is missing": lambda world: _spoil(world, ":session.json", None),
    "a tree is empty": lambda world: _spoil(world, ":turns", b""),
    "a tree is missing": lambda world: _spoil(world, "^{tree}", None),
    "the tip is garbage": lambda world: _spoil(world, "", b"what a disk gives"),
    "the tip is missing": lambda world: _spoil(world, "", None),
    "a commit in between is missing": lambda world: _spoil(world, "~1", None),
    "a pack is cut": _own_pack,
    "a ref leads nowhere": _ref(b"1234567890123456789012345678901234567890\n"),
    "a ref is rubbish": _ref(b"\x00\xff rubbish\n"),
    "a ref is empty": _ref(b""),
    "a ref names another one": _ref(b"ref: refs/heads/nobody\n"),
    "packed-refs is cut": _cut_packed,
}


@pytest.mark.parametrize("how", TRUTH if LONG else ["a blob is garbage", "the tip is missing", "a pack is cut"])
def test_damage_in_one_session(filled: tuple[World, Snapshot], how: str) -> None:
    world, start = filled
    world.reset(start)
    expected = [answers(world, words) for words in READING]
    world.reset(start)
    TRUTH[how](world)
    damaged = world.snapshot()
    assert [answers(world, words) for words in READING] == expected
    assert OTHER[:8] in answers(world, ("ls", "--all"))[1] and THIRD[:8] in answers(world, ("ls", "--all"))[1]
    assert "else" in answers(world, ("search", "else"))[1]
    for words in WHOLE if LONG else random.Random(how).sample(WHOLE, 2):
        world.reset(damaged)
        code, said = answers(world, words)
        assert code in (0, 1, 3, 4, 6, 7), (words, said)
        assert code not in (6, 7) or "Hint: " in said or words[0] in ("verify", "doctor", "repair"), (words, said)
        assert words[0] == "merge" or answers(world, READING[0]) == expected[0], words
    world.reset(damaged)
    if how == "packed-refs is cut":  # no ref can be moved, and that is said
        code, said = answers(world, WRITING[0])
        assert code == 7 and "Hint: packed-refs in the store is damaged" in said
        answers(world, ("doctor", "--fix"))
        assert [answers(world, words)[0] for words in [*WRITING, ("log", SESSION)]] == [0] * (len(WRITING) + 1)
        return
    for words in WRITING if LONG else WRITING[:4]:
        code, said = answers(world, words)
        assert code in ((0, 1) if words == ("import",) else (0,)), (words, said)
    talk = world.talk(OTHER).turns("else", "more", "most")
    talk.save(world.transcripts)
    world.next_event(talk)


def test_an_index_over_damage_is_made_anew(filled: tuple[World, Snapshot]) -> None:
    world, start = filled
    world.reset(start)
    _spoil(world, "", None)
    for path in (StorePaths(world.store).index, StorePaths(world.store).text):
        path.unlink()
    said = answers(world, ("ls", "--all"))[1]
    assert OTHER[:8] in said and THIRD[:8] in said


# Time


@pytest.mark.parametrize("shift", [-86400, 400 * 86400, -40 * 365 * 86400] if LONG else [-86400])
def test_a_clock_that_jumps(filled: tuple[World, Snapshot], shift: int) -> None:
    """Files of the future, a command of the past, and the other way round: nothing waits, nothing is left out."""
    world, start = filled
    world.reset(start)
    moment = time.time() - shift
    talk = world.talk(OTHER).turns("else", "more", "most")
    talk.save(world.transcripts)
    world.event("Stop", talk)
    for lock in (f"refs/heads/{OTHER}.lock", "packed-refs.lock"):
        (world.store / lock).write_bytes(b"")
    for folder, _, names in os.walk(world.root):
        for name in names:
            os.utime(Path(folder, name), (moment, moment))
    world.done(world.recorder())
    assert "3 turns" in answers(world, ("log", OTHER))[1]
    for words in [
        *READING,
        ("ls", "--all"),
        ("status",),
        ("stats",),
        ("gc",),
        ("archive", THIRD),
        ("undo",),
        ("recover",),
    ]:
        ended = world.run(world.cli(*words, now=max(1.0, time.time() + shift)))
        assert ended.code in (0, 4) and "Traceback" not in ended.said, (words, ended)
    assert world.fsck() == ""
