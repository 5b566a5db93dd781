"""An `edit` commit on the head of a session: another state, or another pad, beside the turns that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sessgit.errors import MovedError, NotFoundError, StoreError
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.store import layout, operations, refs
from sessgit.store.index import Index
from sessgit.store.object_verify import Entry
from sessgit.store.store import Store
from sessgit.store.transaction import Move

T = TypeVar("T")
_TRIES = 5


@dataclass(frozen=True, slots=True)
class StateEdit:
    """The state that a head shall have, and files of its tree by path, None for those that go; `told` says in words
    what that changes."""

    told: str
    state: Session
    files: Mapping[str, Entry | None] = field(default_factory=dict)


def commit_on_head(
    store: Store,
    index: Index,
    session: str,
    command: str,
    make: Callable[[str], tuple[StateEdit | None, T]],
    now: float,
) -> tuple[T, str]:
    """Puts on the head what `make` makes of its tip, None where nothing is to change; returns what that says beside it,
    and the commit or ``""``.

    It is one operation of the command. Where the head moves meanwhile, it is made anew: who holds the session's lock
    spares that. Raises what `make` raises, with nothing changed, and NotFoundError where there is no such session.
    """
    for _ in range(_TRIES):
        try:
            store.repo.begin_write()  # a value that is purged just now must be known to what `make` cleans
            ref, tip = _head_and_tip(store, session)
            edit, said = make(tip)
            if edit is None:
                return said, ""
            message = Message(f"edit: {edit.told}", (("Session", session), ("Event", "edit")))
            time = max(int(now), store.commit(tip).time)
            commit = store.write_commit(tip, edit.files, edit.state, message, [tip], time)
            operations.perform_operation(store, command, f"{session[:8]}: {edit.told}", [Move(ref, tip, commit)], now)
        except MovedError:
            continue
        finally:
            store.repo.release()
        index.sync(session)
        return said, commit
    raise StoreError(f"the branch of {session} kept changing while it was edited", "Try again.")


def _head_and_tip(store: Store, session: str) -> tuple[str, str]:
    """The ref of the session, live or archived, and its tip."""
    for ref in (layout.head_ref(session), layout.archive_ref(session)):
        tip = refs.read(store.path, ref)
        if tip is not None:
            return ref, tip
    raise NotFoundError(f"{session} no longer exists", "`sessgit ls --all` lists all conversations.")
