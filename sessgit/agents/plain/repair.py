"""A client whose transcripts cannot be repaired."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessgit.agents.values import Mended


def mend(turns: Iterable[tuple[int, Sequence[bytes]]], agent_id: str, known: Sequence[str] = ()) -> Mended:
    """Return the lines of the turns as they are."""
    return Mended({number: list(lines) for number, lines in turns}, ())


def in_order(raw: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Return the lines in their order."""
    return list(raw), 0
