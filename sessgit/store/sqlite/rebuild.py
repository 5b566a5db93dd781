"""The index made anew in memory, to hold the one on the disk against."""

from __future__ import annotations

from sessgit.store.index import Index
from sessgit.store.sqlite import cache_file, tables

_TABLES = {"branches": "name", "turns": "branch"}
_HINTS = {"merges": "branch"}
"""Of these one too many does no harm, and stays where a rewind or an undo took away what it is of."""


class NewIndex(Index):
    """What the index is by the refs and commits alone."""

    def __init__(self, now: Index) -> None:
        vars(self).update(vars(now))
        self.damaged = {}
        self._db = cache_file.in_memory(tables.INDEX)
        self.sync()


def differing(now: Index) -> list[str]:
    """The branches whose rows in the index are not what their commits say, by name; none where it is right."""
    now.sync()
    new = NewIndex(now)
    try:
        wrong = set[str]()
        for table, key in _TABLES.items():
            here, there = (_rows(index, table, key) for index in (now, new))
            wrong |= {name for name in here.keys() | there.keys() if here.get(name) != there.get(name)}
        for table, key in _HINTS.items():
            wrong |= _rows(new, table, key).keys() - _rows(now, table, key).keys()
        return sorted(wrong)
    finally:
        new.close()


def _rows(index: Index, table: str, key: str) -> dict[str, set[tuple[object, ...]]]:
    out = dict[str, set[tuple[object, ...]]]()
    for name, *rest in index._ask(f"SELECT {key}, * FROM {table}"):
        out.setdefault(name, set()).add(tuple(rest))
    return out
