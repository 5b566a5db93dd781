"""A turn added to a session that has no file of the client's, and gets none: what a replay keeps, for one.

The file is laid out as `restore` would write it, in a folder that goes again, with the turn behind its end; the
recorder then finds the turn in it as in any other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sessgit import agents
from sessgit.branch import edit
from sessgit.branch.restore import write_copy
from sessgit.errors import ConflictError
from sessgit.model.program_input import GivenTurn
from sessgit.record.recording import record, skipped_error
from sessgit.record.source import TranscriptSource, rules_from_settings
from sessgit.store import locks, recorder_state, tempdirs
from sessgit.store.context import Context


def append_turn(context: Context, session: str, given: GivenTurn) -> int:
    """Adds the turn to the session, records it, and returns its number.

    Raises ConflictError if another process keeps writing the session, or it is archived or was deleted.
    """
    store, index = context.store, context.index
    with locks.session_lock(store.paths, session, edit.LOCK_TIMEOUT) as held, tempdirs.make_folder("sessgit-") as at:
        if not held:
            raise ConflictError(f"another process is writing {session[:8]}", "Try again.")
        state = context.branch(session).state
        path = write_copy(store, state, at)
        end = agents.of(state).programs.end(path, replace(state, updated=""))
        end.read()
        end.append(end.chain.turn(given), durable=False)
        own = context.homes.of(state)
        source = TranscriptSource(path, state.agent_id, Path(at), own=own, client=state.agent)
        done = record(context, source, rules_from_settings(context.privacy.rules))
        # The file is gone: the next recording of the session reads its own from the beginning.
        recorder_state.delete_cursor(store.paths, session)
    if done.skipped:
        raise skipped_error(session, done.skipped)
    return next((row.turn for row in index.with_prompt(end.key) if row.branch == session), 0)
