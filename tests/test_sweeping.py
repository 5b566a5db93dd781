"""What a packing that was killed left is swept away, and what somebody is just fetching is not."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clones import bare
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.store import layout, locks, maintenance, refs
from sessgit.store import store as stores

_SLOW = """#!/bin/sh
# Sends the beginning of a pack, and the rest once it is told to go on.
git-upload-pack "$@" | {python} -c '
import pathlib, sys, time
sent = 0
while data := sys.stdin.buffer.read1(65536):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    sent += len(data)
    while sent > 200_000 and not pathlib.Path("{go}").exists():
        time.sleep(0.02)
'
"""


def unfinished(store: Path) -> list[str]:
    return [path.name for path in (store / "objects" / "pack").glob("tmp_pack_*")]


def test_what_is_being_fetched_outlasts_the_sweep_of_a_killed_packing(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = sessgit.talk()
    for number in range(60):
        noise = "".join(f"{number * 7919 + word:x} " for word in range(4000))
        talk.prompt(f"prompt {number}").tool("Bash", {"command": "ls"}, noise).answer("done").stop_lines()
    sessgit.recorded(talk)
    remote = bare(tmp_path / "remote")
    sessgit.out("remote", "add", "origin", str(remote))
    assert sessgit("push", "--all").code == 0
    tip = refs.read(sessgit.store, layout.head_ref(SESSION))
    second, slow, go = tmp_path / "second", tmp_path / "slow", tmp_path / "go"
    monkeypatch.setenv("SESSGIT_STORE", str(second))
    stores.create_store(second)
    sessgit.out("remote", "add", "origin", str(remote))
    slow.write_text(_SLOW.format(python=shlex.quote(sys.executable), go=go))
    slow.chmod(0o755)
    run_git(second, "config", "remote.origin.uploadpack", str(slow))
    layout.StorePaths(second).packing.touch()  # a packing was killed
    command = [sys.executable, "-m", "sessgit", "pull"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as pull:
        try:
            deadline = time.monotonic() + 60
            while not (fetched := unfinished(second)):
                assert pull.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert maintenance.delete_unfinished(second) == 0
            assert unfinished(second) == fetched
        finally:
            go.touch()
            said = pull.communicate(timeout=60)
    assert pull.returncode == 0, said
    assert refs.read(second, layout.head_ref(SESSION)) == tip
    assert run_git(second, "fsck", "--strict", "--no-dangling") == ""


def test_who_is_alone_sweeps_at_once(sessgit: Shell) -> None:
    """Whoever keeps others from writing, and whoever comes when nobody writes."""
    sessgit.recorded(sessgit.talk().turns("one"))
    left = sessgit.store / "objects" / "pack" / "tmp_pack_Half"
    paths = layout.StorePaths(sessgit.store)
    paths.packing.touch()
    left.write_bytes(b"PACK")
    held = locks.hold_off_prune(paths)
    assert maintenance.delete_unfinished(sessgit.store) == 0
    assert left.exists()
    locks.release(held)
    with locks.prune_lock(paths) as alone:
        assert alone
        assert maintenance.delete_unfinished(sessgit.store, exclusive=True) == 1
    left.write_bytes(b"PACK")
    assert maintenance.delete_unfinished(sessgit.store) == 1
