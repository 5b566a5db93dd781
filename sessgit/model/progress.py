"""How far work is that somebody may wait for."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is in all; what is counted, the function that calls it says."""


def no_progress(done: int, total: int) -> None:
    """For work that nobody watches."""
