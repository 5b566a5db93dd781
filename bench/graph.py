"""The cells of one long session: order and chain of 10,000 of them, and the commands that ask for a graph."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sessions
import timing
from timing import SESSGIT, Place

from sessgit.model import graph

CELLS = 10_000
TURNS = 5_000
ROUNDS = 9
SESSION = "b0000000-0000-4000-8000-000000000003"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        project = home / "project"
        project.mkdir()
        place = Place(project, {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"})
        path = home / ".claude" / "projects" / "bench" / f"{SESSION}.jsonl"
        sessions.write(path, project, TURNS, seed=3)
        subprocess.run([*SESSGIT, "import", path], env=dict(place.env), cwd=project, check=True, capture_output=True)
        measure(place, SESSION, TURNS)


def measure(place: Place, session: str, turns: int) -> None:
    """Prints how long it takes, of made-up cells and of a session that is recorded."""
    cells()
    rows = {
        "log -n 20": ["log", session, "-n", "20"],
        "cells": ["cells", session],
        "cells --index": ["cells", session, "--index"],
        "cell": ["cell", f"{session}@-1.6"],
        "deps": ["deps", f"{session}@-1.6"],
        "deps --graph": ["deps", f"{session}@-1.6", "--graph"],
        "why": ["why", "src/f0.py", session],
    }
    commands = {name: [*SESSGIT, *arguments] for name, arguments in rows.items()}
    timing.table(f"\ncells, {turns:,} turns of 7", commands, place, ROUNDS)


def cells() -> None:
    """Each cell depends on the one before it and on two among the thirty before that, as in a conversation of many
    calls; and the same with the cells in any order, which then must be sorted."""
    chance = random.Random(1)
    needs = {
        number: sorted({max(0, number - 1 - chance.randrange(30)) for _ in range(3)}) if number else []
        for number in range(CELLS)
    }
    keys = list(needs)
    chance.shuffle(keys)
    shuffled = {key: needs[key] for key in keys}
    asked: dict[str, Callable[[], object]] = {
        "order (goal 50 ms)": lambda: graph.order(needs),
        "chain (goal 50 ms)": lambda: graph.chain(needs, CELLS - 1),
        "what depends on the first": lambda: graph.following(needs, 0),
        "order of cells in any order": lambda: graph.order(shuffled),
        "chain of cells in any order": lambda: graph.chain(shuffled, CELLS - 1),
    }
    times: dict[str, list[float]] = {timing.PASS: [], **{name: [] for name in asked}}
    place = Place(Path.cwd(), dict(os.environ))
    for _ in range(ROUNDS):
        times[timing.PASS].append(place.seconds([SESSGIT[0], "-c", "pass"]))
        for name, ask in asked.items():
            started = time.perf_counter()
            ask()
            times[name].append(time.perf_counter() - started)
    timing.show(f"\na graph of {CELLS:,} cells", times, timing.PASS)


if __name__ == "__main__":
    main()
