"""A recorder that was killed, under a parent that never reaps it, as PID 1 of some containers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from preloaded import PROGRAM, Started
from test_recorder import SESSIONS, Place, talk
from waiting import until

from sessgit.cli import invocation
from sessgit.model import canonical
from sessgit.store import locks, stub
from sessgit.store.layout import StorePaths

_PARENT = """
import ctypes, os, signal, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans below become children of this process
subprocess.run(["sh", sys.argv[1]], input=sys.stdin.buffer.read(), check=True)
with open(sys.argv[2]) as file:
    pid = int(file.read())
os.kill(pid, signal.SIGKILL)
while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
    time.sleep(0.001)
print(pid, flush=True)
time.sleep(600)
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def waiting(place: Place) -> int:
    return len(list(StorePaths(place.store).spool.glob("*.json")))


@contextmanager
def killed(place: Place, path: Path) -> Iterator[int]:
    """Fires an event and kills its recorder before that has read the spool; nothing reaps it until the end."""
    payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": "/", "hook_event_name": "Stop"}
    stopped = place.root / "stopped"
    stopped.write_text("#!/bin/sh\nkill -STOP $$\n")
    stopped.chmod(0o755)
    stub.write_stub(place.store, str(stopped))
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(place.store / "hook"), str(StorePaths(place.store).spool / "waiting")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=place.env,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps(payload | {"last_assistant_message": "done: one"}).encode())
    parent.stdin.close()
    try:
        pid = int(parent.stdout.readline())
        assert waiting(place) == 1
        os.kill(pid, 0)  # a signal reaches it: it is defunct, and not gone
        stub.write_stub(place.store, sys.executable)
        yield pid
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_a_killed_recorder_that_nothing_reaps_keeps_no_event_waiting(place: Place) -> None:
    paths = [talk(session, "one").save(place.projects) for session in SESSIONS[:2]]
    with killed(place, paths[0]):
        place.event("Stop", paths[1], last_assistant_message="done: one")
        until(lambda: [place.turns(session) for session in SESSIONS[:2]] == [1, 1])
        until(lambda: waiting(place) == 0)
    assert place.log() == ""


def run(place: Place, *words: str, **env: str) -> str:
    """Run a command in a process of its own, and return what it prints."""
    return Started(PROGRAM, *words, env={**place.env, **env}, cwd=place.root).end()


@pytest.mark.parametrize("words", [(), ("status",), ("ls",), ("search", "one"), ("watch",), ("show", SESSIONS[0])])
def test_a_command_that_reads_has_what_waits_recorded(place: Place, words: tuple[str, ...]) -> None:
    with killed(place, talk(SESSIONS[0], "one").save(place.projects)):
        if words == ("watch",):  # it does not end by itself
            command = [sys.executable, "-m", "sessgit", *words]
            watch = subprocess.Popen(command, env=place.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            run(place, *words)
        until(lambda: place.turns(SESSIONS[0]) == 1)
        until(place.is_quiet)
        if words == ("watch",):
            watch.kill()
            watch.wait()
    assert place.log() == ""


def test_a_recorder_that_a_command_starts_is_no_child_of_it_and_gets_no_key(place: Place) -> None:
    seen = place.root / "seen"
    python = place.root / "python"
    python.write_text(f'#!/bin/sh\nenv >"{seen}.new"; echo "$PPID $PWD" >>"{seen}.new"; mv "{seen}.new" "{seen}"\n')
    python.chmod(0o755)
    StorePaths(place.store).spool.joinpath("1-0.json").write_text("{}")
    given = {**place.env, "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "sk-ant-1", "PWD": str(place.root)}
    stub.start_recorder(place.store, str(python), given)
    until(seen.exists)
    *variables, last = seen.read_text().splitlines()
    parent, folder = last.split()
    assert {line.partition("=")[0] for line in variables} - {"PWD", "OLDPWD", "_", "SHLVL"} == {
        "HOME", "PATH", "LANG", "SESSGIT_STORE",
    }  # fmt: skip
    assert folder == "/" and parent != str(os.getpid())


def test_nothing_is_started_where_nothing_waits_or_nothing_is_to_be_recorded(place: Place) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    with killed(place, path):
        assert run(place, "ls", SESSGIT_OFF="1") == ""
        assert place.recorders() == []
        assert (waiting(place), place.turns(SESSIONS[0])) == (1, 0)
    assert invocation._events_wait(place.store)
    stub.start_recorder(place.store, "/nowhere/python", place.env)
    next(StorePaths(place.store).spool.glob("*.json")).unlink()
    assert not invocation._events_wait(place.store)
    assert not invocation._events_wait(place.root / "nowhere")
    assert place.recorders() == []


def test_status_tells_what_waits(place: Place) -> None:
    def attention(**env: str) -> list[str]:
        lines = run(place, "status", **env).splitlines()
        start = next((n for n, line in enumerate(lines) if line.startswith("Attention")), len(lines))
        return [line[12:] for line in lines[start:]]

    with killed(place, talk(SESSIONS[0], "one").save(place.projects)):
        (event,) = StorePaths(place.store).spool.glob("*.json")
        os.utime(event, (time.time() - 300,) * 2)
        off = {"SESSGIT_OFF": "1"}
        assert json.loads(run(place, "status", "--json", **off))["waiting"] == {
            "events": 1, "first": canonical.rfc3339(event.stat().st_mtime), "recorder": False,
        }  # fmt: skip
        assert attention(**off)[:2] == [
            "1 event is waiting to be recorded, from 5m ago",
            "no recorder was running: SESSGIT_OFF=1 prevents one from starting",
        ]
        shutil.copy(event, event.with_name("1-1.json"))
        held = locks.recorder_lock(StorePaths(place.store))
        assert attention(**off)[:2] == [
            "2 events are waiting to be recorded, the first from 5m ago",
            "a recorder is running",
        ]
        locks.release(held)
        assert attention()[:2] == [
            "2 events are waiting to be recorded, the first from 5m ago",
            "no recorder was running: one was started",
        ]
        until(lambda: place.turns(SESSIONS[0]) == 1)
        until(place.is_quiet)
    assert "wait" not in run(place, "status")


@pytest.mark.parametrize(
    ("age", "is_running", "said", "severity"),
    [
        (0, False, "0 seconds; no recorder is running", "note"),
        (7, False, "7 seconds; no recorder is running", "wrong"),
        (7, True, "7 seconds; a recorder is running", "note"),
        (300, True, "5 minutes; a recorder is running", "wrong"),
    ],
)
def test_doctor_tells_what_waits(place: Place, age: float, is_running: bool, said: str, severity: str) -> None:
    spool = StorePaths(place.store).spool
    path = talk(SESSIONS[0], "one").save(place.projects)
    payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": "/", "hook_event_name": "SessionEnd"}
    moment = time.time() - age + (60 if age == 0 else 0)
    for number in range(38):
        event = spool / f"1-{number}.json"
        event.write_text(json.dumps(payload))
        event.chmod(0o600)
        os.utime(event, (moment,) * 2)
    held = locks.recorder_lock(StorePaths(place.store)) if is_running else 0
    (found,) = (one for one in doctor(place)["findings"] if one["kind"] == "spool")
    assert found["severity"] == severity
    what = re.sub(r"\b([89]|1\d) seconds", "7 seconds", found["message"])
    assert what == f"38 events are waiting to be recorded, the first for {said}"
    assert waiting(place) == 38
    if held:
        locks.release(held)
    run(place, "doctor", "--fix")
    assert (waiting(place), place.turns(SESSIONS[0])) == (0, 1)
    assert [one for one in doctor(place)["findings"] if one["kind"] == "spool"] == []


def doctor(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(place, "doctor", "--json"))
    return found
