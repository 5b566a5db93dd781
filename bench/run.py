"""`make bench`: how fast sessgit is, as ratios within one run.

This file measures one long session: the client's wait, commands, recording; and with `programs.py` the library, on
sessions of 1,000 cells. Beside it are `merging.py` (two long sessions brought back together), `many.py` (a store of
thousands), `packing.py` (`gc` beside git's own packing) and `syncing.py` (`push` and `pull` beside git's own). Each can
be run alone.

Every figure stands beside one that is known, see `timing.py`, and a goal in the name of what it is for. Nothing here
passes or fails: work counts are what tests check. A file system without a journal, as some virtual machines have one,
makes files slower the more were deleted in the last minutes: `TMPDIR=/dev/shm make bench` is free of that.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import graph
import programs
import sessions
import timing
from timing import SESSGIT

from sessgit.ops.install import install
from sessgit.ops.recording.record import record
from sessgit.ops.recording.source import Rules, Source
from sessgit.store import refs
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.layout import head
from sessgit.store.recorder import stub
from sessgit.store.store import Store

ROUNDS = 9
LONG = 5_000
LENGTHS = (10, 1_000, LONG)
SESSION = "b0000000-0000-4000-8000-00000000000{}"
FORK = "f0000000-0000-4000-8000-000000000001"


def main() -> None:
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, medians of {ROUNDS} interleaved runs\n")
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as folder:
        bench = Bench(Path(folder).resolve())
        bench.prepare()
        bench.stub()
        bench.commands()
        graph.measure(bench.place, SESSION.format(3), LONG)
        bench.recording()
        bench.latency()
        programs.measure(bench.home.parent / "programs")


class Bench:
    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "home" / "project"
        self.config, self.store = self.home / ".claude", self.home / ".claude" / "session-store"
        self.project.mkdir(parents=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.folder = self.config / "projects" / "bench"
        self.place = timing.Place(self.project, self.env)

    def prepare(self) -> None:
        install(self.store, self.config, python=sys.executable)
        for number, turns in enumerate(LENGTHS, start=1):
            path = self.folder / f"{SESSION.format(number)}.jsonl"
            sessions.write(path, self.project, turns, seed=number)
            started = time.perf_counter()
            self._record(path, fsync=False)
            took = time.perf_counter() - started
            if turns == LONG:
                size = path.stat().st_size / 1e6
                print(f"recording {turns:,} turns at once      {turns / took:8,.0f} turns/s  {size / took:.0f} MB/s\n")
        subprocess.run(
            [*SESSGIT, "fork", SESSION.format(3), "--at", "2500", "--no-restore", "--json"],
            env=self.env, cwd=self.project, check=True, capture_output=True,
        )  # fmt: skip

    def stub(self) -> None:
        """What the client waits for at each event."""
        quiet = self.home / "quiet"
        stores.create(quiet)
        stub.write_stub(quiet, "/bin/true")
        payload = json.dumps({"session_id": "x", "transcript_path": "/nowhere.jsonl", "hook_event_name": "Stop"})
        command = ["sh", "-c", f"[ -r '{quiet}/hook' ] && sh '{quiet}/hook'; exit 0"]

        def clear() -> None:
            for path in (quiet / "spool").glob("*"):
                path.unlink()

        rows = {"the stub (goal .5, at most 1)": command}
        timing.table("the client's wait", rows, self.place, ROUNDS, given=payload, after=clear)

    def commands(self) -> None:
        """Whole commands on a session of 5,000 turns."""
        session = SESSION.format(3)
        listed = subprocess.check_output([*SESSGIT, "ls", "--json"], env=self.env, cwd=self.project)
        fork = next(s["id"] for s in json.loads(listed)["sessgit.ls/v1"] if s["parent"])
        rows = {
            "sessgit --help": ["--help"],
            "log (goal 200 ms)": ["log", session],
            "log -n 20": ["log", session, "-n", "20"],
            "tree": ["tree", session],
            "fork --at 2500 (goal 300 ms)": ["fork", session, "--at", "2500"],
            "fork --at 2500 --no-restore": ["fork", session, "--at", "2500", "--no-restore"],
            "diff (goal 250 ms)": ["diff", session, fork],
            "ls": ["ls"],
        }
        commands = {name: [*SESSGIT, *arguments] for name, arguments in rows.items()}
        timing.table(f"whole commands, {LONG:,} turns", commands, self.place, ROUNDS)

    def recording(self) -> None:
        """The recorder's work for one more turn, by the length of the session: it must not grow."""
        print("\none more turn, in the recorder")
        chance = random.Random(7)
        talks = {}
        for number, turns in enumerate(LENGTHS, start=1):
            path = self.folder / f"{SESSION.format(number)}.jsonl"
            last = json.loads(path.read_bytes().splitlines()[-1])["uuid"]
            talks[turns] = sessions.Conversation(path.stem, self.project, path, parent=last, _count=1 << 20)
        times: dict[int, list[float]] = {turns: [] for turns in LENGTHS}
        for _ in range(ROUNDS * 3):
            for turns, talk in talks.items():
                talk.turn(*sessions.turn(turns, chance))
                started = time.perf_counter()
                self._record(talk.path)
                times[turns].append(time.perf_counter() - started)
        base = statistics.median(times[LENGTHS[0]])
        for turns, measured in times.items():
            median = statistics.median(measured)
            ratio = median / base
            print(f"  at turn {turns:6,}  {median * 1e3:27.1f} ms   {ratio:6.2f} x turn {LENGTHS[0]}")

    def latency(self) -> None:
        """From the transcript's last byte to the commit, through the real stub and recorder."""
        path = self.folder / f"{SESSION.format(2)}.jsonl"
        last = json.loads(path.read_bytes().splitlines()[-1])["uuid"]
        talk = sessions.Conversation(path.stem, self.project, path, parent=last, _count=1 << 21)
        chance, measured = random.Random(9), []
        for _ in range(ROUNDS):
            prompt, calls, answer = sessions.turn(0, chance)
            before = refs.read(self.store, head(path.stem))
            talk.turn(prompt, calls, answer)
            written = time.perf_counter()
            payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": str(self.project)}
            payload |= {"hook_event_name": "Stop", "last_assistant_message": answer}
            subprocess.run(
                ["sh", str(self.store / "hook")], input=json.dumps(payload).encode(), env=self.env, check=True
            )
            while refs.read(self.store, head(path.stem)) == before and time.perf_counter() - written < 10:
                time.sleep(0.001)
            measured.append(time.perf_counter() - written)
            while list((self.store / "spool").iterdir()):
                time.sleep(0.01)  # until the recorder has gone: it must not be at work beside the next one
        median = statistics.median(measured)
        print(f"\nlast byte to commit (goal 300 ms)   {median * 1e3:8.1f} ms   worst {max(measured) * 1e3:.1f} ms")

    def _record(self, path: Path, *, fsync: bool = True) -> None:
        store = Store(self.store, fsync=fsync)
        index = Index(self.store, lambda: store)
        record(store, index, Source(path, path.stem, self.config), Rules())
        index.close()


if __name__ == "__main__":
    main()
