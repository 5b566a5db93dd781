"""A client of whose tools it is not known what they did to files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessgit.agents.values import FileEdit


def edits(lines: Sequence[bytes]) -> Iterator[FileEdit]:
    """Yield nothing."""
    yield from ()
