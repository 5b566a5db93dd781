"""The cells of one long session: order and chain of 10,000 of them, the graph of a session that is recorded, and the
commands that ask for one."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import sessions
import timing
from timing import SESSGIT, Place

from sessgit.model import graph
from sessgit.ops.cells import chains
from sessgit.ops.cells import graph as cell_graph
from sessgit.store.cells import remembered
from sessgit.store.index import Index
from sessgit.store.store import Store

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
    recorded(place, session, turns)
    rows = {
        "log -n 20": ["log", session, "-n", "20"],
        "cells (goal 400 ms)": ["cells", session],
        "cells --operation, of all turns": ["cells", session, "--operation", "None"],
        "cells --index": ["cells", session, "--index"],
        "cell (goal 400 ms)": ["cell", f"{session}@-1.6"],
        "deps (goal 400 ms)": ["deps", f"{session}@-1.6"],
        "deps --down (goal 400 ms)": ["deps", f"{session}@1.6", "--down"],
        "deps --graph (goal 400 ms)": ["deps", f"{session}@-1.6", "--graph"],
        "why (goal 400 ms)": ["why", "src/f0.py", session],
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
    by_place = list(needs.values())
    shuffled = {key: needs[key] for key in keys}
    asked: dict[str, Callable[[], object]] = {
        "order (goal 50 ms)": lambda: graph.order(needs),
        "chain (goal 50 ms)": lambda: graph.chain(needs, CELLS - 1),
        "what depends on the first": lambda: graph.following(needs, 0),
        "order of cells in any order": lambda: graph.order(shuffled),
        "chain of cells in any order": lambda: graph.chain(shuffled, CELLS - 1),
        "chain by places (goal 50 ms)": lambda: graph.behind(by_place, CELLS - 1),
        "what depends on the first, by places": lambda: graph.ahead(by_place, 0),
    }
    questions(f"\na graph of {CELLS:,} cells", asked)


def recorded(place: Place, session: str, turns: int) -> None:
    """The graph of a recorded session out of the index, and out of the turns' folders where the index has nothing."""
    path = Path(place.env["HOME"]) / ".claude" / "session-store"
    store = Store(path)
    with closing(Index(path, lambda: store)) as index:
        index.sync()
        branch = index.branch(session)
        assert branch is not None
        known = remembered.of_branch(index, session, 1, None)
        found = cell_graph.read(store, index, branch)
        last = f"{turns}.6"

        def anew() -> None:
            index._db.execute("DELETE FROM cells")
            cell_graph.read(store, index, branch)

        asked: dict[str, Callable[[], object]] = {
            "its graph out of the index": lambda: cell_graph.read(store, index, branch),
            "its graph out of the turns' folders": anew,
            "order (goal 50 ms for 10,000 cells)": lambda: graph.order(found.needs()),
            "chain (goal 50 ms for 10,000 cells)": lambda: chains.chain(found, last, down=False),
            "what depends on the first": lambda: chains.chain(found, "1.1", down=True),
        }
        questions(f"\n{len(found.nodes):,} cells of {turns:,} turns", asked)
        assert remembered.of_branch(index, session, 1, None) == known


def questions(title: str, asked: Mapping[str, Callable[[], object]]) -> None:
    """Prints how long each takes within this process."""
    times: dict[str, list[float]] = {timing.PASS: [], **{name: [] for name in asked}}
    place = Place(Path.cwd(), dict(os.environ))
    for _ in range(ROUNDS):
        times[timing.PASS].append(place.seconds([SESSGIT[0], "-c", "pass"]))
        for name, ask in asked.items():
            started = time.perf_counter()
            ask()
            times[name].append(time.perf_counter() - started)
    timing.show(title, times, timing.PASS)


if __name__ == "__main__":
    main()
