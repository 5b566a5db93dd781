"""Record what is new in one transcript.

If another process has moved a ref meanwhile, the file is read again from what is recorded then.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sessgit.agents import Agent, Transcript
from sessgit.agents.line import Base, opened
from sessgit.errors import ConflictError, MovedError, SessgitError, StoreError
from sessgit.record import fork_detection, privacy
from sessgit.record.file_pass import FilePass, RecordingResult, SkipReason
from sessgit.record.fork_detection import DifferentTurnError
from sessgit.record.source import TranscriptSource, base_of, recorded_session
from sessgit.store import layout, locks, recorder_state
from sessgit.store.context import Context
from sessgit.store.store import Store

_TRIES = 5
_BASE_LOCK_WAIT = 1.0


def record(context: Context, source: TranscriptSource) -> RecordingResult:
    """Record all that the transcript holds, unless its session is archived or was deleted, and before it those that it
    goes on from. The caller holds the session's lock, or risks double work."""
    if not context.store.ref(layout.head_ref(source.session)):
        _record_bases(context, source)
    return _record(context, source)


def _record_bases(context: Context, source: TranscriptSource) -> None:
    """Record the transcripts from which this one goes on and which are not recorded as far as they go, or not as what
    they go on from, the oldest first, unless their projects are off."""
    store, chain = context.store, list[Transcript]()
    with suppress(SessgitError):
        base = _base_of(source.agent, source.path)
        while base is not None:
            found = source.agent.home.copies(source.folder, base.agent_id)
            if not found or base.agent_id in (source.agent_id, *(each.agent_id for each in chain)):
                break
            file, length = Transcript(found[0], base.agent_id, source.client), base.length
            base, known = _base_of(source.agent, file.path), recorder_state.load_cursor(store.paths, file.session)
            head = store.ref(layout.head_ref(file.session))
            is_placed = base is None or bool(head and store.state(head).origin)
            if is_placed and known is not None and known.path == str(file.path) and known.offset >= length:
                break
            chain.append(file)
    for file in reversed(chain):
        if not privacy.transcript_verdict(context.privacy, file.path).recorded:
            continue
        above = TranscriptSource(file.path, file.agent_id, source.folder, client=source.client)
        with suppress(SessgitError), locks.session_lock(store.paths, file.session, _BASE_LOCK_WAIT) as is_locked:
            if is_locked:
                _record(context, above)


def _base_of(agent: Agent, path: Path) -> Base | None:
    with opened(path) as file:
        return base_of(agent, file)


def _record(context: Context, source: TranscriptSource) -> RecordingResult:
    store = context.store
    moved, different = 0, set[str]()
    while moved < _TRIES:
        try:
            store.repo.begin_write()  # a value that is purged just now must be known to all that is written
            with opened(source.path) as file:
                known = recorded_session(store, source, context.privacy.rules)
                if not known.head and (reason := _skip_reason(store, source.session)):
                    return RecordingResult(source.session, skipped=reason)
                current = FilePass(context, source, known, file)
                cutter = current.resume() if not moved else None
                base = base_of(source.agent, file) if cutter and known.state and not known.state.origin else None
                if base and known.state and (late := fork_detection.late_lineage(context, source, known, base)):
                    known = replace(known, state=replace(known.state, origin=late.origin))
                    current = FilePass(context, source, known, file, late)
                    return current.finish(current.begin(), is_known=False)
                is_whole = current.file.reader.offset == file.size or not source.imported
                is_known = False
                if known.head and (cutter is None or not is_whole):
                    from sessgit.record import copies  # loaded here: it is rare

                    result, is_known = copies.record_copies(current)
                    if result is not None:
                        return result
                return current.finish(cutter or current.begin(different), is_known=is_known)
        except MovedError:
            moved += 1  # the cursor stays: it shows which turns another process added
        except DifferentTurnError as turn:
            different.add(turn.commit)
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
