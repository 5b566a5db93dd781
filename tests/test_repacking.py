"""What imports packed quickly is packed once more, by a process for which nobody waits."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from homes import claude_homes
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION
from waiting import PATIENCE, until

from sessgit.check import gc
from sessgit.history import search
from sessgit.purge import denied_values, purge
from sessgit.record import imports
from sessgit.recorder import drain
from sessgit.store import locks, log, maintenance, refs
from sessgit.store.fulltext import TextIndex
from sessgit.store.layout import StorePaths

WORD = "word-that-goes-4711"
FILES = 6
"""Of one name, and each of one line, so that the first packing compares none with what it was before, and the second
one does."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1)


@pytest.fixture
def slow_git(tmp_path: Path) -> Path:
    """A folder for PATH with a git that says that it packs, in the file `packs` beside it, and then waits for ever."""
    (tmp_path / "slow").mkdir()
    git, packs = tmp_path / "slow" / "git", shlex.quote(str(tmp_path / "packs"))
    wait = f"case \" $* \" in *' pack-objects '*) : >{packs}; while :; do sleep 0.02; done;; esac"
    git.write_text(f'#!/bin/sh\n{wait}\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    return git.parent


def versions(sessgit: Shell, session: str = SESSION) -> None:
    """A conversation that reads several files again and again."""
    talk, chance = sessgit.talk(session), random.Random(session)
    for number in range(4):
        for file in range(FILES):
            words = random.Random(f"{session} {file}").randbytes(3_000).hex()
            text = f"{words} {chance.randbytes(200).hex()}\n"
            talk.prompt(f"{number} {file} {WORD}").tool("Read", {"file_path": "/p/a.py"}, text).answer("So.")
    sessgit.keep(talk)


def packs(store: Path) -> set[str]:
    return {path.name for path in (store / "objects" / "pack").iterdir()}


def is_done(store: Path) -> bool:
    return not StorePaths(store).repacking.exists() and not locks.is_repack_running(StorePaths(store))


def whole(store: Path) -> None:
    assert run_git(store, "fsck", "--strict", "--no-dangling") == ""
    assert list(log.entries(StorePaths(store).log)) == []


def size(store: Path) -> int:
    return sum(path.stat().st_size for path in (store / "objects" / "pack").glob("*.pack"))


def test_an_import_is_packed_once_more_in_the_background(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    versions(sessgit)
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    sessgit.out("import")
    before, held, quick = packs(sessgit.store), refs.read_all(sessgit.store), size(sessgit.store)
    assert maintenance.noted_packs(sessgit.store) == {Path(name).stem for name in before}
    assert not maintenance.start_repack(sessgit.store, os.environ)  # so little is left until there is more
    versions(sessgit, OTHER)
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1)
    sessgit.out("import")
    until(lambda: is_done(sessgit.store))
    assert not before & packs(sessgit.store)
    assert len(packs(sessgit.store)) == 2
    assert refs.read_all(sessgit.store).items() >= held.items()
    assert size(sessgit.store) < 1.8 * quick
    assert sessgit.json("status")["packing"] is False
    whole(sessgit.store)


def test_status_says_that_it_runs(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    until(lambda: is_done(sessgit.store))
    with locks.repack_lock(StorePaths(sessgit.store)) as held:
        assert held
        assert sessgit.json("status")["packing"] is True
        assert "the store is being packed in the background, and gets smaller" in sessgit.out("status")


@pytest.mark.parametrize("command", [("gc",), ("import",), ("purge", WORD, "--yes")])
def test_a_command_that_needs_the_store_ends_it(
    sessgit: Shell, slow_git: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], tmp_path: Path
) -> None:
    versions(sessgit)
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    sessgit.out("import")
    versions(sessgit, OTHER)
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1)
    assert maintenance.start_repack(sessgit.store, {**os.environ, "PATH": f"{slow_git}:{os.environ['PATH']}"})
    until((tmp_path / "packs").exists)
    assert sessgit.json("status")["packing"] is True
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    for waiting in (gc, denied_values, imports, purge):
        monkeypatch.setattr(waiting, "_LOCK_WAIT", 2 * PATIENCE)
    began = time.monotonic()
    assert sessgit(*command).code == 0
    assert time.monotonic() - began < PATIENCE  # it would wait for twice that, and give up
    assert not locks.is_repack_running(StorePaths(sessgit.store))
    whole(sessgit.store)


def test_one_that_was_killed_is_begun_again_by_the_next_recorder(
    sessgit: Shell, slow_git: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions(sessgit)
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    sessgit.out("import")
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1)
    command = [sys.executable, "-m", "sessgit.recorder.packer", str(sessgit.store)]
    env = {**os.environ, "PATH": f"{slow_git}:{os.environ['PATH']}"}
    packer = subprocess.Popen(command, env=env, start_new_session=True)
    until((tmp_path / "packs").exists)
    assert locks.is_repack_running(StorePaths(sessgit.store))
    os.killpg(packer.pid, signal.SIGKILL)
    packer.wait()
    assert StorePaths(sessgit.store).repacking.exists()
    before = packs(sessgit.store)
    whole(sessgit.store)
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    until(lambda: is_done(sessgit.store))
    assert not before & packs(sessgit.store)
    whole(sessgit.store)


def test_killed_at_any_moment(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    versions(sessgit)
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    sessgit.out("import")
    held = refs.read_all(sessgit.store)
    chance, command = random.Random(1), [sys.executable, "-m", "sessgit.recorder.packer", str(sessgit.store)]
    for _ in range(6):
        packer = subprocess.Popen(command, start_new_session=True)
        until(lambda running=packer: locks.is_repack_running(StorePaths(sessgit.store)) or running.poll() is not None)
        time.sleep(chance.random() * 0.2)
        os.killpg(packer.pid, signal.SIGKILL) if packer.poll() is None else None
        packer.wait()
        whole(sessgit.store)
    subprocess.run(command, check=True)
    assert is_done(sessgit.store)
    assert refs.read_all(sessgit.store) == held
    assert {Path(name).suffix for name in packs(sessgit.store)} <= {".pack", ".idx"}
    whole(sessgit.store)


def test_a_second_one_leaves_the_work_to_the_first(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    versions(sessgit)
    sessgit.out("import")
    before = packs(sessgit.store)
    with locks.repack_lock(StorePaths(sessgit.store)):
        command = [sys.executable, "-m", "sessgit.recorder.packer", str(sessgit.store)]
        subprocess.run(command, check=True, timeout=60)
        monkeypatch.setattr(maintenance, "start_repack", lambda *_: pytest.fail("one is at work already"))
        drain.drain_spool(sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home)})
    assert (packs(sessgit.store), StorePaths(sessgit.store).repacking.exists()) == (before, True)


def test_after_a_full_packing_nothing_is_left_to_do(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LEAST_REPACK_BYTES", 1 << 30)
    versions(sessgit)
    sessgit.out("import")
    assert StorePaths(sessgit.store).repacking.exists()
    sessgit.out("gc")
    assert not StorePaths(sessgit.store).repacking.exists()


def test_before_that_it_makes_the_import_searchable(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "update_fulltext", None)  # the command itself leaves that to the background
    versions(sessgit)
    sessgit.out("import")
    until(lambda: is_done(sessgit.store))
    text = TextIndex(sessgit.store)
    assert text.level() == refs.refs_hash(sessgit.store)
    text.close()
    whole(sessgit.store)
