"""What was merged into a branch, and when: as its commits tell it, also where no turn came along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessgit.store import layout
from sessgit.store.sqlite.rows import Branch

if TYPE_CHECKING:
    from sessgit.model.conversation.message import Message
    from sessgit.store.store import Store


def list_merges(store: Store, branch: Branch) -> Iterator[tuple[str, int]]:
    """The branches that were merged into a branch, each with the last turn that was there by then; a fork has none of
    those of the session that it left."""
    waiting: list[str] = []
    for commit in store.repo.first_parents(branch.tip):
        message = store.message(commit.id)
        own = message.get("Session") == branch.name
        if own and message.get("Event") == "merge":
            waiting += [_merged_branch(store, message, parent) for parent in store.commit(commit.id).parents[1:]]
        if number := message.number("Turn"):
            yield from ((theirs, number) for theirs in waiting if theirs != branch.name)
            waiting = []
        if not own and not waiting:
            return


def _merged_branch(store: Store, merge: Message, parent: str) -> str:
    """The branch that was merged: that which the merge names, if it is one of the session that the commit is of."""
    named, session = merge.get("Origin").partition("@")[0], store.message(parent).get("Session")
    return named if layout.session_of(named) == session else session
