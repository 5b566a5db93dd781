"""`sessgit recover` and the real client: killed in the middle of a call, found, and gone on with."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

import pytest
from clients import ENDS, kill
from test_recording import PATIENCE, Kept
from world import World

pytestmark = [pytest.mark.client, ENDS]


def lie(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_a_client_killed_in_a_call_is_recovered(world: World) -> None:
    kept = Kept(world)
    session = world.run("bash: echo one").session_id
    kept.recorded(session, 1)
    path = world.transcript(session)
    # The tool outlives its client, which runs it in a process group of its own: it ends by itself.
    process = world.start("bash: timeout 60 tail -f README.md", resume=session)
    deadline = time.monotonic() + PATIENCE
    while b"tail -f" not in path.read_bytes() or b'"tool_use"' not in path.read_bytes().rpartition(b"tail -f")[0]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    lie(path, 20)  # of a client that does not say that it lives a minute would be needed
    assert kept.json("recover")["sessions"] == []
    assert process.poll() is None
    kill(process)
    lie(path, 120)
    (found,) = kept.json("recover")["sessions"]
    assert (found["id"], found["turns"], found["state"], found["cut"]) == (session, 2, "interrupted", "call")
    assert shlex.split(found["command"])[-2:] == ["--resume", session]
    assert kept.json("recover")["sessions"] == []
    assert world.run("bash: echo two", resume=session).session_id == session
    kept.recorded(session, 3)
