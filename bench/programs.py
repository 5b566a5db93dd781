"""The library on sessions of 1,000 cells: 100 turns of 10, 1,000 loose cells, and one turn with all of them.

What a program waits for. *Save* is what commits: the end of a turn or of a loose cell, a change of the state. Beside it
stands the least that a program could do by itself, its state in a JSON file, written, synced and renamed. *Load* and
the questions stand beside `json.load` of an index of 1,000 cells. Half of the runs of an operation take at most its
p50, and 95 of 100 its p95.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import frame
import timing
from frame import Table
from timing import Scale

from sessgit import Session, Store

T = TypeVar("T")

CELLS = 1_000
FILES = 300
FILE = "a JSON file, written, synced, renamed"
READ = f"json.load of an index of {CELLS:,} cells"
_TARGETS = {
    "create session": ("p50 (goal 10 ms)", "p95 (goal 50 ms)"),
    "load session": ("p50 (goal 20 ms)", "p95 (goal 100 ms)"),
    "save session": ("p50 (goal 30 ms)", "p95 (goal 150 ms)"),
    "create cell": ("p50 (goal 5 ms)", "p95 (goal 20 ms)"),
    "end cell": ("p50 (goal 5 ms)", "p95 (goal 20 ms)"),
    "query cells": ("p50 (goal 10 ms)", "p95 (goal 50 ms)"),
}
SHAPES = {f"{CELLS // 10} turns": 10, "loose": 1, "one turn": CELLS}


def measure(scale: Scale) -> Iterator[Table]:
    """What is written, what is read, and turns of ever more cells."""
    with timing.folder() as folder:
        bench = Bench(folder / "programs")
        bench.prepare()
        for _ in range(scale.rounds):
            bench.write()
            bench.read()
        shapes = f"{CELLS // 10} turns of 10, {CELLS:,} loose, or one turn"
        yield frame.table(f"a program writes its session of {CELLS:,} cells", bench.written, FILE, note=shapes)
        yield frame.table("and reads it", bench.told, READ)
        yield bench.percentiles(100 if scale.rounds > 3 else 20)
        yield bench.long_turns()


class Bench:
    def __init__(self, home: Path) -> None:
        self.home, self.plain, self.repository = home, home / "plain", home / "repository"
        self.place, self.config, self.index = home / "store", home / ".claude", home / "index.json"
        self.ids: dict[str, str] = {}
        self.count = 0
        self.written: dict[str, list[float]] = {}
        self.told: dict[str, list[float]] = {}

    def prepare(self) -> None:
        """A session of each shape, recorded without waiting for the disk, and the index that stands beside."""
        for path in (self.plain, self.repository):
            path.mkdir(parents=True)
        _make_repository(self.repository)
        settings = self.place / "config.toml"
        self._open().close()
        settings.write_text("[record]\nfsync = false\n")
        with self._open() as store:
            for shape, size in SHAPES.items():
                self.ids[shape] = _filled(store.create_session(self.plain), size).id
            self.ids["in git"] = _filled(store.create_session(self.repository), 10).id
            session = store.load_session(self.ids["one turn"])
            cells = {cell.id: {"type": cell.type, "dependencies": list(cell.dependencies)} for cell in session.cells()}
            document = {"cells": cells, "execution_order": session.execution_order()}
        self.index.write_text(json.dumps(document, indent=2))
        settings.unlink()
        self.store = self._open()
        self.sessions = {shape: self.store.load_session(id) for shape, id in self.ids.items()}

    def write(self) -> None:
        """Each write once."""
        self.count += 1
        timed(self.written, FILE, self._write_file)
        timed(self.written, "create session (goal 5 ms)", lambda: self.store.create_session(self.plain))
        name = f"named-{self.count}"
        timed(self.written, "create session, named (goal 5 ms)", lambda: self.store.create_session(self.plain, name))
        for shape, session in self.sessions.items():
            cell = timed(self.written, f"create cell, {shape} (goal 2.5 ms)", partial(_begun, session))
            goal = "(goal 5 ms)" if shape == "loose" else "(goal 15 ms)"
            timed(self.written, f"save cell, {shape} {goal}", partial(session.complete_cell, cell, 1))
        for shape in ("100 turns", "in git"):
            with self.sessions[shape].turn("go on") as turn:
                _chain(self.sessions[shape], 10)
                turn.answer("done")
                timed(self.written, f"save turn of 10, {shape} (goal 15 ms)", turn.end)
        session, sure = self.sessions["loose"], self.count / 100
        timed(self.written, "save state, loose (goal 15 ms)", lambda: session.edit(confidence=sure))

    def read(self) -> None:
        """Each question once in a session that was just loaded, and again."""
        timed(self.told, READ, lambda: json.loads(self.index.read_bytes()))
        for shape in SHAPES:
            load = partial(self.store.load_session, self.ids[shape])
            last = timed(self.told, f"load, {shape} (goal 10 ms)", load).cells()[-1]
            for again, ask in (("", load), (", again", partial(_asked, load()))):
                by_type, order, chain = ask(), ask(), ask()
                timed(self.told, f"cells of a type, {shape}{again} (goal 5 ms)", partial(by_type.cells, type="tool"))
                timed(self.told, f"execution order, {shape}{again} (goal 5 ms)", order.execution_order)
                timed(self.told, f"dependency chain, {shape}{again} (goal 5 ms)", partial(chain.dependency_chain, last))
        timed(self.told, "open the store, load (goal 10 ms)", lambda: self._open().load_session(self.ids["loose"]))

    def percentiles(self, count: int) -> Table:
        """How the times of each operation are spread, in a session of 1,000 cells that grows by one each time."""
        session, id = self.sessions["100 turns"], self.ids["100 turns"]
        times: dict[str, list[float]] = {}
        for number in range(count):
            timed(times, "create session", lambda: self.store.create_session(self.plain))
            loaded = timed(times, "load session", lambda: self.store.load_session(id))
            timed(times, "query cells", partial(loaded.cells, type="tool"))
            cell = timed(times, "create cell", partial(_begun, session))
            timed(times, "end cell", partial(session.complete_cell, cell, number))
            timed(times, "save session", partial(session.edit, confidence=number / count))
        measured = dict[str, list[float]]()
        for name, seconds in times.items():
            cuts = statistics.quantiles(seconds, n=20, method="inclusive")
            for target, cut in zip(_TARGETS[name], (cuts[9], cuts[18]), strict=True):
                measured[f"{name}, {target}"] = [cut]
        return frame.table(f"how often it takes how long, of {count} times each", measured)

    def long_turns(self) -> Table:
        """Turns of more and more cells: the time of each must stay the same."""
        each_cell: dict[str, list[float]] = {}
        for size in (CELLS // 10, CELLS, 3 * CELLS):
            session = self.store.create_session(self.plain)
            with session.turn("many") as turn:
                each = _chain(session, size)
                started = time.perf_counter()
                turn.end()
            end = (time.perf_counter() - started) / size
            each_cell[f"begin one and end it, of {size:,}"] = each[-50:]
            each_cell[f"its part of the turn's end, of {size:,}"] = [end]
        return frame.table("one turn, by its number of cells: time for each", each_cell, next(iter(each_cell)))

    def _open(self) -> Store:
        return Store.open(self.place, config=self.config)

    def _write_file(self) -> None:
        path = self.home / "session.json.tmp"
        with path.open("wb") as file:
            file.write(json.dumps({"session": self.count, "memory": "x" * 800}, indent=2).encode())
            file.flush()
            os.fsync(file.fileno())
        path.rename(self.home / "session.json")


def timed(times: dict[str, list[float]], name: str, do: Callable[[], T]) -> T:
    """What `do` gives; how long it took is noted under the name."""
    started = time.perf_counter()
    done = do()
    times.setdefault(name, []).append(time.perf_counter() - started)
    return done


def _asked(session: Session) -> Session:
    """The session, of which its cells and what they depend on are known."""
    session.execution_order()
    return session


def _filled(session: Session, size: int) -> Session:
    """The session with its cells, in turns of so many; turns of one are those of loose cells."""
    for _ in range(CELLS // size):
        if size == 1:
            session.complete_cell(_begun(session), {"n": 1})
            continue
        with session.turn("go on"):
            _chain(session, size)
    return session


def _chain(session: Session, size: int) -> list[float]:
    """Cells of the open turn, each of which depends on the one before it; the seconds that each took."""
    took, before = [], ""
    for number in range(size):
        started = time.perf_counter()
        before = _begun(session, [before] if before else [])
        session.complete_cell(before, {"n": number})
        took.append(time.perf_counter() - started)
    return took


def _begun(session: Session, dependencies: list[str] | None = None) -> str:
    return session.begin_cell(
        type="tool", source="search", operation="find", args={"query": "where the lexer begins"},
        dependencies=dependencies or [],
    ).id  # fmt: skip


def _make_repository(folder: Path) -> None:
    for number in range(FILES):
        (folder / f"f{number}.py").write_text("pass\n" * number)
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


if __name__ == "__main__":
    timing.run_alone(measure)
