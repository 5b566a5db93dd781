"""A turn added to a session that has no file of the client's, and gets none: what a replay keeps, for one.

The file is laid out as `restore` would write it, in a folder that goes again, with the turn behind its end; the
recorder then finds the turn in it as in any other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sessgit import agents
from sessgit.branch import edit
from sessgit.branch.restore import rebuild_file
from sessgit.errors import ConflictError
from sessgit.model.program_input import GivenTurn
from sessgit.record.context import RecordContext
from sessgit.record.recording import record, set_aside_error
from sessgit.record.source import TranscriptSource
from sessgit.store import locks
from sessgit.store.files import tempdirs
from sessgit.store.recorder import cursor as cursors


def append_turn(world: RecordContext, session: str, given: GivenTurn) -> int:
    """Adds the turn to the session, records it, and returns its number.

    Raises ConflictError where somebody else keeps writing the session, or it is archived or was deleted.
    """
    store, index = world.store, world.index
    with locks.session_lock(store.beside, session, edit.LOCK_TIMEOUT) as held, tempdirs.make_folder("sessgit-") as at:
        if not held:
            raise ConflictError(f"another process is writing {session[:8]}", "Try again.")
        state = world.branch(session).state
        agent_id = state.agent_id
        path = at / "projects" / "aside" / f"{agent_id}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(rebuild_file(store, session).data)
        end = agents.of(state).programs.end(path, replace(state, updated=""))
        end.read()
        end.append(end.chain.turn(given), durable=False)
        source = TranscriptSource(path, agent_id, Path(at), own=world.config)
        done = record(store, index, source, world.rules)
        # The file is gone: whoever records the session next reads its own from the beginning.
        cursors.delete_cursor(store.beside, session)
    if done.aside:
        raise set_aside_error(session, done.aside)
    return next((row.turn for row in index.with_prompt(end.key) if row.branch == session), 0)
