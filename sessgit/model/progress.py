"""The progress of work that a user waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")
Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is in all; what is counted, the function that calls it says."""


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


def counted(items: Sequence[_T], progress: Progress) -> Iterator[_T]:
    """Yield the items, and call `progress` before each and after the last."""
    for number, item in enumerate(items):
        progress(number, len(items))
        yield item
    if items:
        progress(len(items), len(items))
