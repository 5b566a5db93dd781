"""Two long conversations brought back together: part of `make bench`, or alone with a number of turns.

    python bench/merging.py [TURNS]

Ours and theirs have half of their turns in common. A merge into a new conversation leaves both as they are and is
measured several times; one that is appended changes ours, and is measured once for each mode.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import sessions
from timing import PASS, SESSGIT, Place, show, table

from sessgit.ops.recording.record import record
from sessgit.ops.recording.source import Rules, Source
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.store import Store

TURNS = 5_000
ROUNDS = 3
OURS = ("a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002")
THEIRS = ("b0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002")


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        place = Place(home / "project", {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"})
        place.cwd.mkdir()
        transcripts = home / ".claude" / "projects" / "bench"
        for number, names in enumerate(zip(OURS, THEIRS, strict=True)):
            _pair(transcripts, place.cwd, names, turns, seed=number)
        _record(home, [transcripts / f"{name}.jsonl" for name in (*OURS, *THEIRS)])
        _new(place, turns)
        _appended(place)


def _pair(folder: Path, cwd: Path, names: tuple[str, str], turns: int, *, seed: int) -> None:
    """Writes two transcripts that begin with the same turns, the second as the client copies a conversation."""
    ours, theirs = (folder / f"{name}.jsonl" for name in names)
    talk = sessions.write(ours, cwd, turns // 2, seed=seed)
    shared = ours.read_bytes()
    theirs.write_bytes(shared.replace(names[0].encode(), names[1].encode()))
    last = json.loads(shared.splitlines()[-1])["uuid"]
    copy = sessions.Conversation(names[1], cwd, theirs, parent=last, _count=1 << 24)
    chance = random.Random(seed)
    for number in range(turns // 2, turns):
        talk.turn(*sessions.turn(number, chance))
        copy.turn(*sessions.turn(number, chance))


def _record(home: Path, paths: list[Path]) -> None:
    store_path = home / ".claude" / "session-store"
    stores.create(store_path)
    for path in paths:
        store = Store(store_path)
        index = Index(store_path, lambda store=store: store)
        record(store, index, Source(path, path.stem, home / ".claude", final=True), Rules())
        index.close()


def _new(place: Place, turns: int) -> None:
    merge = [*SESSGIT, "merge", THEIRS[0], "--into", OURS[0]]
    rows = {
        "tree of the family": [*SESSGIT, "tree", OURS[0]],
        "merge --dry-run": [*merge, "--dry-run"],
        "merge --new": [*merge, "--new"],
        "merge --mode graft --new": [*merge, "--mode", "graft", "--new"],
    }
    table(f"two conversations of {turns:,} turns, {turns // 2:,} in common", rows, place, ROUNDS)


def _appended(place: Place) -> None:
    times = {PASS: [place.seconds([sys.executable, "-c", "pass"]) for _ in range(ROUNDS)]}
    for ours, theirs, mode in zip(OURS, THEIRS, ("summary", "graft"), strict=True):
        merge = [*SESSGIT, "merge", theirs, "--into", ours, "--mode", mode]
        times[f"merge --mode {mode}, appended"] = [place.seconds(merge)]
        times[f"undo of that {mode}"] = [place.seconds([*SESSGIT, "undo"])]
    show("appended to ours, once each", times, PASS)


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"in all {time.perf_counter() - started:.0f} s")
