"""Rails beside a list of turns: which one goes on from which."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """Something that goes on from `parent`, or from nothing."""

    key: str
    parent: str
    time: int


def draw(nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """The rails line by line, newest node first, with the key of the node on it or ``""`` where rails only meet."""
    rails: list[str] = []
    """For each rail the key of the node that it leads down to."""
    for node in _newest_first(nodes):
        ends = [place for place, key in enumerate(rails) if key == node.key]
        if not ends:
            rails.append(node.key)
            ends = [len(rails) - 1]
        if len(ends) > 1:
            yield _meeting(rails, ends), ""
            for place in reversed(ends[1:]):
                del rails[place]
        yield " ".join("●" if place == ends[0] else "│" for place in range(len(rails))), node.key
        if node.parent:
            rails[ends[0]] = node.parent
        else:
            del rails[ends[0]]


def _newest_first(nodes: Sequence[Node]) -> Iterator[Node]:
    """By time, but never a node before all that go on from it."""
    by_key = {node.key: node for node in nodes}
    place = {node.key: number for number, node in enumerate(nodes)}
    waiting = dict.fromkeys(by_key, 0)
    for node in nodes:
        if node.parent:
            waiting[node.parent] += 1
    ready = [(-by_key[key].time, -place[key], key) for key, count in waiting.items() if not count]
    heapq.heapify(ready)
    while ready:
        node = by_key[heapq.heappop(ready)[2]]
        yield node
        if node.parent:
            waiting[node.parent] -= 1
            if not waiting[node.parent]:
                heapq.heappush(ready, (-by_key[node.parent].time, -place[node.parent], node.parent))


def _meeting(rails: list[str], ends: list[int]) -> str:
    """`├─╯` where rails that lead to the same node become one, over others that go on."""
    out = []
    for place in range(len(rails)):
        if place == ends[0]:
            mark = "├"
        elif place == ends[-1]:
            mark = "╯"
        elif place in ends:
            mark = "┴"
        else:
            mark = "┼" if ends[0] < place < ends[-1] else "│"
        out.append(mark + ("─" if ends[0] <= place < ends[-1] else " "))
    return "".join(out).rstrip()
