"""The cells of one long session: order and chain of 10,000 of them, the graph of a session that is recorded, and the
commands that ask for one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import frame
import sessions
import timing
from frame import Table
from timing import PASS, SESSGIT, Place, Scale

from sessgit.history import cell_graph
from sessgit.model import dependency_graph
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

CELLS = 10_000
SESSION = "b0000000-0000-4000-8000-000000000003"


def measure(scale: Scale) -> Iterator[Table]:
    """A graph of made-up cells, and that of one session that is recorded."""
    with timing.folder() as home:
        project = home / "project"
        project.mkdir()
        place = timing.here(home, project)
        path = home / ".claude" / "projects" / "bench" / f"{SESSION}.jsonl"
        sessions.write(path, project, scale.turns, seed=3)
        place.run([*SESSGIT, "import", str(path)])
        yield cells(scale.rounds)
        yield recorded(place, SESSION, scale)
        yield commands(place, SESSION, scale)


def commands(place: Place, session: str, scale: Scale) -> Table:
    """The commands that ask for cells and for what they depend on."""
    rows = {
        "log -n 20": ["log", session, "-n", "20"],
        "cells (goal 400 ms)": ["cells", session],
        "cells --operation, of all turns": ["cells", session, "--operation", "None"],
        "cells --index": ["cells", session, "--index"],
        "cell (goal 400 ms)": ["show", f"{session}@-1.6"],
        "deps (goal 400 ms)": ["deps", f"{session}@-1.6"],
        "deps --down (goal 400 ms)": ["deps", f"{session}@1.6", "--down"],
        "deps --graph (goal 400 ms)": ["deps", f"{session}@-1.6", "--graph"],
        "why (goal 400 ms)": ["why", "src/f0.py", session],
    }
    asked = {name: [*SESSGIT, *arguments] for name, arguments in rows.items()}
    return timing.table(f"cells, {scale.turns:,} turns of 7", asked, place, scale.rounds)


def cells(rounds: int) -> Table:
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
        "order (goal 50 ms)": lambda: dependency_graph.topological_order(needs),
        "chain (goal 50 ms)": lambda: dependency_graph.reachable(needs, CELLS - 1),
        "order of cells in any order": lambda: dependency_graph.topological_order(shuffled),
    }
    return questions(f"a graph of {CELLS:,} cells, in one process", asked, rounds)


def recorded(place: Place, session: str, scale: Scale) -> Table:
    """The graph of a recorded session out of the index, and out of the turns' folders where the index has nothing."""
    path = Path(place.env["HOME"]) / ".claude" / "session-store"
    store = Store(path)
    with closing(Index(path, lambda: store)) as index:
        index.sync()
        branch = index.branch(session)
        assert branch is not None
        known = index.cached_turns(session, 1, None)
        found = cell_graph.read_graph(Context(index), branch)
        last = f"{scale.turns}.6"

        def anew() -> None:
            index._db.execute("DELETE FROM cells")
            cell_graph.read_graph(Context(index), branch)

        asked: dict[str, Callable[[], object]] = {
            "its graph out of the index": lambda: cell_graph.read_graph(Context(index), branch),
            "its graph out of the turns' folders": anew,
            "order": lambda: dependency_graph.topological_order(found.needs()),
            "chain": lambda: cell_graph.cell_chain(found, last, down=False),
            "what depends on the first": lambda: cell_graph.cell_chain(found, "1.1", down=True),
        }
        told = questions(f"{len(found.nodes):,} cells of {scale.turns:,} turns, in one process", asked, scale.rounds)
        assert index.cached_turns(session, 1, None) == known
    return told


def questions(title: str, asked: Mapping[str, Callable[[], object]], rounds: int) -> Table:
    """How long each takes within this process."""
    times: dict[str, list[float]] = {PASS: [], **{name: [] for name in asked}}
    place = timing.here(Path.cwd())
    for _ in range(rounds):
        times[PASS].append(place.known())
        for name, ask in asked.items():
            started = time.perf_counter()
            ask()
            times[name].append(time.perf_counter() - started)
    return frame.table(title, times, PASS)


if __name__ == "__main__":
    timing.run_alone(measure)
