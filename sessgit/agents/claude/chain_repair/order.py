"""The lines of a file in the order of its chain, where somebody turned them around."""

from __future__ import annotations

from collections.abc import Sequence

from sessgit.agents.claude.lines import parsed
from sessgit.agents.line import Line


def in_order(raw: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The lines, each behind its parent, and how many stood before it; those as they are, and 0, where that is not most
    of them: clients too write some lines out of order."""
    lines = parsed(raw)
    early, linked = _early(lines)
    if early * 2 <= linked:
        return list(raw), 0
    turned = lines[::-1]
    base = turned if _early(turned)[0] < early else lines
    return [line.raw for line in _behind_parents(base)], early


def _early(lines: Sequence[Line]) -> tuple[int, int]:
    """How many lines stand before their parents, and how many have one in the file."""
    places: dict[str, int] = {}
    for place, line in enumerate(lines):
        if line.uuid:
            places.setdefault(line.uuid, place)
    linked = [(place, places[line.parent]) for place, line in enumerate(lines) if line.uuid and line.parent in places]
    return sum(above > place for place, above in linked), len(linked)


def _behind_parents(lines: Sequence[Line]) -> list[Line]:
    """The same lines in their order, but that what a line hangs on comes first."""
    by_uuid: dict[str, Line] = {}
    for line in lines:
        if line.uuid:
            by_uuid.setdefault(line.uuid, line)
    done, out = set[int](), list[Line]()
    for line in lines:
        path, at = list[Line](), line
        while id(at) not in done:
            done.add(id(at))
            path.append(at)
            at = by_uuid.get(at.parent, at)
        out += reversed(path)
    return out
