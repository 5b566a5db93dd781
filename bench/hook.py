"""What the client waits for at each event, and how long after its last byte a turn is a commit."""

from __future__ import annotations

import json
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import competitors
import frame
import sessions
import timing
from frame import Table
from timing import PASS, PASS_COMMAND, Scale, Took

from sessgit import agents
from sessgit.agents.hook_settings import stub_command
from sessgit.record.install import install
from sessgit.store import refs, stub
from sessgit.store import store as stores
from sessgit.store.context import Homes
from sessgit.store.layout import head_ref

SESSION = "b0000000-0000-4000-8000-000000000001"
TURNS = 1_000
PATIENCE = 10
"""Seconds after which a turn counts as not recorded."""


def measure(scale: Scale) -> Iterator[Table]:
    """The stub, beside the hook of another program, and the commit."""
    with timing.folder() as home:
        yield from _wait(home, scale)
        yield _latency(home, scale)


def _wait(home: Path, scale: Scale) -> Iterator[Table]:
    quiet = home / "quiet"
    stores.create_store(quiet)
    stub.write_stub(quiet, "/bin/true")
    payload = {"session_id": SESSION, "transcript_path": "/nowhere.jsonl", "cwd": str(home)}
    given = json.dumps(payload | {"hook_event_name": "Stop", "last_assistant_message": "done"})
    own, other = "the stub (goal .5 x, at most 1 x)", competitors.named("agent-strace")
    rows = {
        PASS: PASS_COMMAND,
        own: ["sh", "-c", stub_command(quiet / "hook")],
    }
    place = timing.here(home, more=competitors.QUIET)
    program = competitors.command("agent-strace")
    if program:
        rows[other] = ["sh", "-c", f"{shlex.quote(program)} hook stop"]
        place.run([program, "hook", "session-start"], given)
    took: dict[str, list[Took]] = {name: [] for name in rows}
    for _ in range(scale.rounds * 3):
        for name, command in rows.items():
            took[name].append(place.run(command, given))
        for path in (quiet / "spool").glob("*"):
            path.unlink()
    timing.passes.extend(each.seconds for each in took[PASS])
    yield timing.of("the client's wait at each event", {name: took[name] for name in (PASS, own)}, PASS)
    if program:
        both = {other: took[other], "the stub (goal 1 x)": took[own]}
        yield timing.of("the same beside another program's hook", both, other)


def _latency(home: Path, scale: Scale) -> Table:
    """From the transcript's last byte to the commit, through the real stub and recorder."""
    project, config = home / "project", home / ".claude"
    store = config / "session-store"
    project.mkdir()
    install(store, agents.client(Homes({"claude": config})), python=sys.executable)
    path = config / "projects" / "bench" / f"{SESSION}.jsonl"
    talk = sessions.write(path, project, TURNS)
    place = timing.here(home, project)
    place.run([*timing.SESSGIT, "import", str(path)])
    chance, measured = random.Random(9), []
    for number in range(scale.rounds * 2):
        prompt, calls, answer = sessions.turn(number, chance)
        before = refs.read(store, head_ref(SESSION))
        talk.turn(prompt, calls, answer)
        written = time.perf_counter()
        payload = {"session_id": SESSION, "transcript_path": str(path), "cwd": str(project)}
        payload |= {"hook_event_name": "Stop", "last_assistant_message": answer}
        command = ["sh", str(store / "hook")]
        subprocess.run(command, input=json.dumps(payload).encode(), env=dict(place.env), check=True)
        while refs.read(store, head_ref(SESSION)) == before:
            if time.perf_counter() - written > PATIENCE:
                raise frame.BenchError("a turn was not recorded")
            time.sleep(0.001)
        measured.append(time.perf_counter() - written)
        while list((store / "spool").iterdir()):
            time.sleep(0.01)  # until the recorder has gone: it must not be at work beside the next one
    title = f"from the last byte of a turn to its commit, turns {TURNS + 1:,} and later"
    known = [place.known() for _ in range(scale.rounds)]
    rows = {PASS: known, "last byte to commit (goal 300 ms)": measured, "the worst of them": [max(measured)]}
    return frame.table(title, rows, PASS)


if __name__ == "__main__":
    timing.run_alone(measure)
