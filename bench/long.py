"""One long session: whole commands on it, and what one more turn costs the recorder, by the length of the session."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import frame
import sessions
import timing
from frame import Figure, Table
from timing import SESSGIT, Scale

from sessgit import agents
from sessgit.record.install import install
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.store import Store

SESSION = "b0000000-0000-4000-8000-00000000000{}"


def measure(scale: Scale) -> Iterator[Table]:
    """Recording all of it, commands, and recording one more turn."""
    with timing.folder() as folder:
        bench = Bench(folder, scale)
        yield bench.prepare()
        yield bench.commands()
        yield bench.recording()


class Bench:
    def __init__(self, root: Path, scale: Scale) -> None:
        self.scale, self.long, self.lengths = scale, scale.turns, (10, scale.turns // 5, scale.turns)
        self.home, self.project = root / "home", root / "home" / "project"
        self.config, self.store = self.home / ".claude", self.home / ".claude" / "session-store"
        self.project.mkdir(parents=True)
        self.folder = self.config / "projects" / "bench"
        self.place = timing.here(self.home, self.project)

    def prepare(self) -> Table:
        """Sessions of each length, and a fork of the longest."""
        install(self.store, agents.client(Homes({"claude": self.config})), python=sys.executable)
        for number, turns in enumerate(self.lengths, start=1):
            path = self.folder / f"{SESSION.format(number)}.jsonl"
            sessions.write(path, self.project, turns, seed=number)
            started = time.perf_counter()
            self._record(path, fsync=False)
            took = time.perf_counter() - started
        size = path.stat().st_size / 1e6
        self.place.run([*SESSGIT, "fork", SESSION.format(3), "--at", str(self.long // 2), "--no-restore"])
        rates = (Figure("turns", self.long / took, "turns/s"), Figure("bytes", size / took, "MB/s"))
        return Table(f"recording {self.long:,} turns of 12 KB at once, in one process", rates)

    def commands(self) -> Table:
        """Whole commands on the longest."""
        session, middle = SESSION.format(3), str(self.long // 2)
        listed = subprocess.check_output([*SESSGIT, "ls", "--json"], env=dict(self.place.env), cwd=self.project)
        fork = next(s["id"] for s in json.loads(listed)["sessions"] if s["parent"])
        rows = {
            "sessgit --help": ["--help"],
            "log (goal 200 ms)": ["log", session],
            "log -n 20": ["log", session, "-n", "20"],
            "tree": ["tree", session],
            f"fork --at {middle} (goal 300 ms)": ["fork", session, "--at", middle],
            f"fork --at {middle} --no-restore": ["fork", session, "--at", middle, "--no-restore"],
            "diff (goal 250 ms)": ["diff", session, fork],
            "ls": ["ls"],
        }
        commands = {name: [*SESSGIT, *arguments] for name, arguments in rows.items()}
        return timing.table(f"whole commands, {self.long:,} turns", commands, self.place, self.scale.rounds)

    def recording(self) -> Table:
        """The recorder's work for one more turn, by the length of the session: it must not grow."""
        chance = random.Random(7)
        talks = {}
        for number, turns in enumerate(self.lengths, start=1):
            path = self.folder / f"{SESSION.format(number)}.jsonl"
            last = json.loads(path.read_bytes().splitlines()[-1])["uuid"]
            talks[turns] = sessions.Conversation(path.stem, self.project, path, parent=last, _count=1 << 20)
        times: dict[str, list[float]] = {f"at turn {turns:,}{self._goal(turns)}": [] for turns in self.lengths}
        for _ in range(self.scale.rounds * 3):
            for (turns, talk), measured in zip(talks.items(), times.values(), strict=True):
                talk.turn(*sessions.turn(turns, chance))
                started = time.perf_counter()
                self._record(talk.path)
                measured.append(time.perf_counter() - started)
        return frame.table("one more turn, in the recorder's process", times, next(iter(times)))

    def _goal(self, turns: int) -> str:
        return " (goal 1.2 x)" if turns > self.lengths[0] else ""

    def _record(self, path: Path, *, fsync: bool = True) -> None:
        store = Store(self.store, fsync=fsync)
        index = Index(self.store, lambda: store)
        record(Context(index), TranscriptSource(path, path.stem, self.config))
        index.close()


if __name__ == "__main__":
    timing.run_alone(measure)
