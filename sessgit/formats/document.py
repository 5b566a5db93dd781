"""A session and its turns as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def render(session: Mapping[str, Any], turns: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what `export json` prints, in ASCII; each turn has its own line."""
    empty = {"schema": "sessgit.export/v1", "session": session, "turns": []}
    head, _, tail = json.dumps(empty, indent=2).rpartition("[]")
    yield f"{head}["
    for number, turn in enumerate(turns):
        yield f"{',' if number else ''}\n{json.dumps(turn)}"
    yield f"\n  ]{tail}\n"
