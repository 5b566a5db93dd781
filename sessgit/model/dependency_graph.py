"""What depends on what: pure functions on keys and the keys that each of them needs.

A graph is a mapping from each key to those it depends on; its own order is the order in which they happened. A
dependency that is no key of the graph is passed over, but for `unknown_dependencies`, which finds them. Nothing here
recurses, and
all but `topological_order` is linear; that one sorts what is ready, which costs a logarithm.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from sessgit.errors import DamageError, NotFoundError

K = TypeVar("K", bound=Hashable)

Needs = Mapping[K, Collection[K]]


def dependents(needs: Needs[K]) -> dict[K, list[K]]:
    """For each key those that depend on it, in the order of the graph."""
    found: dict[K, list[K]] = {key: [] for key in needs}
    for key, wanted in needs.items():
        for other in set(wanted):
            if other in found:
                found[other].append(key)
    return found


def roots(needs: Needs[K]) -> list[K]:
    """The keys that depend on none."""
    return [key for key, wanted in needs.items() if not any(other in needs for other in wanted)]


def leaves(needs: Needs[K]) -> list[K]:
    """The keys on which none depends."""
    wanted = {other for inner in needs.values() for other in inner}
    return [key for key in needs if key not in wanted]


def unknown_dependencies(needs: Needs[K]) -> list[tuple[K, K]]:
    """Each key with a dependency of it that is no key of the graph."""
    return [(key, other) for key, wanted in needs.items() for other in dict.fromkeys(wanted) if other not in needs]


def topological_order(needs: Needs[K]) -> list[K]:
    """All keys, each after those it depends on; of those that are ready the one that happened first.

    A graph whose own order is one comes back in it. Raises DamageError with the path of a cycle where there is one.
    """
    found = _orderable(needs)
    if len(found) < len(needs):
        path = " → ".join(map(str, find_cycle(needs)))
        raise DamageError(f"they depend on each other in a circle: {path}")
    return found


def find_cycle(needs: Needs[K]) -> list[K]:
    """A way from a key over dependencies back to itself, which stands at both ends; empty where there is none."""
    left = dict.fromkeys(needs)
    for key in _orderable(needs):
        del left[key]
    if not left:
        return []
    # Each key that is left waits for another one that is: whoever follows them comes round.
    path: dict[K, None] = {}
    at = next(iter(left))
    while at not in path:
        path[at] = None
        at = next(other for other in needs[at] if other in left)
    way = list(path)
    return [*way[way.index(at) :], at]


def all_dependencies(needs: Needs[K], start: K) -> list[K]:
    """All that a key depends on, directly or not, in the order of `topological_order`; the key itself is left out.

    Raises NotFoundError for a key that is not there, DamageError where the way leads round in a cycle.
    """
    return _reachable(needs, needs, start)


def all_dependents(needs: Needs[K], start: K) -> list[K]:
    """All that depends on a key, directly or not; for the rest as `all_dependencies`."""
    return _reachable(needs, dependents(needs), start)


def dependencies_by_number(needs: Sequence[Collection[int]], start: int) -> list[int]:
    """`all_dependencies` of a graph whose keys are 0, 1, 2 and so on, each of which needs only lower ones: sorted."""
    reached, waiting = {start}, [start]
    while waiting:
        for other in needs[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    reached.remove(start)
    return sorted(reached)


def dependents_by_number(needs: Sequence[Collection[int]], start: int) -> list[int]:
    """`all_dependents` of such a graph: sorted."""
    reached = {start}
    for key in range(start + 1, len(needs)):
        if not reached.isdisjoint(needs[key]):
            reached.add(key)
    reached.remove(start)
    return sorted(reached)


def _reachable(needs: Needs[K], steps: Needs[K], start: K) -> list[K]:
    if start not in needs:
        raise NotFoundError(f"there is no {start}")
    reached, waiting = {start}, [start]
    while waiting:
        for other in steps[waiting.pop()]:
            if other not in reached and other in needs:
                reached.add(other)
                waiting.append(other)
    found = topological_order({key: wanted for key, wanted in needs.items() if key in reached})
    found.remove(start)
    return found


def _orderable(needs: Needs[K]) -> list[K]:
    """As many keys as can be put in order; the others depend on a cycle."""
    if _is_ordered(needs):
        return list(needs)
    keys = list(needs)
    place = {key: number for number, key in enumerate(keys)}
    waiting, after = [0] * len(keys), [list[int]() for _ in keys]
    for number, wanted in enumerate(needs.values()):
        for other in set(wanted):
            before = place.get(other)
            if before is not None:
                after[before].append(number)
                waiting[number] += 1
    ready = [number for number, count in enumerate(waiting) if not count]
    out: list[K] = []
    while ready:
        first = heapq.heappop(ready)
        out.append(keys[first])
        for number in after[first]:
            waiting[number] -= 1
            if not waiting[number]:
                heapq.heappush(ready, number)
    return out


def _is_ordered(needs: Needs[K]) -> bool:
    """Whether each key comes after those it depends on: so cells happen, and then nothing need be sorted."""
    seen = set[K]()
    for key, wanted in needs.items():
        if not seen.issuperset(wanted) and any(other not in seen and other in needs for other in wanted):
            return False
        seen.add(key)
    return True
