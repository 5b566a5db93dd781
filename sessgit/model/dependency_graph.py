"""What depends on what: pure functions on keys and the keys that each of them needs.

A graph is a mapping from each key to those it depends on; its own order is the order in which they happened. A
dependency that is no key of the graph is ignored. Nothing here recurses, and all but `topological_order` is linear.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Hashable, KeysView, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from sessgit.errors import DamageError

K = TypeVar("K", bound=Hashable)

Needs = Mapping[K, Collection[K]]


def dependents(needs: Needs[K]) -> dict[K, list[K]]:
    """Return for each key those that depend on it, in the order of the graph."""
    after: dict[K, list[K]] = {key: [] for key in needs}
    for key, before in needs.items():
        for other in set(before):
            if other in after:
                after[other].append(key)
    return after


def topological_order(needs: Needs[K]) -> list[K]:
    """Return all keys, each after those it depends on; of those that are ready the one that happened first.

    A graph whose own order is one comes back in it. Raises DamageError with the path of a cycle if there is one.
    """
    keys = list(needs)
    if _is_ordered(needs):
        return keys
    if cycle := find_cycle(needs):
        raise DamageError(f"they depend on each other in a circle: {' → '.join(map(str, cycle))}")
    sorter = _sorter(needs)
    sorter.prepare()
    ready, order = list[int](), list[K]()
    while sorter.is_active():
        for place in sorter.get_ready():
            heapq.heappush(ready, place)
        first = heapq.heappop(ready)
        order.append(keys[first])
        sorter.done(first)
    return order


def find_cycle(needs: Needs[K]) -> list[K]:
    """Return a path from a key over dependencies back to itself, which is at both ends, or an empty list."""
    if _is_ordered(needs):
        return []
    try:
        _sorter(needs).prepare()
    except CycleError as error:
        keys = list(needs)
        return [keys[place] for place in reversed(error.args[1])]
    return []


def reachable(needs: Needs[K], start: K) -> KeysView[K]:
    """Return all that a key depends on, directly or not, without the key itself, the nearest first."""
    reached, waiting = {start: None}, deque([start])
    while waiting:
        new = [other for other in needs[waiting.popleft()] if other in needs and other not in reached]
        reached |= dict.fromkeys(new)
        waiting += new
    del reached[start]
    return reached.keys()


def _sorter(needs: Needs[K]) -> TopologicalSorter[int]:
    """Return a sorter of the keys' places: numbers are looked up faster than what keys are."""
    places = {key: place for place, key in enumerate(needs)}
    return TopologicalSorter(
        {place: [places[other] for other in before if other in places] for place, before in enumerate(needs.values())}
    )


def _is_ordered(needs: Needs[K]) -> bool:
    """Return whether each key comes after those it depends on: so cells happen, and then nothing need be sorted."""
    before = set[K]()
    for key, wanted in needs.items():
        if not before.issuperset(wanted) and any(other not in before and other in needs for other in wanted):
            return False
        before.add(key)
    return True
