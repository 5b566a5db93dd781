"""`sessgit gc`: small, whole whatever interrupts it, and never in anybody's way."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from plain import Keep, run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.errors import StoreError
from sessgit.store import layout, locks, maintenance, refs
from sessgit.store.store import Store

DAY = 86_400


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.recorded(shell.talk().turns("one", "two"), shell.talk(OTHER).turns("else"))
    return shell


def loose(path: Path) -> int:
    return int(run_git(path, "count-objects").split()[0])


def fsck(path: Path) -> None:
    assert run_git(path, "fsck", "--strict", "--no-dangling") == ""


def test_what_it_says(sessgit: Shell) -> None:
    sessgit("rename", "parser", SESSION)
    assert loose(sessgit.store) > 0
    count = sum(int(part.split()[1]) for part in run_git(sessgit.store, "count-objects", "-v").splitlines()
                if part.startswith(("count:", "in-pack:")))  # fmt: skip
    said = sessgit.out("gc")
    assert said.startswith(f"{count} objects, ")
    assert said.endswith(" kB\n")
    assert loose(sessgit.store) == 0
    again = sessgit.json("gc")
    assert again["before"] == again["after"]
    assert {**again, "before": 0, "after": 0} == {
        "before": 0, "after": 0, "leftovers": 0, "expired": 0, "pruned": False, "final": [],
    }  # fmt: skip
    fsck(sessgit.store)


def test_there_must_be_a_store(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "none"))
    assert sessgit("gc").code == 4


def test_what_nothing_leads_to_stays_until_it_is_pruned(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    loose_one = store.repo.write_blob(b"about to be named")
    store.repo.release()
    assert sessgit("gc").code == 0
    packed = store.repo.write_blob(b"about to be named")  # which is there, so nothing is written
    assert packed == loose_one
    store.repo.release()
    assert loose(sessgit.store) == 0
    run_git(sessgit.store, "cat-file", "-e", loose_one)
    done = sessgit.json("gc", "--prune")
    assert done["before"]["objects"] == done["after"]["objects"] + 1
    with pytest.raises(AssertionError):
        run_git(sessgit.store, "cat-file", "-e", loose_one)


def test_leftovers_go(sessgit: Shell) -> None:
    objects, heads = sessgit.store / "objects", sessgit.store / "refs" / "heads"
    (objects / "17").mkdir(exist_ok=True)
    pack, packed = objects / "pack", sessgit.store / "packed-refs.lock"
    old = [objects / "17" / "tmp_obj_AbCdEf", objects / "tmp_object_git2_AbCdEf", heads / f"{SESSION}.lock", packed]
    old += [pack / "tmp_pack_AbCdEf", pack / ".tmp-9-pack-a.pack"]
    new = [objects / "17" / "tmp_obj_New", pack / "tmp_pack_New", heads / f"{OTHER}.r-1.lock"]
    for path in [*old, *new]:
        path.write_bytes(b"x" * 100)
        os.utime(path, (NOW - 5,) * 2)
    for path in old:
        os.utime(path, (NOW - 700,) * 2)
    before = sessgit.json("gc")
    assert before["leftovers"] == len(old)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in new)
    for path in new:
        path.unlink()
    assert sessgit.out("gc").count("\n") == 1


def test_what_commands_took_away_is_kept_for_a_while(sessgit: Shell) -> None:
    sessgit("rename", "parser", SESSION)
    sessgit("undo")
    (kept,) = refs.read_all(sessgit.store, layout.KEEP)
    sessgit.now = NOW + 89 * DAY
    assert sessgit.json("gc")["expired"] == 0
    sessgit.now = NOW + 91 * DAY
    (sessgit.store / "config.toml").write_text('[undo]\nkeep = ""\n')
    assert sessgit.json("gc")["expired"] == 0
    assert refs.read_all(sessgit.store, layout.KEEP).keys() == {kept}
    (sessgit.store / "config.toml").write_text('[undo]\nkeep = "12w"\n')
    assert sessgit.out("gc").splitlines()[1] == "1 tip let go that old commands took away"
    assert refs.read_all(sessgit.store, layout.KEEP) == {}
    assert sessgit("gc", "--prune").code == 0
    done = sessgit("undo", sessgit.json("ops")[0]["id"])
    assert (done.code, done.err.splitlines()[0]) == (
        3,
        "Error: what it needs is gone for good: sessgit gc --prune made that final.",
    )


# Others at work


def test_never_two_at_once(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessgit.ops.gc._LOCK_WAIT", 0.1)
    with locks.maintenance(layout.Beside(sessgit.store)) as held:
        assert held
        done = sessgit("gc")
    assert (done.code, done.err) == (
        3,
        "Error: another process is packing the store.\nHint: Nothing was done. Try again in a while.\n",
    )


def test_nothing_is_pruned_while_someone_writes(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessgit.ops.gc._LOCK_WAIT", 0.1)
    store = Store(sessgit.store)
    blob = store.repo.write_blob(b"no ref leads here yet")
    done = sessgit("gc", "--prune")
    assert (done.code, done.err) == (
        3,
        "Error: a recorder or a command is just writing.\n"
        "Hint: The store was packed, but not pruned. Try again in a while.\n",
    )
    run_git(sessgit.store, "cat-file", "-e", blob)
    store.repo.release()
    assert sessgit("gc", "--prune").code == 0


def test_who_writes_waits_for_a_prune(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with locks.pruning(store.beside) as alone:
        assert alone
        monkeypatch.setattr(locks, "LONGEST_PRUNE", 0.05)
        with pytest.raises(StoreError, match="pruning the store"):
            store.repo.write_blob(b"x")
    store.repo.write_blob(b"x")


def test_a_recording_lets_go_in_the_end(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one"))
    with locks.pruning(store.beside) as alone:
        assert alone


def test_recording_while_the_store_is_packed_and_pruned(keep: Keep, store: Store, seal: Path) -> None:
    """A process prunes without end; what is recorded meanwhile is whole. The fixture asks git."""
    keep(Talk().turns("one"))
    env = {"PATH": os.environ["PATH"], "HOME": str(seal), "SESSGIT_STORE": str(store.path)}
    loop = f"while :; do {sys.executable} -m sessgit gc --prune >/dev/null 2>&1; done"
    process = subprocess.Popen(["sh", "-c", loop], env=env, start_new_session=True)
    try:
        talk = Talk().turns("one")
        for number in range(30):
            keep(talk.turns(f"prompt {number}"))
            blob = store.repo.write_blob(b"written again and again, and reached by nothing")
            run_git(store.path, "cat-file", "-e", blob)
            store.repo.release()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 20
    with locks.maintenance(store.beside, 20) as held:
        assert held
    assert time.monotonic() < deadline


# Interrupted


def big(store: Path, megabytes: int) -> None:
    """Objects that take a while to pack."""
    made = Store(store)
    chance = random.Random(1)
    files = {f"{n}": chance.randbytes(1 << 20) for n in range(megabytes)}
    tree = made.write_folder(files)
    commit = made.repo.write_commit(tree, [], "big", int(NOW))
    made.repo.move("refs/tags/big", None, commit)
    made.repo.release()


MOMENTS = ("tmp_pack_*", "tmp_idx_*", ".tmp-*.pack", "pack-*.idx", "tmp_pack_*")


@pytest.mark.parametrize("whole", [True, False])
def test_killed_at_any_moment(sessgit: Shell, whole: bool) -> None:
    """With git, or alone: then git goes on and holds the lock until it ends. The store is whole each time."""
    big(sessgit.store, 8)
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    beside, pack = layout.Beside(sessgit.store), sessgit.store / "objects" / "pack"
    unfinished = overtaken = 0
    for moment in MOMENTS:
        before = set(pack.iterdir())
        process = subprocess.Popen(
            [sys.executable, "-m", "sessgit", "gc", "--prune"], env=env, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None and not set(pack.glob(moment)) - before:
            time.sleep(0.0005)
        with suppress(ProcessLookupError):
            (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        with locks.maintenance(beside) as held:
            overtaken += not held
        unfinished += whole and any(path.name.startswith(("tmp_", ".tmp-")) for path in pack.iterdir())
        fsck(sessgit.store)
    with locks.maintenance(beside, 30) as held:
        assert held
    assert unfinished if whole else overtaken
    sessgit.now = time.time()
    assert sessgit("gc").code == 0
    assert {path.suffix for path in pack.iterdir()} <= {".idx", ".pack", ".rev", ".bitmap"}
    assert len(list(pack.glob("*.pack"))) == 1
    assert not beside.packing.exists()
    fsck(sessgit.store)


def test_a_killed_packing_leaves_its_mark(sessgit: Shell, tmp_path: Path) -> None:
    """A git that is killed leaves a temporary pack of just now, which goes with the next packing."""
    git = tmp_path / "git"
    pack = sessgit.store / "objects" / "pack"
    git.write_text(f"#!/bin/sh\necho half >{pack}/tmp_pack_Half\nkill -9 $$\n")
    git.chmod(0o755)
    with pytest.raises(StoreError, match="git could not pack the store"):
        maintenance.pack(sessgit.store, full=True, git=str(git))
    assert (pack / "tmp_pack_Half").exists()
    sessgit.now = time.time()
    assert sessgit.json("gc")["leftovers"] == 1
    assert not (pack / "tmp_pack_Half").exists()
    fsck(sessgit.store)


def test_a_pack_that_another_git_is_writing_stays(sessgit: Shell) -> None:
    pack = sessgit.store / "objects" / "pack" / "tmp_pack_Fetched"
    pack.write_bytes(b"PACK")
    sessgit.now = time.time()
    assert sessgit.json("gc")["leftovers"] == 0
    assert pack.exists()


def test_git_is_needed(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = sessgit("gc")
    assert (done.code, done.err.splitlines()[0]) == (7, "Error: git is missing.")
