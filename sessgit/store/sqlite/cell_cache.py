"""The cells of turns in the index: by a turn's last commit, with the folder of the turn that they were read from.

A branch may hold a turn with another folder than the commit that tells of it, as a fork of the agent's does whose own
file has other bytes: whoever asks compares, and reads the lines where the folders differ.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from sessgit.errors import DamageError, StoreError
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.store import Store


class CachedTurn(NamedTuple):
    """What is remembered of a turn: the object id of its folder, and three texts of whose form the caller knows."""

    folder: str
    cells: str
    needs: str
    uses: str


def store_turns(index: Index, known: Mapping[str, CachedTurn]) -> None:
    """Keeps what turns have of cells, by their last commits, so that it need not be read from their lines again."""
    rows = [(commit, *one, _checksum(one)) for commit, one in known.items()]
    with suppress(sqlite3.Error), index._db as db:  # it is only asked for again
        db.executemany("INSERT OR REPLACE INTO cells VALUES (?,?,?,?,?,?)", rows)


def branch_turns(index: Index, branch: str, first: int, last: int | None) -> list[tuple[int, CachedTurn | None]]:
    """The turns of a branch from the first to the last, by number, with what is remembered of each; None where nothing
    is, and where a row is damaged."""
    query = (
        "SELECT turn, folder, cells, needs, uses, proof FROM turns LEFT JOIN cells"
        " ON commit_id = substr(commits, -40) WHERE branch = ? AND turn BETWEEN ? AND ? ORDER BY turn"
    )
    rows = index._ask(query, (branch, first, last if last is not None else 1 << 31))
    # Written out, since there may be thousands: a function for each of them takes twice as long.
    return [
        (turn, CachedTurn(folder, cells, needs, uses) if is_sound else None)
        for turn, folder, cells, needs, uses, proof in rows
        for is_sound in [proof == crc32(f"{folder}\0{cells}\0{needs}\0{uses}".encode())]
    ]


def turn_folders(store: Store, commit: str, first: int, last: int | None) -> dict[str, str]:
    """The object id of the folder of each turn from the first to the last as of a commit, by its path, and of some
    turns beside them. What is damaged is left out."""
    found: dict[str, str] = {}
    lowest, highest = _group_order(first), _group_order(last) if last is not None else None
    for group, inner in _group_trees(store, commit):
        if lowest <= (len(group), group) and (highest is None or (len(group), group) <= highest):
            with suppress(StoreError):
                found |= {f"{layout.TURNS}/{group}/{name}": oid for name, (oid, _) in store.repo.tree(inner).items()}
    return found


def _group_trees(store: Store, commit: str) -> list[tuple[str, str]]:
    try:
        turns = store.repo.entry(store.tree(commit), layout.TURNS)
        return [(name, oid) for name, (oid, is_tree) in store.repo.tree(turns[0]).items() if is_tree] if turns else []
    except (DamageError, StoreError):
        return []


def _group_order(turn: int) -> tuple[int, str]:
    """The folder of a turn's group, as what groups are in order by: from 10,000 on their names are longer."""
    name = layout.turn_folder(turn).split("/")[1]
    return len(name), name


def _checksum(known: CachedTurn) -> int:
    return crc32("\0".join(known).encode())
