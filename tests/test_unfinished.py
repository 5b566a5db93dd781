"""What killed commands left: temporary folders, merges, a purge; told, and brought in order by whoever comes next."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kept import begins
from merging import THEIRS, diverged, tip, transcript
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.history.project_git import Head
from sessgit.replay.bisect import bisect_worktree
from sessgit.store import layout, tempdirs
from sessgit.store.layout import StorePaths

_MAKES = """
import os, signal, sys
from sessgit.store import tempdirs
with tempdirs.make_folder("sessgit-replay-") as folder:
    (folder / "project").mkdir()
    (folder / "project").chmod(0)
    print(folder, flush=True)
    if sys.argv[1:] == ["killed"]:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def aged(path: Path) -> Path:
    os.utime(path, (time.time() - 3600,) * 2, follow_symlinks=False)
    return path


def told(sessgit: Shell, *more: str) -> list[str]:
    """What `doctor` says of leftovers, or did about them."""
    found = json.loads(sessgit("doctor", "--json", *more).out)
    every = found["fixed"] if more else found["findings"]
    return [one["done" if more else "message"] for one in every if one["kind"] in ("leftovers", "purge")]


# Folders


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders lie."""
    found = tmp_path / "tmp"
    found.mkdir()
    monkeypatch.setenv("TMPDIR", str(found))
    monkeypatch.setattr("tempfile.tempdir", str(found))
    return found


def test_a_folder_goes_once_its_owner_is_gone(place: Path, sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    killed = subprocess.run([sys.executable, "-c", _MAKES, "killed"], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    with subprocess.Popen([sys.executable, "-c", _MAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdout is not None
        held = Path(os.fsdecode(living.stdout.readline().strip()))
        others = [place / name for name in ("sessgit-main", "sessgit-replay-abcdefgh", "repair-abcdefgh", "else")]
        for other in others:
            (other / "a").mkdir(parents=True)
        (empty := place / "sessgit-bisect-x234567_").mkdir()
        for path in place.iterdir():
            aged(path)
        left = sorted([Path(killed.stdout.strip()), empty])
        assert tempdirs.stale_folders() == left
        assert told(sessgit) == [f"2 temporary folders left by killed commands, {left[0].name} first"]
        sessgit.out("gc")
        assert sorted(place.iterdir()) == sorted([held, *others])
        living.communicate()
    assert not held.exists()
    assert told(sessgit) == []


def test_what_git_notes_of_a_worktree_goes_along(place: Path, sessgit: Shell) -> None:
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx"],
    ):
        run_git(sessgit.project, *words)
    commit = run_git(sessgit.project, "rev-parse", "HEAD").strip()
    child = os.fork()
    if not child:
        try:
            with bisect_worktree(str(sessgit.project), dict(os.environ)) as made:
                made.check_out(Head(commit, "", dirty=False))
                os._exit(9)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert run_git(sessgit.project, "worktree", "list").count("\n") == 2
    for path in place.iterdir():
        aged(path)
    assert tempdirs.delete_stale_folders() == 1
    assert run_git(sessgit.project, "worktree", "list").count("\n") == 1
    assert not list(place.iterdir())


# Merges


class _KilledError(Exception):
    pass


@begins
def two(shell: Shell) -> None:
    diverged(shell)


def _die(*given: object, **named: object) -> None:
    raise _KilledError


def killed(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, where: str, *words: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"sessgit.{where}", _die)
        assert sessgit(*words).code == 70
    for path in (sessgit.store / "state").iterdir():
        if path.suffix in (".append", ".begun"):
            aged(path)


@pytest.mark.parametrize("where", ["store.recorder_state.save_intent", "agents.agent_files.append"])
@pytest.mark.parametrize("words", [("merge", THEIRS), ("pick", f"{THEIRS}@3")])
def test_a_new_conversation_that_was_only_begun_goes(
    two: Shell, monkeypatch: pytest.MonkeyPatch, where: str, words: tuple[str, ...]
) -> None:
    before, files = tip(two), set(transcript(two).parent.iterdir())
    refs = run_git(two.store, "for-each-ref", "refs/heads")
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.unlink", _keeping_notes(Path.unlink))
        killed(two, monkeypatch, where, *words, "--into", SESSION, "--new")
    assert run_git(two.store, "for-each-ref", "refs/heads") != refs
    assert told(two) == ["1 conversation left by an interrupted merge, f0000001 first"]
    assert told(two, "--fix") == ["1 conversation removed"]
    assert run_git(two.store, "for-each-ref", "refs/heads") == refs
    assert (tip(two), set(transcript(two).parent.iterdir())) == (before, files)
    assert [one["standing"] for one in two.json("ops")["operations"]] == ["done", "undone"]
    assert told(two) == []


def _keeping_notes(unlink: object) -> object:
    """As if it were killed: the note stays."""

    def kept(path: Path, *, missing_ok: bool = False) -> None:
        if path.suffix != ".begun":
            unlink(path, missing_ok=missing_ok)  # type: ignore[operator]

    return kept


def test_a_merge_that_nobody_goes_on_with_is_written_down(two: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before, head = transcript(two).read_bytes(), tip(two)
    killed(two, monkeypatch, "branch.merge._merge_commit", "merge", THEIRS, "--into", SESSION)
    assert two.json("ops")["operations"] == []
    two.out("gc")
    (done,) = two.json("ops")["operations"]
    assert (done["command"], done["standing"]) == ("merge", "done")
    assert done["summary"] == f"5e551011: 1 turn of {THEIRS[:8]}, interrupted"
    two.out("undo")
    assert (transcript(two).read_bytes(), tip(two)) == (before, head)


def test_the_same_merge_afterwards_is_one_operation_with_it(two: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before, head = transcript(two).read_bytes(), tip(two)
    killed(two, monkeypatch, "branch.merge._merge_commit", "merge", THEIRS, "--into", SESSION)
    two.out("gc")
    two.out("merge", THEIRS, "--into", SESSION)
    assert len(run_git(two.store, "show", "-s", "--format=%P", SESSION).split()) == 2
    assert [one["standing"] for one in two.json("ops")["operations"]] == ["done"]
    two.out("undo")
    assert (transcript(two).read_bytes(), tip(two)) == (before, head)


# A purge


def test_a_purge_that_was_interrupted(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("the value is tiger-lily-4711"))
    killed(sessgit, monkeypatch, "purge.purge._StateRewriter.rewrite_files", "purge", "tiger-lily-4711", "--yes")
    assert told(sessgit) == ["a purge was interrupted: the value may still be stored"]
    assert told(sessgit, "--fix") == ["the purge is complete"]
    assert told(sessgit) == []
    assert not StorePaths(sessgit.store).purging.exists()
    assert "tiger" not in run_git(sessgit.store, "log", "-p", layout.head_ref(SESSION))
