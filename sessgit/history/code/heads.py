"""What the project was at, turn by turn, as a live recorder noted it."""

from __future__ import annotations

from sessgit.errors import NotFoundError
from sessgit.history.code import git
from sessgit.history.code.git import Head
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store


def head_after_turn(store: Store, row: Row) -> Head | None:
    """What the project was at when the turn ended: the last that was noted with it, or None.

    A later commit of the same turn may note nothing, since nobody was at work any more when it was made.
    """
    known = git.parse_head(row.message.get("Project-Head"))
    earlier = (git.parse_head(store.message(commit).get("Project-Head")) for commit in reversed(row.commits[:-1]))
    return known or next((found for found in earlier if found), None)


def head_at(store: Store, index: Index, branch: Branch, turn: int, cell: str = "") -> Head:
    """What the project was at after a turn, or after a cell of it; raises NotFoundError where nothing is noted.

    After a cell it is what was noted last before that point: with the turn's own cells, where cells are recorded, else
    with the turn before. What the turn did later is not in it.
    """
    row = index.turn(branch.name, turn)
    if cell and row is not None:
        found = _head_of_cells(store, row, cell)
        if found is not None:
            return found
        turn, row = turn - 1, index.turn(branch.name, turn - 1)
    found = head_after_turn(store, row) if row is not None else None
    if found is None:
        raise no_head_error(store, index, branch, turn)
    return found


def no_head_error(store: Store, index: Index, branch: Branch, turn: int) -> NotFoundError:
    """The error that no commit is noted with a turn; it names the nearest one that has one."""
    known = [row.turn for row in index.turns(branch.name) if head_after_turn(store, row)]
    short = layout.short_name(branch.name)
    what = f"no commit was recorded for turn {turn} of {short}" if turn else "nothing is recorded before turn 1"
    if not known:
        return NotFoundError(
            what, "Commits are recorded only while a conversation runs in a git repository, not by import."
        )
    nearest = min(known, key=lambda one: (abs(one - turn), one))
    return NotFoundError(what, f"The nearest turn with a commit is {short}@{nearest}.")


def _head_of_cells(store: Store, row: Row, cell: str) -> Head | None:
    """What was noted last with the turn's cells up to this one, which is an ordinal or an id."""
    if len(row.commits) == 1:
        return None
    ids = [one.id for one in store.cells(row.commit, row.turn)]
    last = int(cell) if cell.isdecimal() else ids.index(cell) + 1 if cell in ids else 0
    for commit in reversed(row.commits):
        message = store.message(commit)
        done = message.get("Cell")
        found = git.parse_head(message.get("Project-Head"))
        if found is not None and done in ids[:last]:
            return found
    return None
