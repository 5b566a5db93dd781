"""`sessgit gc`: small, whole whatever interrupts it, and never in anybody's way."""

from __future__ import annotations

import json
import os
import pkgutil
import random
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from kept import begins
from plain import Keep, run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION, Talk
from waiting import PATIENCE

from sessgit.errors import StoreError
from sessgit.store import layout, locks, maintenance, refs
from sessgit.store.store import Store

DAY = 86_400
THIRD = "5e551011-0000-4000-8000-000000000003"


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("one", "two"), shell.talk(OTHER).turns("else"))


def loose(path: Path) -> int:
    return int(run_git(path, "count-objects").split()[0])


def fsck(path: Path) -> None:
    assert run_git(path, "fsck", "--strict", "--no-dangling") == ""


def test_what_it_says(sessgit: Shell) -> None:
    sessgit("rename", SESSION, "parser")
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
    done = sessgit.json("gc", "--prune", "--yes")
    assert done["before"]["objects"] == done["after"]["objects"] + 1
    with pytest.raises(AssertionError):
        run_git(sessgit.store, "cat-file", "-e", loose_one)


def test_leftovers_go(sessgit: Shell) -> None:
    objects, heads = sessgit.store / "objects", sessgit.store / "refs" / "heads"
    (objects / "17").mkdir(exist_ok=True)
    pack, packed = objects / "pack", sessgit.store / "packed-refs.lock"
    old = [objects / "17" / "tmp_obj_AbCdEf", objects / "tmp_object_git2_AbCdEf", heads / f"{SESSION}.lock", packed]
    old += [pack / "tmp_pack_AbCdEf", pack / ".tmp-9-pack-a.pack", pack / "pack-a.keep"]
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
    sessgit("rename", SESSION, "parser")
    sessgit("undo")
    (kept,) = refs.read_all(sessgit.store, layout.KEEP)
    sessgit.now = NOW + 89 * DAY
    assert sessgit.json("gc")["expired"] == 0
    sessgit.now = NOW + 91 * DAY
    (sessgit.store / "config.toml").write_text('[undo]\nkeep = ""\n')
    assert sessgit.json("gc")["expired"] == 0
    assert refs.read_all(sessgit.store, layout.KEEP).keys() == {kept}
    (sessgit.store / "config.toml").write_text('[undo]\nkeep = "12w"\n')
    assert sessgit.out("gc").splitlines()[1] == "1 expired undo ref removed"
    assert refs.read_all(sessgit.store, layout.KEEP) == {}
    assert sessgit("gc", "--prune", "--yes").code == 0
    done = sessgit("undo", sessgit.json("ops")["operations"][0]["id"])
    assert (done.code, done.err.splitlines()[0]) == (
        3,
        "Error: the data it needs was deleted for good by sessgit gc --prune.",
    )


# Others at work


def test_never_two_at_once(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessgit.check.gc._LOCK_WAIT", 0.1)
    with locks.maintenance_lock(layout.StorePaths(sessgit.store)) as held:
        assert held
        done = sessgit("gc")
    assert (done.code, done.err) == (
        3,
        "Error: another process is packing the store.\nHint: Nothing was changed. Try again later.\n",
    )


def test_many_at_once(sessgit: Shell) -> None:
    """One after the other, or told that another one is at it."""
    big(sessgit.store, 2)
    sessgit.out("delete", OTHER, "--yes")
    (sessgit.store / "config.toml").write_text('[undo]\nkeep = ""\n')
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    command = [sys.executable, "-m", "sessgit", "gc", "--prune", "--yes", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen(command, env=env, cwd=sessgit.project, **pipes) for _ in range(4)]
    done = [(process, *process.communicate()) for process in running]
    assert {process.returncode for process, *_ in done} <= {0, 3}
    final = [json.loads(out)["final"] for process, out, _ in done if not process.returncode]
    assert sorted(final)[-1:] == [[OTHER]]
    assert sum(map(bool, final)) == 1
    assert len(list((sessgit.store / "objects" / "pack").glob("*.pack"))) == 1
    fsck(sessgit.store)


def test_nothing_is_pruned_while_someone_writes(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessgit.check.gc._LOCK_WAIT", 0.1)
    store = Store(sessgit.store)
    blob = store.repo.write_blob(b"no ref leads here yet")
    done = sessgit("gc", "--prune", "--yes")
    assert (done.code, done.err) == (
        3,
        "Error: a recorder or a command is writing.\nHint: The store was packed, but not pruned. Try again later.\n",
    )
    run_git(sessgit.store, "cat-file", "-e", blob)
    store.repo.release()
    assert sessgit("gc", "--prune", "--yes").code == 0


def test_who_writes_waits_for_a_prune(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with locks.prune_lock(store.paths) as alone:
        assert alone
        monkeypatch.setattr(locks, "PRUNE_TIMEOUT", 0.05)
        with pytest.raises(StoreError, match="pruning the store"):
            store.repo.write_blob(b"x")
    store.repo.write_blob(b"x")


def test_a_recording_lets_go_in_the_end(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one"))
    with locks.prune_lock(store.paths) as alone:
        assert alone


def test_recording_while_the_store_is_packed_and_pruned(keep: Keep, store: Store, seal: Path) -> None:
    """A process prunes without end; what is recorded meanwhile is whole. The fixture asks git."""
    keep(Talk().turns("one"))
    env = {"PATH": os.environ["PATH"], "HOME": str(seal), "SESSGIT_STORE": str(store.path)}
    loop = f"while :; do {sys.executable} -m sessgit gc --prune --yes >/dev/null 2>&1; done"
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
    with locks.maintenance_lock(store.paths, PATIENCE) as held:
        assert held


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
    paths, pack = layout.StorePaths(sessgit.store), sessgit.store / "objects" / "pack"
    unfinished, overtaken, deadline = 0, 0, time.monotonic() + PATIENCE
    for number, moment in enumerate(cycle(MOMENTS)):
        if number >= len(MOMENTS) and ((unfinished if whole else overtaken) or time.monotonic() > deadline):
            break  # on a busy machine git may be done before it is killed
        before = set(pack.iterdir())
        process = subprocess.Popen(
            [sys.executable, "-m", "sessgit", "gc", "--prune", "--yes"], env=env, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None and not set(pack.glob(moment)) - before:
            time.sleep(0.0005)
        with suppress(ProcessLookupError):
            (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        with locks.maintenance_lock(paths) as held:
            overtaken += not held
        unfinished += whole and any(path.name.startswith(("tmp_", ".tmp-")) for path in pack.iterdir())
        fsck(sessgit.store)
    with locks.maintenance_lock(paths, PATIENCE) as held:
        assert held
    assert unfinished if whole else overtaken
    sessgit.now = time.time()
    assert sessgit("gc").code == 0
    assert {path.suffix for path in pack.iterdir()} <= {".idx", ".pack", ".rev", ".bitmap"}
    assert len(list(pack.glob("*.pack"))) == 1
    assert not paths.packing.exists()
    fsck(sessgit.store)


def test_a_packing_that_fails_takes_no_room(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    pack = sessgit.store / "objects" / "pack"
    git.write_text(f"#!/bin/sh\necho half >{shlex.quote(str(pack))}/tmp_pack_Half\nkill -9 $$\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(StoreError, match="git could not pack the store: it ended with -9"):
        maintenance.pack_store(sessgit.store, full=True)
    assert not (pack / "tmp_pack_Half").exists()


def test_what_a_killed_packing_left_goes_with_the_next_one(sessgit: Shell) -> None:
    """However new it is, as the mark says."""
    pack = sessgit.store / "objects" / "pack" / "tmp_pack_Half"
    layout.StorePaths(sessgit.store).packing.touch()
    pack.write_bytes(b"PACK")
    sessgit.now = time.time()
    assert sessgit.json("gc")["leftovers"] == 1
    assert not pack.exists()
    fsck(sessgit.store)


def test_what_a_killed_fetch_keeps_can_be_pruned(sessgit: Shell) -> None:
    """git writes such a file before refs lead to what it has fetched, and neither packs nor prunes what it names."""
    sessgit.out("gc")
    blob = run_git(sessgit.store, "rev-parse", f"refs/heads/{OTHER}:turns/0000/000001/transcript.jsonl").strip()
    (pack,) = (sessgit.store / "objects" / "pack").glob("*.pack")
    keep = pack.with_suffix(".keep")
    keep.write_text("fetch-pack 4711 on somewhere\n")
    os.utime(keep, (NOW - 5,) * 2)
    sessgit.out("delete", OTHER, "--yes")
    sessgit.out("gc", "--prune", "--yes")
    run_git(sessgit.store, "cat-file", "-e", blob)
    os.utime(keep, (NOW - 700,) * 2)
    assert sessgit.json("gc", "--prune", "--yes")["leftovers"] == 1
    with pytest.raises(AssertionError):
        run_git(sessgit.store, "cat-file", "-e", blob)
    fsck(sessgit.store)


def test_a_pack_that_another_git_is_writing_stays(sessgit: Shell) -> None:
    pack = sessgit.store / "objects" / "pack" / "tmp_pack_Fetched"
    pack.write_bytes(b"PACK")
    sessgit.now = time.time()
    assert sessgit.json("gc")["leftovers"] == 0
    assert pack.exists()


PARTS = (
    "sessgit.check.gc._delete_refs", "sessgit.store.operations.move_refs", "sessgit.store.fulltext.forget_sessions",
    "sessgit.store.index.Index.forget_unreachable", "sessgit.store.operations.redact_sessions",
    "sessgit.store.maintenance.prune",
    "sessgit.store.operations.redact_tags", "sessgit.store.recorder_state.delete_cursor",
)  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", PARTS)
def test_a_prune_that_was_interrupted_is_finished_by_the_next(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, part: str, when: str
) -> None:
    sessgit.out("search", "else")
    blob = run_git(sessgit.store, "rev-parse", f"refs/heads/{OTHER}:turns/0000/000001/transcript.jsonl").strip()
    sessgit.out("delete", OTHER, "--yes")
    real = pkgutil.resolve_name(part)

    def interrupted(*arguments: Any, **more: Any) -> None:
        if when == "after":
            real(*arguments, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(part, interrupted)
        assert sessgit("gc", "--prune", "--yes").code == 130
    fsck(sessgit.store)
    assert sessgit("gc", "--prune", "--yes").code == 0
    with pytest.raises(AssertionError):
        run_git(sessgit.store, "cat-file", "-e", blob)
    assert refs.read_all(sessgit.store, layout.KEEP) == {}
    assert "else" not in sessgit.out("ops", "--json")
    paths = layout.StorePaths(sessgit.store)
    assert not paths.cursor(OTHER).exists()
    assert b"else" not in b"".join(path.read_bytes() for path in sessgit.store.glob("text.sqlite3*"))
    fsck(sessgit.store)


def test_git_is_needed(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = sessgit("gc")
    assert (done.code, done.err.splitlines()[0]) == (7, "Error: git is missing.")
