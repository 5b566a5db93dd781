"""The last turn that the recorder brought in, and how long that took, for whoever asks whether it works."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass

from sessgit.errors import StoreError
from sessgit.store.layout import StorePaths
from sessgit.store.store import write_private

_VERSION = 1


@dataclass(frozen=True, slots=True)
class LatestTurn:
    """Turn `turn` of a session was recorded at `time`, in seconds since 1970.

    `delay` is how many milliseconds that was after the answer, or None where no answer was waited for. The answer's
    time is that of the last write to the transcript before it was read: the line of the answer itself, unless the
    client had put housekeeping behind it by then.
    """

    session: str
    turn: int
    time: float
    delay: int | None


def save(beside: StorePaths, latest: LatestTurn) -> None:
    """Keeps the note in the place of the last one; what cannot be written is left unwritten."""
    with suppress(StoreError):
        write_private(beside.latest, json.dumps({"version": _VERSION, **asdict(latest)}).encode())


def load(beside: StorePaths) -> LatestTurn | None:
    """The note, or None where there is none that can be read."""
    try:
        document = json.loads(beside.latest.read_bytes())
        if document["version"] != _VERSION:
            return None
        found = LatestTurn(document["session"], document["turn"], document["time"], document["delay"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if _is_valid(found) else None


def _is_valid(found: LatestTurn) -> bool:
    """Whether the values are of their kinds: the file may hold anything."""
    numbers = (found.turn, found.delay if found.delay is not None else 0)
    return (
        isinstance(found.session, str)
        and all(type(number) is int and 0 <= number < 1 << 53 for number in numbers)
        and type(found.time) in (int, float)
        and 0 <= found.time < 1 << 53
    )
