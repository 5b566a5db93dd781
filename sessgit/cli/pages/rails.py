"""Rails at the left of a list, which show what depends on what: of turns, and of cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

_MOST = 8
"""So many rails at once leave room for words at 60 columns; edges beyond them are named, not drawn."""


def draw_turns(parents: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield rails and the key of the turn on them, or ``""`` where rails only meet.

    `parents` maps keys, the newest first, to the key of the turn before, or to ``""``.
    """
    rails: list[str] = []
    """For each rail the key of the turn that it leads down to."""
    for key, parent in parents.items():
        ends = [place for place, end in enumerate(rails) if end == key]
        if not ends:
            ends = [len(rails)]
            rails.append(key)
        if len(ends) > 1:
            yield _meeting(len(rails), ends), ""
            for place in reversed(ends[1:]):
                del rails[place]
        yield " ".join("●" if place == ends[0] else "│" for place in range(len(rails))), key
        rails[ends[0] : ends[0] + 1] = [parent] if parent else []


def draw_cells(needs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield rails, the key of the cell on them or ``""`` where rails only meet or part, and the needs without a rail.

    `needs` maps keys, in the order of execution, to keys before them. The last key is drawn first.
    """
    place = {key: number for number, key in enumerate(needs)}
    rails: list[str] = []
    """For each rail the key that it leads down to; no two lead to the same one."""
    for key in reversed(list(needs)):
        if key not in rails:
            rails.append(key)
        own = rails.index(key)
        others = sorted(needs[key], key=place.__getitem__, reverse=True)
        joined = [number for number, other in enumerate(rails) if other in others]
        new = [other for other in others if other not in rails]
        room = max(0, _MOST - len(rails) + (own < _MOST))
        drawn = new[:room]
        yield " ".join("●" if number == own else "│" for number in range(len(rails))), key, new[room:]
        rails += drawn[1:]
        if joined or len(drawn) > 1:
            yield _across(len(rails), own, joined, max(0, len(drawn) - 1), ends=not drawn), "", []
        rails[own : own + 1] = drawn[:1]


def _meeting(rails: int, ends: Sequence[int]) -> str:
    """`├─╯` where rails that lead to the same turn become one, across others that continue."""
    return _joined(rails, dict.fromkeys(ends, "┴") | {ends[0]: "├", ends[-1]: "╯"})


def _across(rails: int, own: int, joined: Collection[int], new: int, *, ends: bool) -> str:
    """Return a line from a rail, which may end there, to others that continue, and to new ones on the right."""
    touched = {own, *joined, *range(rails - new, rails)}
    left, right, marks = min(touched), max(touched), dict[int, str]()
    for number in touched:
        if number >= rails - new:
            marks[number] = "╮" if number == right else "┬"
        elif number == own and ends:
            marks[number] = "╰" if number == left else "╯" if number == right else "┴"
        else:
            marks[number] = "├" if number == left else "┤" if number == right else "┼"
    return _joined(rails, marks)


def _joined(rails: int, marks: Mapping[int, str]) -> str:
    """Return a line from the first of the marked rails to the last one, across those between them."""
    left, right = min(marks), max(marks)
    line = (
        marks.get(number, "┼" if left < number < right else "│") + ("─" if left <= number < right else " ")
        for number in range(rails)
    )
    return "".join(line).rstrip()
