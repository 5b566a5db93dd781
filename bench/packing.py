"""`sessgit gc` beside git's own packing: part of `make bench`, or alone with a number of turns.

    python bench/packing.py [TURNS]

Each begins with the same loose objects, eight of them for each turn. `git repack -a -d -f -F` is what `gc` asks git
for, so its ratio is what the rest of `gc` costs; `git repack -d` packs without looking for better deltas, as the
recorder does in the background.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sessions
from timing import SESSGIT, Place, show

from sessgit.ops.recording.record import record
from sessgit.ops.recording.source import Rules, Source
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.store import Store

TURNS = 3_750
ROUNDS = 3
SESSION = "b0000000-0000-4000-8000-000000000001"


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8"}
        _make(root / "loose", root / "projects" / "bench" / f"{SESSION}.jsonl", turns)
        counted = subprocess.check_output(["git", "-C", root / "loose", "count-objects"], text=True)
        place = Place(root, {**env, "SESSGIT_STORE": str(root / "store")})
        git = ["git", "-C", str(root / "store"), "repack", "-q"]
        rows = {
            "git repack -a -d -f -F": [*git, "-a", "-d", "-f", "-F", "--keep-unreachable"],
            "sessgit gc": [*SESSGIT, "gc"],
            "git repack -d": [*git, "-d"],
        }
        times: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(ROUNDS):
            for name, command in rows.items():
                shutil.copytree(root / "loose", root / "store")
                times[name].append(place.seconds(command))
                shutil.rmtree(root / "store")
        show(f"packing {counted.partition(',')[0]}", times, next(iter(rows)))


def _make(store_path: Path, transcript: Path, turns: int) -> None:
    sessions.write(transcript, Path("/home/ada/project"), turns)
    stores.create(store_path)
    store = Store(store_path)
    index = Index(store_path, lambda: store)
    record(store, index, Source(transcript, SESSION, transcript.parents[2]), Rules())
    index.close()


if __name__ == "__main__":
    main()
