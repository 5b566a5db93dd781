"""`sessgit gc` beside git's own packing: part of `make bench`, or alone.

Each begins with the same loose objects, eight of them for each turn. `git repack -a -d -f -F` is what `gc` does in its
own way, which names the objects otherwise; `git repack -d` packs without looking for better deltas, as the recorder
does in the background.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import sessions
import timing
from frame import Table
from timing import SESSGIT, Scale, Took

from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

SESSION = "b0000000-0000-4000-8000-000000000001"


def measure(scale: Scale) -> Iterator[Table]:
    """`gc` beside the packing of git that it takes the place of."""
    with timing.folder() as root:
        _make(root / "loose", root / "projects" / "bench" / f"{SESSION}.jsonl", scale.turns * 3 // 4)
        counted = subprocess.check_output(["git", "-C", root / "loose", "count-objects"], text=True)
        place = timing.here(root, more={"SESSGIT_STORE": str(root / "store")})
        git = ["git", "-C", str(root / "store"), "-c", "pack.compression=9", "repack", "-q"]
        rows = {
            "git repack -a -d -f -F": [*git, "-a", "-d", "-f", "-F", "--keep-unreachable"],
            "sessgit gc": [*SESSGIT, "gc"],
            "git repack -d": [*git, "-d"],
        }
        took: dict[str, list[Took]] = {name: [] for name in rows}
        for _ in range(scale.few):
            for name, command in rows.items():
                shutil.copytree(root / "loose", root / "store")
                took[name].append(place.run(command, whole=True))
                shutil.rmtree(root / "store")
        yield timing.of(f"packing {counted.partition(',')[0]}", took, next(iter(rows)))


def _make(store_path: Path, transcript: Path, turns: int) -> None:
    sessions.write(transcript, Path("/home/ada/project"), turns)
    stores.create_store(store_path)
    store = Store(store_path)
    index = Index(store_path, lambda: store)
    record(Context(index), TranscriptSource(transcript, SESSION, transcript.parents[2]))
    index.close()


if __name__ == "__main__":
    timing.run_alone(measure)
