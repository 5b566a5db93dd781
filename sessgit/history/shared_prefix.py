"""Turns that a fork of the client shares with the session that it left: their lines as they stand in its own file."""

from __future__ import annotations

from sessgit import agents
from sessgit.model.conversation.session import Session
from sessgit.store import layout
from sessgit.store.store import Store


def is_shared_folder(store: Store, commit: str, state: Session, number: int) -> bool:
    """Whether a turn's folder is the one of the session that this one left, where the file has this one's id."""
    origin = state.origin
    if origin is None or not origin.replaced or number > origin.turn:
        return False
    path = layout.turn_folder(number)
    return store.repo.entry(store.tree(commit), path) == store.repo.entry(store.tree(origin.commit), path)


def own_line(raw: bytes, state: Session) -> bytes:
    """A line of a shared folder as it stands in the session's own file."""
    if state.origin is None:
        return raw
    return agents.of(state).lines.with_session(raw, state.origin.replaced, state.agent_id)
