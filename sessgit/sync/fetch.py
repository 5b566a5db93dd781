"""What a remote holds brought here, whatever else it holds that git does not take."""

from __future__ import annotations

from collections.abc import Collection

from sessgit.errors import RemoteDamageError
from sessgit.store import layout
from sessgit.store.remote import remotes
from sessgit.store.remote.remotes import Connection
from sessgit.store.store import Store


def fetch_refs(store: Store, link: Connection, wanted: Collection[str]) -> dict[str, str]:
    """Brings refs of the remote, by their full names there, into the tracking refs. Returns of which sessions git took
    nothing, with the reason: what is damaged in one of them keeps no other from coming.

    git says only that something is wrong with one of all. So halves are asked for, until it is known which ones.
    """
    try:
        remotes.fetch_refs(store.path, link, wanted)
    except RemoteDamageError as error:
        sessions = sorted({layout.session_of_ref(ref) for ref in wanted})
        if len(sessions) == 1:
            return {sessions[0]: str(error)}
        first = set(sessions[: len(sessions) // 2])
        halves = (
            [ref for ref in wanted if layout.session_of_ref(ref) in first],
            [ref for ref in wanted if layout.session_of_ref(ref) not in first],
        )
        return {session: why for half in halves for session, why in fetch_refs(store, link, half).items()}
    return {}
