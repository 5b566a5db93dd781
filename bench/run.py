"""`make bench`: how fast sessgit is, as ratios within one run.

Absolute times say little on a machine that others use too; so every figure stands beside `python3 -c pass`, run in
turn with it. Medians of interleaved runs. Nothing here passes or fails: work counts are what tests check.
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
from collections.abc import Callable
from pathlib import Path

import sessions

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
        bench.recording()
        bench.latency()


class Bench:
    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "home" / "project"
        self.config, self.store = self.home / ".claude", self.home / ".claude" / "session-store"
        self.project.mkdir(parents=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.folder = self.config / "projects" / "bench"

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
            [sys.executable, "-m", "sessgit", "fork", SESSION.format(3), "--at", "2500", "--no-restore", "--json"],
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

        self._table("the client's wait", {"the stub (goal .5, at most 1)": (command, payload)}, clear)

    def commands(self) -> None:
        """Whole commands on a session of 5,000 turns."""
        program, session = [sys.executable, "-m", "sessgit"], SESSION.format(3)
        listed = subprocess.check_output([*program, "ls", "--json"], env=self.env, cwd=self.project)
        fork = next(s["id"] for s in json.loads(listed)["sessgit.ls/v1"] if s["parent"])
        rows: dict[str, tuple[list[str], str | None]] = {
            "sessgit --help": ([*program, "--help"], None),
            "log (goal 200 ms)": ([*program, "log", session], None),
            "log -n 20": ([*program, "log", session, "-n", "20"], None),
            "fork --at 2500 (goal 300 ms)": ([*program, "fork", session, "--at", "2500"], None),
            "fork --at 2500 --no-restore": ([*program, "fork", session, "--at", "2500", "--no-restore"], None),
            "diff (goal 250 ms)": ([*program, "diff", session, fork], None),
            "ls": ([*program, "ls"], None),
        }
        self._table(f"whole commands, {LONG:,} turns", rows)

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

    def _table(
        self, title: str, rows: dict[str, tuple[list[str], str | None]], after: Callable[[], None] = lambda: None
    ) -> None:
        times: dict[str, list[float]] = {name: [] for name in ["python3 -c pass", *rows]}
        for _ in range(ROUNDS):
            for name, (command, given) in {"python3 -c pass": ([sys.executable, "-c", "pass"], None), **rows}.items():
                started = time.perf_counter()
                subprocess.run(
                    command, env=self.env, cwd=self.project, input=(given or "").encode(),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                )  # fmt: skip
                times[name].append(time.perf_counter() - started)
                after()
        base = statistics.median(times["python3 -c pass"])
        print(title)
        for name, measured in times.items():
            median = statistics.median(measured)
            print(f"  {name:<32}  {median * 1e3:8.1f} ms   {median / base:6.2f} x")


if __name__ == "__main__":
    main()
