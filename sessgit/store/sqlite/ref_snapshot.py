"""The index of refs that are not the store's as it is now: as they were once.

It is a copy in memory, brought level with those refs: only branches that were different are read, and neither the index
nor a ref of the store is touched.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from sessgit.errors import StoreError
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import cache_file, tables

Tips = Mapping[str, tuple[str, bool]]
"""The tip of each branch, and whether it is archived."""


class BranchState(NamedTuple):
    """A branch in the index: its tip, and the times in RFC 3339, or empty, at which its session began, at which the
    last of its lines was written, and at which the agent let go of it."""

    tip: str
    created: str
    updated: str
    ended: str


class PastIndex(Index):
    """The index as it would be if the store had these branches and tags; `now` is that of the store as it is."""

    def __init__(self, now: Index, tips: Tips, tags: Mapping[str, str]) -> None:
        vars(self).update(vars(now))
        self.damaged, self.tips, self.tags = {}, partial(_tips_of_session, tips), partial(dict[str, str], tags)
        self._db = sqlite3.connect(":memory:", check_same_thread=False)  # whoever collects it closes it
        weakref.finalize(self, self._db.close)
        try:
            now._db.backup(self._db)
        except sqlite3.Error as error:
            self._renew(error)
        self.sync()

    def _renew(self, error: sqlite3.Error) -> None:
        """Begins with nothing in memory: the file belongs to the index of now."""
        if not cache_file.is_damage(error):
            raise StoreError(f"cannot use the index: {error}", "Delete index.sqlite3: sessgit rebuilds it.") from error
        self._db.close()
        self._db = cache_file.connect_in_memory(tables.INDEX)
        weakref.finalize(self, self._db.close)


def branch_states(index: Index) -> dict[str, BranchState]:
    """All branches by name; their whole states are not read."""
    ended = "json_extract(CAST(state AS TEXT), '$.metadata.ended_at')"
    told = f"CASE WHEN status = 'active' THEN x'' ELSE CAST({ended} AS BLOB) END"  # it may be no text at all
    rows = index._ask(f"SELECT name, tip, created, updated, {told} FROM branches")
    return {
        name: BranchState(tip, created, updated, (at or b"").decode("utf-8", "replace"))
        for name, tip, created, updated, at in rows
    }


def _tips_of_session(tips: Tips, session: str | None = None) -> dict[str, tuple[str, bool]]:
    return {name: at for name, at in tips.items() if session is None or layout.session_of(name) == session}
