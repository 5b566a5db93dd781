"""Codex: its wait at an event, how long after its last byte a turn is a commit, and imports beside Claude Code's."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import frame
import sessions
import timing
from frame import Table
from timing import PASS, PASS_COMMAND, SESSGIT, Place, Scale, Took

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from rollouts import THREAD, Rollout

from sessgit import agents
from sessgit.agents.hook_settings import stub_command
from sessgit.record.install import install
from sessgit.store import refs
from sessgit.store.context import Homes
from sessgit.store.layout import head_ref

CLAUDE, OLDER, NEWER = "Claude Code", "Codex 0.118", "Codex 0.169"
MEGABYTES = 10
"""Of each client's transcripts: as many as one process imports."""
SESSIONS = 10
TURNS = 1_000
PATIENCE = 10
"""Seconds after which a turn counts as not recorded."""
_TURN_END = 0.04
"""Seconds after its hook at which the client writes the end of a turn (0.169.0)."""


def measure(scale: Scale) -> Iterator[Table]:
    """Rollouts of both forms beside transcripts of the same size."""
    with timing.folder() as home:
        yield _import(home, scale)
    with timing.folder() as home:
        yield from _events(home, scale)


def _import(root: Path, scale: Scale) -> Table:
    homes = {CLAUDE: root / "claude", OLDER: root / "older", NEWER: root / "newer"}
    took: dict[str, list[Took]] = {CLAUDE: [], **{f"{name} (goal 1.5 x)": [] for name in (OLDER, NEWER)}}
    places = dict(zip(took, (timing.here(home) for home in homes.values()), strict=True))
    limit = MEGABYTES * 1_000_000 // SESSIONS
    for number in range(SESSIONS):
        path = homes[CLAUDE] / ".claude" / "projects" / "bench" / f"b0000000-0000-4000-8000-{number:012}.jsonl"
        sessions.write(path, root / "project", limit // 12_200, seed=number)
        for name in (OLDER, NEWER):
            thread, chance = f"{THREAD[:-4]}{number:04}", random.Random(number)
            made = Rollout(thread, cwd=str(root / "project"), paginated=name == NEWER)
            while len(made.data) < limit:
                _turn(made, chance)
            made.save(homes[name] / ".codex")
    for number in range(scale.few + 1):
        for name, place in places.items():
            place.run(["rm", "-rf", str(Path(place.env["HOME"]) / ".claude" / "session-store")])
            each = place.run([*SESSGIT, "import"], whole=True)
            took[name] += [each] if number else []  # the first one finds nothing in the cache
    return timing.of(f"importing {MEGABYTES} MB of each client, {SESSIONS} conversations", took, CLAUDE)


def _events(home: Path, scale: Scale) -> Iterator[Table]:
    project, config = home / "project", home / ".codex"
    project.mkdir()
    made, chance = Rollout(THREAD, cwd=str(project), paginated=True), random.Random(1)
    for _ in range(TURNS):
        _turn(made, chance)
    path, store = made.save(config), home / ".claude" / "session-store"
    install(store, agents.client(Homes({"codex": config, "claude": home / ".claude"}), "codex"), python=sys.executable)
    place = timing.here(home, project)
    place.run([*SESSGIT, "import"])
    payload = {"session_id": THREAD, "transcript_path": str(path), "cwd": str(project), "hook_event_name": "Stop"}
    waits: dict[str, list[Took]] = {PASS: [], "the stub (goal .5 x, at most 1 x)": []}
    latencies = list[float]()
    for _ in range(scale.rounds * 2):
        waits[PASS].append(place.run(PASS_COMMAND))
        wait, latency = _record(place, store, made, path, chance, payload)
        waits["the stub (goal .5 x, at most 1 x)"].append(wait)
        latencies.append(latency)
    timing.passes.extend(each.seconds for each in waits[PASS])
    yield timing.of("Codex's wait at each event", waits, PASS)
    known = [each.seconds for each in waits[PASS]]
    rows = {PASS: known, "last byte to commit (goal 300 ms)": latencies, "the worst of them": [max(latencies)]}
    yield frame.table(f"from the last byte of a turn of Codex to its commit, turns {TURNS + 1:,} and later", rows, PASS)


def _record(
    place: Place, store: Path, made: Rollout, path: Path, chance: random.Random, payload: dict[str, str]
) -> tuple[Took, float]:
    """Write one more turn as the client does; return what its hook took, and the seconds from the turn's last byte to
    its commit."""
    known, before = len(made.lines), refs.read(store, head_ref(THREAD))
    _turn(made, chance)
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in made.lines[known:-1]))
        file.flush()
        given = json.dumps(payload | {"last_assistant_message": "ok"})
        wait = place.run(["sh", "-c", stub_command(store / "hook")], given)
        time.sleep(_TURN_END)
        file.write(made.lines[-1] + b"\n")
    written = time.perf_counter()
    while refs.read(store, head_ref(THREAD)) == before:
        if time.perf_counter() - written > PATIENCE:
            raise frame.BenchError("a turn was not recorded")
        time.sleep(0.001)
    latency = time.perf_counter() - written
    while list((store / "spool").iterdir()):
        time.sleep(0.01)  # until the recorder has gone: it must not be at work beside the next one
    return wait, latency


def _turn(made: Rollout, chance: random.Random) -> None:
    """A turn of the same text as one of Claude Code's."""
    prompt, ((_, _, read), (_, _, tests), (_, edit, _)), answer = sessions.turn(len(made.ends), chance)
    change = f"*** Update File: src/f.py\n@@\n-{edit['old_string']}\n+{edit['new_string']}\n"
    made.start(prompt).call("cat src/f.py", read).call("pytest", tests).apply(change).end(answer)


if __name__ == "__main__":
    timing.run_alone(measure)
