"""Pruning while a store fetches from a remote or sends to one: what is on its way is never lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clones import bare
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.store import layout, refs
from sessgit.store import store as stores

_GIT = """#!/bin/sh
# Waits before or after what is looked for, so that something can happen meanwhile.
wait_for_word() { : > '{folder}/waits'; while [ ! -e '{folder}/go' ]; do sleep 0.02; done; }
case " $* " in
*' {verb} '*)
    [ {when} = before ] && wait_for_word
    {git} "$@"
    code=$?
    [ {when} = after ] && wait_for_word
    exit $code ;;
esac
exec {git} "$@"
"""
_BUSY = "Error: a recorder or a command is writing.\nHint: The store was packed, but not pruned. Try again later.\n"


@pytest.fixture
def sessgit(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A remote that has two conversations, one of them with more turns than are here; a prune waits for nobody."""
    monkeypatch.setattr("sessgit.check.gc._LOCK_WAIT", 0.05)
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk, sessgit.talk(OTHER).turns("else"))
    remote = bare(tmp_path / "remote")
    sessgit.out("remote", "add", "origin", str(remote))
    assert sessgit("push", "--all").code == 0
    return sessgit


@contextmanager
def stopped(sessgit: Shell, folder: Path, verb: str, when: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that has stopped before or after its git does something, and goes on at the end."""
    folder.mkdir()
    git = folder / "git"
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    script = _GIT
    for name, value in {"folder": str(folder), "verb": verb, "when": when, "git": real}.items():
        script = script.replace(f"{{{name}}}", value)
    git.write_text(script)
    git.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SESSGIT_STORE": str(sessgit.store)}
    command = [sys.executable, "-m", "sessgit", *arguments]
    process = subprocess.Popen(command, env=env, cwd=sessgit.project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while not (folder / "waits").exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        yield process
    finally:
        (folder / "go").touch()
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pull_goes_on_while_someone_would_prune(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """What git has fetched no branch leads to yet, and of what it is about to fetch it may find some here."""
    there = refs.read_all(sessgit.store, layout.HEADS)
    url = run_git(sessgit.store, "config", "remote.origin.url").strip()
    sessgit.store = tmp_path / "second"
    monkeypatch.setenv("SESSGIT_STORE", str(sessgit.store))
    stores.create_store(sessgit.store)
    sessgit.out("remote", "add", "origin", url)
    with stopped(sessgit, tmp_path / "bin", "fetch", when, "pull"):
        done = sessgit("gc", "--prune", "--yes")
        assert (done.code, done.err) == (3, _BUSY)
        assert sessgit("gc").code == 0
    assert refs.read_all(sessgit.store, layout.HEADS) == there
    assert sessgit("gc", "--prune", "--yes").code == 0
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""
    assert "two" in sessgit.out("log", SESSION)


def test_a_push_goes_on_while_someone_would_prune(sessgit: Shell, tmp_path: Path) -> None:
    """What was deleted while it is being sent is pruned when it was sent."""
    sessgit.out("rename", SESSION, "parser")
    tip = refs.read(sessgit.store, layout.head_ref(SESSION))
    url = Path(run_git(sessgit.store, "config", "remote.origin.url").strip())
    with stopped(sessgit, tmp_path / "bin", "push", "before", "push", SESSION):
        sessgit.out("delete", SESSION, "--yes")
        assert (done := sessgit("gc", "--prune", "--yes")).code == 3, done
    assert refs.read(url, layout.head_ref(SESSION)) == tip
    assert run_git(url, "fsck", "--strict", "--no-dangling") == ""
    assert sessgit.json("gc", "--prune", "--yes")["final"] == [SESSION]
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""
