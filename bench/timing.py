"""Commands and questions timed in turn with `python -c pass`.

Absolute times say little on a machine that others use too: so every figure stands beside one that is known, taken in
the same run, in interleaved rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import frame
from frame import Table

PASS = "python -c pass"
PASS_COMMAND = [sys.executable, "-c", "pass"]
SESSGIT = [sys.executable, "-m", "sessgit"]

passes: list[float] = []
"""What `python -c pass` took, each time in this run: how evenly the machine worked."""


@dataclass(frozen=True)
class Scale:
    """How much is measured: rounds, and the sizes of the standard cases."""

    rounds: int = 9
    few: int = 3
    """Rounds of what takes seconds."""
    sessions: int = 10_000
    turns: int = 5_000
    merged: int = 5_000
    """Turns of each of two sessions that are brought together."""
    megabytes: int = 350
    """Of transcripts that are imported."""
    large: int = 200
    """Megabytes of one large transcript."""
    transcripts: Path | None = None
    """A folder with transcripts to import in place of made-up ones."""


FULL = Scale()
QUICK = Scale(rounds=3, few=1, sessions=1_000, turns=1_000, merged=200, megabytes=25, large=40)


@dataclass(frozen=True)
class Took:
    """How long a command took, the most memory that a process of it had in use, in MB, and the seconds that processors
    worked for it, also for what it started."""

    seconds: float
    peak: float
    work: float


@dataclass(frozen=True)
class Place:
    """Where commands run, and in which environment."""

    cwd: Path
    env: Mapping[str, str]

    def seconds(self, command: Sequence[str], given: str = "") -> float:
        """How long a command takes, whatever it prints; raises BenchError where it fails."""
        return self.run(command, given).seconds

    def run(self, command: Sequence[str], given: str = "", *, whole: bool = False, good: int = 0) -> Took:
        """Time and memory of a command; with `whole`, of all its processes at once. Raises BenchError where it ends
        with another exit code than 0 and `good`."""
        asked = {"command": list(map(str, command)), "cwd": str(self.cwd), "env": dict(self.env)}
        pipe = _starter()
        assert pipe.stdin is not None and pipe.stdout is not None
        pipe.stdin.write(json.dumps({**asked, "given": given, "whole": whole}) + "\n")
        pipe.stdin.flush()
        told = json.loads(pipe.stdout.readline())
        if told["code"] not in (0, good):
            raise frame.BenchError(f"{_spoken(command)}: exit code {told['code']}\n{told['said']}")
        return Took(told["seconds"], told["peak"] / 1e6, told["work"])

    def known(self) -> float:
        """How long `python -c pass` takes, which is noted."""
        passes.append(self.seconds(PASS_COMMAND))
        return passes[-1]


def _spoken(command: Sequence[str]) -> str:
    """The command without the folders of this machine."""
    return " ".join(Path(part).name if part.startswith("/") else part for part in command)[:200]


@cache
def _starter() -> subprocess.Popen[str]:
    path = Path(__file__).with_name("starter.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is there for so long, by a path without links; what still writes to it in the end harms nothing."""
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def here(home: Path, cwd: Path | None = None, more: Mapping[str, str] = MappingProxyType({})) -> Place:
    """A place with a home of its own, and nothing of the caller's environment but PATH and TMPDIR."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    env = {**kept, "HOME": str(home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", **more}
    return Place(cwd or home, env)


def table(
    title: str,
    rows: Mapping[str, Sequence[str]],
    place: Place,
    rounds: int,
    *,
    given: str = "",
    after: Callable[[], None] = lambda: None,
) -> Table:
    """The commands in interleaved rounds, beside `python -c pass`."""
    took: dict[str, list[Took]] = {PASS: [], **{name: [] for name in rows}}
    for _ in range(rounds):
        for name, command in {PASS: PASS_COMMAND, **rows}.items():
            took[name].append(place.run(command, given))
            after()
    passes.extend(each.seconds for each in took[PASS])
    return of(title, took, PASS)


def of(title: str, took: Mapping[str, Sequence[Took]], base: str, note: str = "") -> Table:
    """The table of what commands took, each as a multiple of `base`."""
    seconds = {name: [each.seconds for each in all_] for name, all_ in took.items()}
    peaks = {name: max(each.peak for each in all_) for name, all_ in took.items()}
    work = {name: statistics.median(each.work for each in all_) for name, all_ in took.items()}
    return frame.table(title, seconds, base, peaks=peaks, work=work, note=note)


def run_alone(measure: Callable[[Scale], Iterator[Table]], scale: Scale = FULL) -> None:
    """Prints the tables of one file of the suite, as they come."""
    started = time.perf_counter()
    for found in measure(scale):
        print(frame.shown(found), end="\n\n", flush=True)
    print(f"in all {time.perf_counter() - started:.0f} s")
