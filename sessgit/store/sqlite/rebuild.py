"""The index made anew in memory, to hold the one on the disk against."""

from __future__ import annotations

from sessgit.store.index import Index
from sessgit.store.sqlite import cache_file, tables

_TABLES = {"branches": "name", "turns": "branch"}
_HINTS = {"merges": "branch"}
"""Of these one too many does no harm, and stays where a rewind or an undo took away what it is of."""


class RebuiltIndex(Index):
    """What the index is by the refs and commits alone."""

    def __init__(self, now: Index) -> None:
        vars(self).update(vars(now))
        self.damaged = {}
        self._db = cache_file.connect_in_memory(tables.INDEX)
        self.sync()


def differing_branches(now: Index) -> list[str]:
    """The branches whose rows in the index are not what their commits say, by name; none where it is right."""
    now.sync()
    new = RebuiltIndex(now)
    try:
        wrong = set[str]()
        for table, key in _TABLES.items():
            here, there = (_rows_by_name(index, table, key) for index in (now, new))
            wrong |= {name for name in here.keys() | there.keys() if here.get(name) != there.get(name)}
        for table, key in _HINTS.items():
            wrong |= _rows_by_name(new, table, key).keys() - _rows_by_name(now, table, key).keys()
        return sorted(wrong)
    finally:
        new.close()


def _rows_by_name(index: Index, table: str, key: str) -> dict[str, set[tuple[object, ...]]]:
    out = dict[str, set[tuple[object, ...]]]()
    for name, *rest in index._ask(f"SELECT {key}, * FROM {table}"):
        out.setdefault(name, set()).add(tuple(rest))
    return out
