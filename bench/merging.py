"""Two long conversations brought back together: part of `make bench`, or alone.

Ours and theirs have half of their turns in common. A merge into a new conversation leaves both as they are and is
measured several times; one that is appended changes ours, and is measured once for each mode.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import sessions
import timing
from frame import Table
from timing import PASS, PASS_COMMAND, SESSGIT, Place, Scale, Took

from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

OURS = ("a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002")
THEIRS = ("b0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002")


def measure(scale: Scale) -> Iterator[Table]:
    """Merges into a new conversation, and into ours."""
    with timing.folder() as home:
        place = timing.here(home, home / "project")
        place.cwd.mkdir()
        transcripts = home / ".claude" / "projects" / "bench"
        for number, names in enumerate(zip(OURS, THEIRS, strict=True)):
            _pair(transcripts, place.cwd, names, scale.merged, seed=number)
        _record(home, [transcripts / f"{name}.jsonl" for name in (*OURS, *THEIRS)])
        yield _new(place, scale)
        yield _appended(place, scale)


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
    stores.create_store(store_path)
    for path in paths:
        index = Index(store_path, partial(Store, store_path))
        record(Context(index), TranscriptSource(path, path.stem, home / ".claude", final=True))
        index.close()


def _new(place: Place, scale: Scale) -> Table:
    merge = [*SESSGIT, "merge", THEIRS[0], "--into", OURS[0]]
    rows = {
        "tree of the family": [*SESSGIT, "tree", OURS[0]],
        "merge --dry-run": [*merge, "--dry-run"],
        "merge --new": [*merge, "--new"],
    }
    title = f"two conversations of {scale.merged:,} turns, half of them in common"
    return timing.table(title, rows, place, scale.few)


def _appended(place: Place, scale: Scale) -> Table:
    took: dict[str, list[Took]] = {PASS: [place.run(PASS_COMMAND) for _ in range(scale.rounds)]}
    graft = [*SESSGIT, "merge", THEIRS[0], "--into", OURS[0], "--mode", "graft", "--new"]
    took["merge --mode graft --new"] = [place.run(graft)]
    for ours, theirs, mode in zip(OURS, THEIRS, ("summary", "graft"), strict=True):
        merge = [*SESSGIT, "merge", theirs, "--into", ours, "--mode", mode]
        took[f"merge --mode {mode}, appended"] = [place.run(merge)]
        took[f"undo of that {mode}"] = [place.run([*SESSGIT, "undo"])]
    return timing.of("grafted and appended, once each", took, PASS)


if __name__ == "__main__":
    timing.run_alone(measure)
