"""A session and its turns as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def render(session: Mapping[str, Any], turns: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The value of `sessgit.export/v1`, in ASCII, piece by piece; each turn has a line of its own."""
    head, _, tail = json.dumps({"sessgit.export/v1": {"session": session, "turns": []}}, indent=2).rpartition("[]")
    yield f"{head}["
    for number, turn in enumerate(turns):
        yield f"{',' if number else ''}\n{json.dumps(turn)}"
    yield f"\n    ]{tail}\n"
