"""Turns that a fork of the client shares with the session that it left: their lines as they stand in its own file."""

from __future__ import annotations

from collections.abc import Sequence

from sessgit.model.conversation.session import Session
from sessgit.store import layout
from sessgit.store.store import Store


def is_shared(store: Store, commit: str, state: Session, number: int) -> bool:
    """Whether a turn's folder is the one of the session that this one left, where the file has this one's id."""
    origin = state.origin
    if origin is None or not origin.replaced or number > origin.turn:
        return False
    path = layout.turn(number)
    return store.repo.entry(store.tree(commit), path) == store.repo.entry(store.tree(origin.commit), path)


def own(raw: bytes, state: Session) -> bytes:
    """A line of a shared folder as it stands in the session's own file."""
    return raw if state.origin is None else with_session(raw, state.origin.replaced, state.agent_id)


def with_session(raw: bytes, old: Sequence[str], new: str) -> bytes:
    """The line with the session's id in the place of others, wherever one stands as a `sessionId`."""
    for agent_id in old:
        raw = raw.replace(b'"sessionId":"%s"' % agent_id.encode(), b'"sessionId":"%s"' % new.encode())
    return raw
