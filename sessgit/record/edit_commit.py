"""An `edit` commit on the head of a session: another state, or other files, with the same turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeVar

from sessgit.errors import NotFoundError
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.store import locks, operations, refs
from sessgit.store.context import Context
from sessgit.store.objects import Entry
from sessgit.store.operations import Move
from sessgit.store.store import Store

T = TypeVar("T")
LOCK_TIMEOUT = 10.0
"""Seconds that an edit waits for another process that writes the session; after that it continues: the compare-and-swap
of the ref keeps it correct."""


@frozen
class StateEdit:
    """A new state of a head, and changed files of its tree by path, None for a deleted one; `summary` tells what
    changes."""

    summary: str
    state: Session
    files: Mapping[str, Entry | None] = field(default_factory=dict)


def commit_on_head(
    context: Context,
    session: str,
    command: str,
    make: Callable[[str], tuple[StateEdit | None, T]],
) -> tuple[T, str]:
    """Commit on the head the edit that `make` returns for its tip, None for no change; return the second value of
    `make`, and the commit or ``""``.

    It is one operation of the command, under the session's lock. If the head moves all the same, `make` is called
    again. Raises what `make` raises, with nothing changed, and NotFoundError if there is no such session.
    """
    store, now = context.store, context.now()

    def attempt() -> tuple[T, str]:
        head = refs.session_head(store.path, session)
        if head is None:
            raise NotFoundError(f"{session} no longer exists", "`sessgit ls --all` lists all conversations.")
        ref, tip = head
        edit, result = make(tip)
        if edit is None:
            return result, ""
        commit = write_edit(store, session, tip, edit, max(int(now), store.commit(tip).time))
        operations.perform_operation(store, command, f"{session[:8]}: {edit.summary}", [Move(ref, tip, commit)], now)
        return result, commit

    changing = f"the branch of {session} kept changing while it was edited"
    with locks.session_lock(store.paths, session, LOCK_TIMEOUT):
        result, commit = operations.retry_moved(store, changing, attempt)
    if commit:
        context.index.sync(session)
    return result, commit


def write_edit(store: Store, session: str, tip: str, edit: StateEdit, time: int) -> str:
    """Write the commit of an edit on the tip, and return it; no ref leads to it yet."""
    message = Message(f"edit: {edit.summary}", (("Session", session), ("Event", "edit")))
    return store.write_commit(tip, edit.files, edit.state, message, [tip], time)
