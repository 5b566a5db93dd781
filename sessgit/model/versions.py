"""The versions of a session's file, out of copies of it: pieces, overlaps, continuations, older states.

Copies that overlap or continue each other are one version. A file that was written anew is another one. What comes out
is a function of the set of copies: neither their order counts nor how often one is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import NamedTuple


class Row(NamedTuple):
    """A line of a copy: its digest, its uuid, its parent's uuid and its time."""

    digest: str
    uuid: str
    parent: str
    time: str


@dataclass(frozen=True)
class Copy:
    """A file of a session: its lines in order, and whether the last one lacks its newline.

    `rest` is what follows the last line and is none.
    """

    rows: tuple[Row, ...]
    unended: bool = False
    rest: bytes = b""

    @cached_property
    def uuids(self) -> frozenset[str]:
        """Return the uuids of its lines."""
        return frozenset(row.uuid for row in self.rows if row.uuid)

    @cached_property
    def rank(self) -> tuple[str, int, bool, int, bytes]:
        """Return the higher one of two copies is the newer: by the latest time in it, then by its length, then by
        its hash.

        A copy that holds another one never ranks below it.
        """
        digest = hashlib.sha256("".join(row.digest for row in self.rows).encode() + self.rest).digest()
        latest = max((row.time for row in self.rows), default="")
        return latest, len(self.rows), not self.unended, len(self.rest), digest

    @cached_property
    def first(self) -> Row | None:
        """Its first line with a uuid."""
        return next((row for row in self.rows if row.uuid), None)

    @cached_property
    def times(self) -> tuple[str, str]:
        """Return the first and the last time in it."""
        times = [row.time for row in self.rows if row.time] or [""]
        return times[0], times[-1]


Version = tuple[Copy, ...]
"""The copies that make one file, one after another."""


def contains_lines(copy: Copy, other: Copy) -> bool:
    """Return whether all lines of the other one are lines of the copy, in the same order."""
    rows = iter(copy.rows)
    if not all(any(row.digest == line.digest for line in rows) for row in other.rows):
        return False
    if next(rows, None) is not None:
        return True
    return copy.rest.startswith(other.rest) and (other.unended or not copy.unended)


def versions(copies: Iterable[Copy]) -> list[Version]:
    """Return the versions that the copies make, the newest first."""
    left, joined = _join_overlapping(maximal_copies(copies)), list[Version]()
    while left:
        version = _newest_version(left)
        joined.append(tuple(_copies_in_order(version)))
        left = [copy for copy in left if copy not in version]
    return joined


def rows_of(version: Version) -> list[Row]:
    """Return the lines of a version."""
    return [row for copy in version for row in copy.rows]


def maximal_copies(copies: Iterable[Copy]) -> list[Copy]:
    """Return the copies that no other one holds, the newest first."""
    maximal: list[Copy] = []
    for copy in sorted(copies, key=lambda copy: copy.rank, reverse=True):
        if not any(contains_lines(other, copy) for other in maximal):
            maximal.append(copy)
    return maximal


def _join_overlapping(copies: list[Copy]) -> list[Copy]:
    """Return the copies with one in the place of any two that overlap."""
    for one, other in permutations(copies, 2):
        if (whole := _overlap(one, other)) is not None:
            return _join_overlapping(maximal_copies([whole, *(copy for copy in copies if copy not in (one, other))]))
    return copies


def _overlap(copy: Copy, other: Copy) -> Copy | None:
    """Return the one of both if the copy ends with the lines with which the other one begins, one with a uuid among
    them."""
    ends, begins = [row.digest for row in copy.rows], [row.digest for row in other.rows]
    if not begins or not copy.uuids & other.uuids:
        return None
    for start in range(max(1, len(ends) - len(begins)), len(ends)):
        if ends[start] == begins[0] and ends[start:] == begins[: len(ends) - start]:
            if not any(row.uuid for row in copy.rows[start:]):
                return None
            return Copy(copy.rows[:start] + other.rows, other.unended, other.rest)
    return None


def _newest_version(copies: Sequence[Copy]) -> list[Copy]:
    """Return the newest copy and those that it continues or that continue it; `copies` are in order of age."""
    version = [copies[0]]
    waiting = list(copies[1:])
    while (more := next((copy for copy in waiting if _can_join_version(copy, version)), None)) is not None:
        version.append(more)
        waiting.remove(more)
    return version


def _can_join_version(copy: Copy, version: Collection[Copy]) -> bool:
    """Return whether a copy was written before or after each one of the version, shares no uuid with them, and
    continues one of them or is continued by it.

    A copy from the middle of another's time is a piece of an older file, even if its first line continues it.
    """
    for other in version:
        (first, last), (other_first, other_last) = copy.times, other.times
        if copy.uuids & other.uuids or (other_first < last and first < other_last):
            return False
    return any(_continues(copy, other) or _continues(other, copy) for other in version)


def _continues(copy: Copy, other: Copy) -> bool:
    """Return whether the first line of the copy follows a line of the other one."""
    return copy.first is not None and copy.first.parent in other.uuids


def _copies_in_order(version: Collection[Copy]) -> list[Copy]:
    """Return the copies so that each comes after the one that it continues, else by when they began."""
    waiting = sorted(version, key=lambda copy: (copy.times[0], copy.rank))
    ordered: list[Copy] = []
    while waiting:
        free = (c for c in waiting if not any(_continues(c, other) for other in waiting if other is not c))
        ordered.append(next(free, waiting[0]))
        waiting.remove(ordered[-1])
    return ordered
