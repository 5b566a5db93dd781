"""`sessgit gc` where there is no room, or where what it reads is damaged: an error, and the store as it was."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plain import run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION

from sessgit.store import layout
from sessgit.store import store as stores
from sessgit.store.store import Store

_OBJECTS = 1 << 18
"""The bytes of an object, which no packing makes smaller: git searches deltas for all of them."""


@pytest.fixture
def sessgit(sessgit: Shell) -> Shell:
    """A store with more than a megabyte that is not packed, and something that a prune makes final."""
    stores.create_store(sessgit.store)
    return filled(sessgit, 6)


def filled(sessgit: Shell, objects: int) -> Shell:
    (sessgit.store / "config.toml").write_text('[undo]\nkeep = ""\n')
    sessgit.recorded(sessgit.talk().turns("one", "two"), sessgit.talk(OTHER).turns("else"))
    sessgit.out("delete", OTHER, "--yes")
    run_git(sessgit.store, "config", "core.compression", "0")  # what is random takes long, and no less room
    store, chance = Store(sessgit.store), random.Random(1)
    tree = store.write_folder({str(number): chance.randbytes(_OBJECTS) for number in range(objects)})
    store.repo.move("refs/tags/big", None, store.repo.write_commit(tree, [], "big", int(NOW)))
    store.repo.release()
    return sessgit


def everything(store: Path) -> tuple[str, str]:
    """All refs, and all objects that they lead to."""
    return run_git(store, "for-each-ref"), run_git(store, "rev-list", "--all", "--objects")


def is_whole(sessgit: Shell) -> bool:
    return run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def unfinished(store: Path) -> list[str]:
    found = [*(store / "objects").rglob("*"), *store.glob("packed-refs.*")]
    return [path.name for path in found if path.name.startswith(("tmp_", ".tmp-", "packed-refs"))]


def limited(sessgit: Shell, size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where no file may be larger than so many bytes."""
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    command = f'ulimit -f {size // 512}; exec "$@"'
    program = ["sh", "-c", command, "sh", sys.executable, "-m", "sessgit", *arguments]
    return subprocess.run(program, env=env, cwd=sessgit.project, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("prune", [(), ("--prune", "--yes")])
@pytest.mark.parametrize("size", [0, 1 << 17, 1 << 20])
def test_no_room_for_the_pack(sessgit: Shell, size: int, prune: tuple[str, ...]) -> None:
    before = everything(sessgit.store)
    done = limited(sessgit, size, "gc", *prune)
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith("Error: git could not pack the store: ")
    assert done.stderr.endswith("\nHint: Is there room on the disk, and may you write there?\n")
    assert everything(sessgit.store) == before
    assert is_whole(sessgit)
    assert unfinished(sessgit.store) == []
    assert sessgit.json("gc", *prune)["leftovers"] == 0
    assert not layout.StorePaths(sessgit.store).packing.exists()


def test_no_room_for_the_packed_refs(sessgit: Shell) -> None:
    """The pack is there by then, and its objects are, loose or packed."""
    run_git(sessgit.store, "update-ref", "-d", "refs/tags/big")
    assert sessgit("gc", "--prune", "--yes").code == 0
    tip = run_git(sessgit.store, "rev-parse", f"refs/heads/{SESSION}").strip()
    with (sessgit.store / "packed-refs").open("a") as file:
        file.writelines(f"{tip} refs/tags/t{number:05d}\n" for number in range(4000))
    before = everything(sessgit.store)
    done = limited(sessgit, 1 << 17, "gc")
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith("Error: git could not pack the store: ")
    assert everything(sessgit.store) == before
    assert is_whole(sessgit)
    sessgit.now = 2 * NOW
    assert sessgit("gc").code == 0
    assert unfinished(sessgit.store) == []
    assert everything(sessgit.store) == before


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """The same on a disk of its own, which is nearly full of it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mount is not allowed here")
    try:
        sessgit = Shell(monkeypatch, capsys)
        sessgit.store = disk / "store"
        monkeypatch.setenv("SESSGIT_STORE", str(sessgit.store))
        stores.create_store(sessgit.store)
        yield filled(sessgit, 24)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk(small: Shell) -> None:
    """With any room that is not enough, it fails, and all of that room is there again."""
    other = small.store.parent / "other"
    before = everything(small.store)
    for room in (0, 1, 2, 3, 5, 8, 16, 64, 256, 1024):
        with other.open("wb") as file:
            free = os.statvfs(other).f_bavail
            file.write(b"x" * 4096 * max(0, free - room))
        done = small("gc", "--prune", "--yes")
        assert (done.code, done.out) == (7, ""), room
        assert done.err.splitlines()[1:] == ["Hint: Is there room on the disk, and may you write there?"]
        # What goes once the index is closed.
        beside = sum(path.stat().st_blocks * 512 for path in small.store.glob("index.sqlite3-*"))
        assert os.statvfs(other).f_bavail + beside // 4096 >= min(free, room) - 2
        other.unlink()
        assert everything(small.store) == before
        assert unfinished(small.store) == []
    assert is_whole(small)
    assert small.json("gc", "--prune", "--yes")["final"] == [OTHER]
    assert is_whole(small)


def test_a_damaged_object(sessgit: Shell) -> None:
    (blob, *_) = run_git(sessgit.store, "ls-tree", "refs/tags/big").split()[2:]
    damaged = sessgit.store / "objects" / blob[:2] / blob[2:]
    damaged.chmod(0o600)
    damaged.write_bytes(b"what a disk gives")
    before = run_git(sessgit.store, "for-each-ref")
    done = sessgit("gc", "--prune", "--yes")
    assert (done.code, done.out) == (7, "")
    assert done.err.endswith("Hint: Nothing was changed. `sessgit verify` shows what is missing or damaged.\n")
    assert run_git(sessgit.store, "for-each-ref") == before
    assert damaged.exists()
