"""Kills, faults and crowds: a short form of each in every run of the tests, the long forms with `make test-crash`."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashworld import World, worlds

_kills = Counter[str]()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Sums the kills, whichever process was told of them."""
    if report.when == "teardown":
        for name, found in report.user_properties:
            if name == "kills" and isinstance(found, dict):
                _kills.update(found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _kills:
        kinds = {"kill": "before a call", "tear": "in the middle of a write", "moment": "at a random moment"}
        told = ", ".join(f"{_kills[kind]:,} {words}" for kind, words in kinds.items())
        terminalreporter.write_line(f"Killed {_kills.total():,} times: {told}")


@pytest.fixture(scope="session")
def gated() -> None:
    """Skips where no gate can be put before system calls, and says why."""
    program = Path(__file__).with_name("gate.py")
    why = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout.strip()
    if why:
        pytest.skip(why)


@pytest.fixture
def world(gated: None, tmp_path: Path) -> Iterator[World]:
    with worlds(tmp_path) as made:
        yield made
