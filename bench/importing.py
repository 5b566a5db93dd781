"""`sessgit import` beside the first sync of agentsview: part of `make bench`, or alone with a folder.

    python bench/importing.py [FOLDER] [--agentsview PROGRAM]

FOLDER is one of the client's, with `projects/` in it; without it conversations of two kinds stand in: long turns with
large results, and small turns. The import is taken apart: bringing in, packing, indexing the words. Where agentsview
is there, each of the two begins with nothing, in turn. Processor seconds are those of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import sessions
from timing import SESSGIT

ROUNDS = 3
_SMALL = (200, 100)
"""Sessions of small turns, and turns in each."""
_LARGE = (40, 120)


@dataclass
class Taken:
    """Seconds by the clock and of the processors."""

    clock: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{statistics.median(self.clock):7.1f} s   {statistics.median(self.work):7.1f} s of the processors"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--agentsview", default=shutil.which("agentsview"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        if given.folder:
            measure(root, "the folder", given.folder.resolve(), given.agentsview)
        else:
            measure(root, "small turns (goal 1,700 turns/s)", _small(root / "small"), given.agentsview)
            measure(root, "long turns", _large(root / "large"), given.agentsview)


def measure(root: Path, title: str, folder: Path, agentsview: str | None) -> None:
    size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    ours, parts, theirs = Taken(), [Taken(), Taken()], Taken()
    turns = 0
    for _ in range(ROUNDS):
        env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "LANG": "C.UTF-8"}
        (root / "home").mkdir()
        env["SESSGIT_STORE"] = str(root / "store")
        told = _timed([*SESSGIT, "import", str(folder / "projects"), "--json"], env, ours)
        turns = json.loads(told)["sessgit.import/v1"]["turns"]
        _timed(["git", "-C", env["SESSGIT_STORE"], "repack", "-q", "-a", "-d", "-f", "-F"], env, parts[0])
        (root / "store" / "text.sqlite3").unlink()
        _timed([*SESSGIT, "search", "nothing"], env, parts[1])
        shutil.rmtree(root / "store")
        if agentsview:
            quiet = {"AGENTSVIEW_NO_DAEMON": "1", "CLAUDE_PROJECTS_DIR": str(folder / "projects")}
            _timed([agentsview, "sync"], {**env, **quiet}, theirs)
        shutil.rmtree(root / "home")
    print(f"\n{title}: {size / 1e6:.0f} MB, {turns:,} turns, {os.cpu_count()} cores")
    rest = statistics.median(ours.clock) - sum(statistics.median(part.clock) for part in parts)
    print(f"  sessgit import             {ours}   {turns / statistics.median(ours.clock):,.0f} turns/s")
    print(f"    of that bringing in      {rest:7.1f} s   {turns / max(rest, 0.001):,.0f} turns/s")
    print(f"    packing all              {parts[0]}")
    print(f"    indexing the words       {parts[1]}")
    if agentsview:
        ratio = statistics.median(ours.clock) / statistics.median(theirs.clock)
        print(f"  agentsview sync (goal 1)   {theirs}   sessgit takes {ratio:.2f} x")


def _timed(command: list[str], env: dict[str, str], taken: Taken) -> str:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken.clock.append(time.perf_counter() - began)
    taken.work.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return done.stdout


def _large(folder: Path) -> Path:
    for number in range(_LARGE[0]):
        path = folder / "projects" / f"-p{number % 5}" / f"b0000000-0000-4000-8000-0000000000{number:02}.jsonl"
        sessions.write(path, Path("/home/ada/project"), _LARGE[1], seed=number)
    return folder


def _small(folder: Path) -> Path:
    """Turns of one short call each, two kilobytes."""
    for number in range(_SMALL[0]):
        chance = random.Random(number)
        path = folder / "projects" / f"-p{number % 5}" / f"{uuid.UUID(int=chance.getrandbits(128), version=4)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        talk = sessions.Conversation(path.stem, Path("/home/ada/project"), path)
        with path.open("w", encoding="utf-8") as file:
            for turn in range(_SMALL[1]):
                words = sessions.turn(turn, chance)[2].split()
                call = ("Bash", {"command": f"pytest {words[0]}"}, " ".join(words[:30]))
                for line in talk.lines(f"prompt {turn}", [call], " ".join(words[30:])):
                    file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return folder


if __name__ == "__main__":
    sys.exit(main())
