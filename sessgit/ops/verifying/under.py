"""What is kept for undo: a conversation that was deleted, a branch that was taken back."""

from __future__ import annotations

from sessgit.errors import SessgitError
from sessgit.store import layout, refs
from sessgit.store.store import Store


def tips(store: Store) -> dict[str, dict[str, str]]:
    """By session the commits that are kept of it, by their refs. One that cannot be read is left out: of a ref that
    leads nowhere `around` tells."""
    found: dict[str, dict[str, str]] = {}
    for ref, oid in sorted(refs.read_all(store.path, layout.KEEP).items()):
        try:
            commit = store.repo.peel(oid)
            session = store.message(commit).get("Session") if commit else ""
        except SessgitError:
            continue
        if commit and session:
            found.setdefault(session, {})[ref] = commit
    return found
