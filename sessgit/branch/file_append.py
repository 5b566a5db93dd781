"""Appends lines to the agent's file for commands: the intent is saved first, and an interrupted append is completed.

The file comes first and the branch after it, in both directions: a recorder that reads the file between the two sees
turns that the store has, or is about to have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sessgit import agents
from sessgit.agents import agent_files
from sessgit.agents.line import opened
from sessgit.errors import ConflictError, SessgitError, StoreError
from sessgit.store import locks, recorder_state
from sessgit.store.context import Homes
from sessgit.store.layout import StorePaths
from sessgit.store.recorder_state import AppendIntent

_LOCK_WAIT = 10.0


@contextmanager
def writable_session(paths: StorePaths, session: str) -> Iterator[None]:
    """Hold the lock of a session; raises StoreError if a recorder keeps it."""
    with locks.session_lock(paths, session, _LOCK_WAIT) as is_held:
        if not is_held:
            raise StoreError(f"a recorder is writing {session[:8]}", "Try again.")
        yield


def append_lines(paths: StorePaths, session: str, path: Path, intent: AppendIntent) -> None:
    """Append to the file at `path` what the intent says, in one write; the intent stays saved until `delete_intent`."""
    recorder_state.save_intent(paths, session, intent)
    try:
        agent_files.append(path, intent.offset, intent.data)
    except SessgitError:  # nothing was written
        recorder_state.delete_intent(paths, session)
        raise


def finish_append(paths: StorePaths, session: str, path: Path) -> None:
    """Complete what a kill left half appended, unless something else was written since; an intent of which nothing is
    in the file is deleted."""
    intent = recorder_state.load_intent(paths, session)
    if intent is None or intent.path != str(path):
        recorder_state.delete_intent(paths, session)
        return
    with opened(path) as source:
        source.file.seek(intent.offset)
        written = source.file.read(len(intent.data) + 1) if source.size > intent.offset else b""
    if written and written != intent.data and intent.data.startswith(written):
        agent_files.append(path, intent.offset + len(written), intent.data[len(written) :])
    elif not written.startswith(intent.data):
        recorder_state.delete_intent(paths, session)


def check_closed(
    agent_id: str, homes: Homes, change: str = "change", hint: str = "Nothing was changed. Close it first."
) -> None:
    """Raise ConflictError if a client has the session open, which would not see the change."""
    if agents.is_open(homes, agent_id):
        raise ConflictError(
            f"{agent_id[:8]} is open in a client that would not see the {change}",
            hint,
        )
