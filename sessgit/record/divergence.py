"""Turns that another machine added, while this one's file went on without them."""

from __future__ import annotations

from collections.abc import Mapping

from sessgit.agents.reader import Opened
from sessgit.agents.values import Node
from sessgit.model.conversation.message import Extent
from sessgit.record.recorded_turns import is_at_commit
from sessgit.record.source import TranscriptSource
from sessgit.store import layout, refs
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.cursor import Cursor
from sessgit.store.store import Store


def branches_after_divergence(
    store: Store,
    source: TranscriptSource,
    head: str,
    rewound: Mapping[str, Node],
    recorded: Node | None,
    tips: dict[str, str],
) -> dict[str, str]:
    """The branches as a pass leaves them: where the head that it found came from elsewhere, it stands on a branch of
    another machine, which is made here, and on none that a rewind left.

    `recorded` is the last turn of that head, `rewound` what the file and the store leave behind. It came from elsewhere
    if the file never had that turn, and the head that it led to when it was read last is part of its history.
    """
    name = next((branch for branch, node in rewound.items() if node is recorded and not node.met), "")
    known = cursors.load_cursor(store.beside, source.session) if name else None
    if known is None or known.path != str(source.path) or tips[name] != head:
        return tips
    if is_at_commit(store, head, known.commit):  # what a person said of it is no turn from elsewhere
        return tips
    if not store.repo.is_ancestor(known.commit, head):
        return tips
    # Loaded here: it is rare, and brings all with it that joins sessions.
    from sessgit.record.tip_delivery import deliver_branches

    kept = {branch: tip for branch, tip in tips.items() if branch != name}
    others = {b: tip for b, tip in refs.session_tips(store.path, source.session).items() if layout.is_other_version(b)}
    found = deliver_branches(store, source.session, {source.session: head}, {**others, **kept}, filed=True).branches
    for branch, tip in found.items():
        if layout.is_other_version(branch) and others.get(branch) != tip:
            store.repo.move(layout.head_ref(branch), others.get(branch), tip)
    return {branch: tip for branch, tip in found.items() if not layout.is_other_version(branch)}


def last_read_commit(store: Store, source: TranscriptSource, point: str) -> str:
    """The commit up to which a file was ever read that leads only to `point` now: it may have been cut shorter."""
    known = cursors.load_cursor(store.beside, source.session)
    is_same = known is not None and known.path == str(source.path)
    return known.commit if known and is_same and store.repo.is_ancestor(point, known.commit) else point


def last_end_commit(store: Store, source: TranscriptSource, file: Opened, offset: int, head: str) -> str:
    """The commit at which the file, read up to a place, was recorded to its end, if it has not gone on since and the
    head comes from elsewhere; else ``""``. Two machines whose files end in other lines would end it in turn for ever.
    """
    known = cursors.load_cursor(store.beside, source.session)
    if known is None or not known.final or known.offset != offset or known.commit == head:
        return ""
    if not cursors.matches_file(known, source.path, file.file, file.inode, file.size):
        return ""
    return known.commit if store.repo.is_ancestor(known.commit, head) else ""


def reset_cursor(beside: StorePaths, session: str, commit: str) -> None:
    """Lets the session's file be read from its beginning; all that is known of it is that it leads to the commit."""
    known = cursors.load_cursor(beside, session)
    if known is not None:
        waiting = [Extent(0, 0, 0)]  # nothing says that no line waits
        anew = Cursor(known.path, known.inode, 0, "", commit, None, pending=waiting, file=known.file)
        cursors.save_cursor(beside, session, anew)
