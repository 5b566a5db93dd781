"""What tests share that is no fixture: plain git in a store, and the types of the fixtures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from sessgit.ops.recording.record import Result

Git = Callable[..., str]
Keep = Callable[..., Result]


def run_git(path: Path, *arguments: str) -> str:
    """What git prints in the repository at `path`; fails where git does."""
    done = subprocess.run(["git", "-C", str(path), *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
