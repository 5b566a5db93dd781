"""The progress of work that a user waits for."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is in all; what is counted, the function that calls it says."""


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""
