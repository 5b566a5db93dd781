"""Record what is new in one transcript.

If another process has moved a ref meanwhile, the file is read again from what is recorded then.
"""

from __future__ import annotations

from sessgit.agents.reader import opened
from sessgit.errors import ConflictError, MovedError, StoreError
from sessgit.record.file_pass import FilePass, RecordingResult, SkipReason
from sessgit.record.fork_detection import DifferentTurnError
from sessgit.record.recorded_turns import recorded_session
from sessgit.record.source import RecordRules, TranscriptSource
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.store import Store

_TRIES = 5
_MOST_DIFFERENT = 16
"""After so many sessions that have the message ids of a transcript and other lines, it counts as no copy of any."""


def record(context: Context, source: TranscriptSource, rules: RecordRules) -> RecordingResult:
    """Record all that the transcript holds, unless its session is archived or was deleted. The caller holds the
    session's lock, or risks double work."""
    store = context.store
    moved, different, shared_limits = 0, 0, dict[str, int]()
    while moved < _TRIES:
        try:
            store.repo.begin_write()  # a value that is purged just now must be known to all that is written
            with opened(source.path) as file:
                known = recorded_session(store, source, rules)
                if not known.head and (reason := _skip_reason(store, source.session)):
                    return RecordingResult(source.session, skipped=reason)
                current = FilePass(context, source, rules, known, file)
                cutter = current.resume() if not moved else None
                is_whole = current.file.reader.offset == file.size or not source.imported
                is_known = False
                if known.head and (cutter is None or not is_whole):
                    from sessgit.record import copies  # loaded here: it is rare

                    result, is_known = copies.record_copies(current)
                    if result is not None:
                        return result
                limits = shared_limits if different < _MOST_DIFFERENT else None
                return current.finish(cutter or current.begin(limits), is_known=is_known)
        except MovedError:
            moved += 1  # the cursor stays: it shows which turns another process added
        except DifferentTurnError as turn:
            different += 1
            shared_limits[turn.branch] = turn.number - 1
        finally:
            store.repo.release()
    raise StoreError(f"the branch of {source.session} kept changing while it was recorded", "Try again.")


def _skip_reason(store: Store, session: str) -> SkipReason:
    """Return why a session without a head is not recorded, or ``""``.

    Asked after the tips are read: a command that moves them away creates the other ref first.
    """
    if store.ref(layout.tombstone_ref(session)):
        return "deleted"
    return "archived" if store.ref(layout.archive_ref(session)) else ""


_SKIP_HINTS: dict[SkipReason, str] = {
    "archived": "`sessgit unarchive` unarchives it.",
    "deleted": "`sessgit undo` restores it, until `sessgit gc --prune`.",
}


def skipped_error(session: str, why: SkipReason) -> ConflictError:
    """Return the error that nothing of a session is recorded, since it is archived or deleted."""
    return ConflictError(f"{session[:8]} is {why}, so it is not recorded", _SKIP_HINTS[why])
