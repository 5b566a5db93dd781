"""Commands timed one after the other, in turn with `python3 -c pass`.

Absolute times say little on a machine that others use too: so every figure stands beside one that is known, taken in
the same run. A goal stands in the name of what it is for.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PASS = "python3 -c pass"
SESSGIT = [sys.executable, "-m", "sessgit"]


@dataclass(frozen=True)
class Place:
    """Where commands run, and in which environment."""

    cwd: Path
    env: Mapping[str, str]

    def seconds(self, command: Sequence[str], given: str = "") -> float:
        """How long a command takes, whatever it prints; raises CalledProcessError where it fails."""
        started = time.perf_counter()
        subprocess.run(
            command, env=dict(self.env), cwd=self.cwd, input=given.encode(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return time.perf_counter() - started


def table(
    title: str,
    rows: Mapping[str, Sequence[str]],
    place: Place,
    rounds: int,
    *,
    given: str = "",
    after: Callable[[], None] = lambda: None,
) -> None:
    """Prints the median of each command and how many times that of `python3 -c pass` it is, in interleaved rounds."""
    every = {PASS: [sys.executable, "-c", "pass"], **rows}
    times: dict[str, list[float]] = {name: [] for name in every}
    for _ in range(rounds):
        for name, command in every.items():
            times[name].append(place.seconds(command, given))
            after()
    show(title, times, PASS)


def show(title: str, times: Mapping[str, Sequence[float]], base: str) -> None:
    """Prints medians, and each as a multiple of that of `base`."""
    one = statistics.median(times[base])
    print(title)
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f"  {name:<44}{median * 1e3:10.1f} ms {median / one:8.2f} x   best {min(measured) * 1e3:.0f} ms")
