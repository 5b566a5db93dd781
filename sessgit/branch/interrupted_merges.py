"""Completes or reverts what a kill left of a merge or a pick.

A new session that was begun for one and does not hold its result yet is deleted: the same command makes another one.
Turns that are in the agent's file and recorded stay: their operation is added to the journal, so that `undo` can revert
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit import agents
from sessgit.branch import file_append, undo
from sessgit.errors import ConflictError, SessgitError
from sessgit.model import canonical, humanize
from sessgit.store import journal, layout, locks, maintenance, recorder_state, refs
from sessgit.store.context import Homes
from sessgit.store.journal import Operation
from sessgit.store.recorder_state import AppendIntent
from sessgit.store.store import Store

_MERGE_COMMANDS = ("merge", "pick")


@contextmanager
def creation_in_progress(store: Store, session: str) -> Iterator[None]:
    """Keep a note that a new session is being made; after an error or a kill `delete_unfinished` finds it."""
    note = store.paths.beginning(session)
    lock = locks.folder_lock(note)
    try:
        yield
        note.unlink(missing_ok=True)
    finally:
        if lock:
            locks.release(lock)


def unfinished_sessions(store: Store) -> list[str]:
    """Return the new sessions that were begun and that no process works on any more."""
    sessions = []
    for note in sorted(store.paths.state.glob("*.begun")):
        if lock := locks.folder_lock(note):
            locks.release(lock)
            sessions.append(note.stem)
    return sessions


def delete_unfinished(store: Store, homes: Homes, now: float) -> int:
    """Delete the sessions that were begun and never completed, and return how many; one that was continued stays."""
    count = 0
    for session in unfinished_sessions(store):
        with locks.session_lock(store.paths, session) as is_held:
            if is_held and not agents.is_open(homes, session):
                count += _delete_session(store, session, homes, now)
                store.paths.beginning(session).unlink(missing_ok=True)
    return count


def finish_merges(store: Store, homes: Homes, now: float) -> int:
    """Complete files that were half appended to, and note the operations of merges and picks whose turns are recorded
    and that no command completed for a while; return how many."""
    count = 0
    for place in sorted(store.paths.state.glob("*.append")):
        with suppress(OSError, SessgitError), locks.session_lock(store.paths, place.stem) as is_held:
            if is_held and time.time() - place.stat().st_mtime > maintenance.STALE_SECONDS:
                count += _finish_merge(store, place.stem, homes, now)
    return count


def first_step(store: Store, session: str, command: str, head: str) -> Operation | None:
    """Return the operation that `finish_merges` added for turns of the same command, if the head is still theirs."""
    last = next(reversed(_head_operations(store, session)), None)
    if last is None or last.command != command or last.moves[0].new != head or not last.wrote.appended:
        return None
    return last if store.message(head).get("Event") != "merge" else None


def _head_operations(store: Store, session: str) -> list[Operation]:
    """Return the operations that moved the session's head, oldest first."""
    ref = layout.head_ref(session)
    return [operation for operation in journal.read(store.paths) if any(move.ref == ref for move in operation.moves)]


def _finish_head_move(store: Store, every: Sequence[Operation], head: str) -> bool:
    """Move the head to the commit of a merge whose operation is in the journal, but was not performed; return whether
    it moved."""
    last = every[-1] if every else None
    if last is None or last.command not in _MERGE_COMMANDS or len(last.moves) != 1:
        return False
    ref, _, new = last.moves[0]
    store.repo.begin_write()
    try:
        if new is None or not store.repo.has(new) or store.commit(new).parents[:1] != (head,):
            return False
        store.repo.move(ref, head, new)
    finally:
        store.repo.release()
    return True


def _delete_session(store: Store, session: str, homes: Homes, now: float) -> bool:
    ref = layout.head_ref(session)
    head, every = refs.read(store.path, ref), _head_operations(store, session)
    if head is None or _finish_head_move(store, every, head) or len(every) != 1 or every[0].command != "fork":
        return False
    intent = recorder_state.load_intent(store.paths, session)
    if intent is not None and head == every[0].moves[0].new:
        file_append.withdraw_append(intent)
        recorder_state.delete_intent(store.paths, session)
    with suppress(ConflictError):  # it was continued
        if not undo.undo_operation(store, every[0].id, homes, now, dry_run=True).left:
            undo.undo_operation(store, every[0].id, homes, now)
            recorder_state.delete_cursor(store.paths, session)
            return True
    return False


def _finish_merge(store: Store, session: str, homes: Homes, now: float) -> bool:
    intent, ref = recorder_state.load_intent(store.paths, session), layout.head_ref(session)
    head = refs.read(store.path, ref)
    if intent is None or intent.command not in _MERGE_COMMANDS or head is None:
        return False
    if _finish_head_move(store, _head_operations(store, session), head):
        return True
    last = _last_commit(store, intent, head)
    if last is None:
        path = Path(intent.path)
        if homes.hold(path) and agents.transcript_at(homes, path):
            file_append.check_closed(store.state(head).agent_id, homes)
            file_append.finish_append(store.paths, session, path)
        return False
    turns = humanize.format_count(len(intent.brought), "turn")
    sources = ", ".join(sorted(layout.short_name(name) for name in intent.sources))
    summary = f"{session[:8]}: {turns} of {sources}, interrupted"
    refs_moved, wrote = {ref: (intent.head, last)}, file_append.appended_range(intent)
    done = Operation(canonical.rfc3339(now), intent.command, summary, refs_moved, wrote.files, appended=wrote.appended)
    journal.append(store.paths, done)
    recorder_state.delete_intent(store.paths, session)
    return True


def _last_commit(store: Store, intent: AppendIntent, head: str) -> str | None:
    """Return the commit of the last turn of the intent, if all of its turns are recorded after the head it names."""
    missing, last = set(intent.brought), None
    for commit, message in store.history(head):
        if commit == intent.head:
            return last if not missing else None
        if message.get("Prompt") in intent.brought:
            missing.discard(message.get("Prompt"))
            last = last or commit
    return None
