"""A client that has written all of a turn when it runs a hook."""

from __future__ import annotations

from pathlib import Path


def wait(path: Path, offset: int, answer: str | None, since: float) -> bool:
    """Return that nothing is to be waited for."""
    return True
