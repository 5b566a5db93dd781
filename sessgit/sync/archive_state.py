"""Whether a session is live or archived, where two sides say otherwise."""

from __future__ import annotations

from sessgit.record.tip_delivery import count_lacking
from sessgit.store.store import Store
from sessgit.sync.branches import SessionRefs


def is_archived_after_sync(store: Store, ours: SessionRefs, theirs: SessionRefs, agreed: bool | None) -> bool:
    """Whether the session is archived once the sides have spoken: what one of them changed since they last agreed
    holds, but a session with turns that whoever archived it did not know of is live.

    Where nothing is known of an agreement, a session that is live on one side is live.
    """
    if ours.archived == theirs.archived:
        return ours.archived
    if agreed is not False:
        return False
    put_away, live = (ours, theirs) if ours.archived else (theirs, ours)
    return not count_lacking(store, live.branches.values(), put_away.branches.values())
