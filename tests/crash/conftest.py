"""Kills, faults and crowds: a short form of each in every run of the tests, the long forms with `make test-crash`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashworld import World, worlds


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
