"""The head of the project at each turn, as it was recorded while the conversation was held."""

from __future__ import annotations

from sessgit.errors import NotFoundError
from sessgit.history.code import git
from sessgit.history.code.git import Head
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store


def head_after_turn(store: Store, row: Row) -> Head | None:
    """Return the project's head at the end of a turn, as the last commit of the turn that has one recorded it, or None.

    A commit that was made after the client had ended has none.
    """
    known = git.parse_head(row.trailer("Project-Head"))
    earlier = (git.parse_head(store.message(commit).get("Project-Head")) for commit in reversed(row.commits[:-1]))
    return known or next((found for found in earlier if found), None)


def head_at(context: Context, branch: Branch, turn: int, cell: str = "") -> Head:
    """Return the project's head after a turn, or after a cell of it; raises NotFoundError if none is recorded.

    After a cell it is the last one recorded before that point: with the turn's own cells if cells were recorded, else
    with the turn before.
    """
    row = context.index.turn(branch.name, turn)
    if cell and row is not None:
        found = _head_of_cells(context.store, row, cell)
        if found is not None:
            return found
        turn, row = turn - 1, context.index.turn(branch.name, turn - 1)
    found = head_after_turn(context.store, row) if row is not None else None
    if found is None:
        raise no_head_error(context, branch, turn)
    return found


def no_head_error(context: Context, branch: Branch, turn: int) -> NotFoundError:
    """Return the error that no commit is recorded for a turn; it names the nearest turn with one."""
    known = [row.turn for row in context.index.turns(branch.name) if head_after_turn(context.store, row)]
    short = layout.short_name(branch.name)
    what = f"no commit was recorded for turn {turn} of {short}" if turn else "nothing is recorded before turn 1"
    if not known:
        return NotFoundError(
            what, "Commits are recorded only while a conversation runs in a git repository, not by import."
        )
    nearest = min(known, key=lambda one: (abs(one - turn), one))
    return NotFoundError(what, f"The nearest turn with a commit is {short}@{nearest}.")


def _head_of_cells(store: Store, row: Row, cell: str) -> Head | None:
    """Return the last head recorded with the turn's cells up to this one, an ordinal or an id."""
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
