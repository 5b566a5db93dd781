"""Rails beside a list of cells, each of which may depend on several others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

_MOST = 8
"""So many rails at once leave room for words at 60 columns; an edge beyond them is told, not drawn."""


def draw(needs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """The rails line by line, the last key first: rails, the key on them or ``""`` where rails only meet or part, and
    those of its dependencies to which no rail leads.

    The mapping is in an order of execution, and every dependency is a key of it.
    """
    place = {key: number for number, key in enumerate(needs)}
    rails: list[str] = []
    """For each rail the key that it leads down to; no two lead to the same one."""
    for key in reversed(list(needs)):
        if key not in rails:
            rails.append(key)
        own = rails.index(key)
        wanted = sorted(needs[key], key=place.__getitem__, reverse=True)
        joined = [number for number, other in enumerate(rails) if other in wanted]
        fresh = [other for other in wanted if other not in rails]
        room = max(0, _MOST - len(rails) + (own < _MOST))
        drawn = fresh[:room]
        yield " ".join("●" if number == own else "│" for number in range(len(rails))), key, fresh[room:]
        ends = not drawn
        rails += drawn[1:]
        if joined or len(drawn) > 1:
            yield _across(len(rails), own, joined, len(drawn) - 1, ends=ends), "", []
        if ends:
            del rails[own]
        else:
            rails[own] = drawn[0]


def _across(rails: int, own: int, joined: Collection[int], new: int, *, ends: bool) -> str:
    """A line that leads from one rail, which may end there, to others that go on, and to new ones on the right."""
    first_new = rails - max(0, new)
    touched = {own, *joined, *range(first_new, rails)}
    left, right = min(touched), max(touched)
    out = []
    for number in range(rails):
        if number >= first_new:
            mark = "╮" if number == right else "┬"
        elif number == own and ends:
            mark = "╰" if number == left else "╯" if number == right else "┴"
        elif number in touched:
            mark = "├" if number == left else "┤" if number == right else "┼"
        else:
            mark = "┼" if left < number < right else "│"
        out.append(mark + ("─" if left <= number < right else " "))
    return "".join(out).rstrip()
