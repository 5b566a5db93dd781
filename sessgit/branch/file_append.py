"""Appends lines to the agent's file for commands: the intent is saved first, an interrupted append is completed, and
undo removes the lines or appends them again.

The file comes first and the branch after it, in both directions: a recorder that reads the file between the two sees
turns that the store has, or is about to have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit import agents
from sessgit.agents import agent_files
from sessgit.agents.line import opened
from sessgit.errors import ConflictError, SessgitError, StoreError
from sessgit.model.conversation.message import Message
from sessgit.model.frozen import frozen
from sessgit.store import locks, recorder_state
from sessgit.store.context import Homes
from sessgit.store.layout import StorePaths
from sessgit.store.operations import FileRange, FileWrites, Operation
from sessgit.store.private_files import path_exists
from sessgit.store.recorder_state import AppendIntent
from sessgit.store.store import Store

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


def withdraw_append(intent: AppendIntent) -> None:
    """Remove from the file what a kill left appended, if it is the file's end."""
    path = Path(intent.path)
    written = path.read_bytes()[intent.offset :] if path_exists(path) else b""
    if written and intent.data.startswith(written):
        agent_files.cut(path, len(written), hashlib.sha256(written).hexdigest())


def is_only_intent(store: Store, intent: AppendIntent, head: str) -> bool:
    """Return whether the head came of the intent alone: no other turn and no edit came since."""
    for commit, message in store.history(head):
        if commit == intent.head:
            return commit != head
        if message.get("Event") not in ("compact", "end") and message.get("Prompt") not in intent.brought:
            return False
    return False


def appended_range(intent: AppendIntent) -> FileWrites:
    """Return what an operation notes of the append."""
    piece = FileRange(intent.offset, len(intent.data), hashlib.sha256(intent.data).hexdigest())
    return FileWrites(intent.files, {intent.path: piece})


# Undo


@frozen
class EndChange:
    """What undoing an operation does to the end of a file: `piece` goes, or comes back as `data`.

    `is_done` says that it is so already, from an undo that was interrupted.
    """

    path: Path
    piece: FileRange
    data: bytes | None = None
    is_done: bool = False


def planned_changes(store: Store, operation: Operation, homes: Homes, tip: str, back: str) -> list[EndChange]:
    """Return what has to be done to files in the clients' folders when a branch goes from the commit `held` to `back`;
    a file that is gone needs nothing.

    Raises ConflictError if a file has changed since, cannot become what it was, or is open in a client.
    """
    changes = [_plan_cut(operation, path, piece) for path, piece in _existing_ranges(operation.wrote.appended, homes)]
    if operation.wrote.cut:
        data = b"".join(line for _, lines in _undone_turns(store, back, operation) for line in lines)
        changes += [
            _plan_append(operation, path, piece, data) for path, piece in _existing_ranges(operation.wrote.cut, homes)
        ]
    if changes:
        check_closed(store.state(tip).agent_id, homes)
    return changes


def check_closed(
    agent_id: str, homes: Homes, change: str = "change", hint: str = "Nothing was changed. Close it first."
) -> None:
    """Raise ConflictError if a client has the session open, which would not see the change."""
    if agents.is_open(homes, agent_id):
        raise ConflictError(
            f"{agent_id[:8]} is open in a client that would not see the {change}",
            hint,
        )


def apply_change(
    store: Store, operation: Operation, planned: Sequence[EndChange], session: str, back: str
) -> FileWrites:
    """Make the planned changes, and return what an operation notes of them; the caller holds the session's lock."""
    for one in planned:
        if one.is_done:
            continue
        if one.data is None:
            agent_files.cut(one.path, one.piece.length, one.piece.sha256)
            continue
        messages = [message for message, _ in _undone_turns(store, back, operation)]
        origins = {message.get("Prompt"): (message.get("Event"), message.get("Origin")) for message in messages}
        head = operation.moves[0].new or ""
        intent = AppendIntent(str(one.path), one.piece.offset, one.data, head, "undo", origins)
        append_lines(store.paths, session, one.path, intent)
    # The cursor may say that more of a file is recorded than there is.
    recorder_state.reset_cursor(store.paths, session, back)
    pieces = {str(one.path): one.piece for one in planned if one.data is None}
    again = {str(one.path): one.piece for one in planned if one.data is not None}
    return FileWrites(appended=again, cut=pieces)


def delete_files(paths: Iterable[Path], homes: Homes) -> None:
    """Delete files of sessions in the clients' folders, and their folders if these are empty afterwards."""
    for path in paths:
        path.unlink(missing_ok=True)
        folder = path.parent
        with suppress(OSError):  # it holds something else
            while homes.hold(folder.parent.parent):
                folder.rmdir()
                folder = folder.parent


def _existing_ranges(pieces: Mapping[str, FileRange], homes: Homes) -> Iterator[tuple[Path, FileRange]]:
    for name, piece in pieces.items():
        path = Path(name)
        if homes.hold(path) and path_exists(path):
            yield path, piece


def _plan_cut(operation: Operation, path: Path, piece: FileRange) -> EndChange:
    start = agent_files.find_end(path, piece.length, piece.sha256)
    if start is not None:
        return EndChange(path, piece._replace(offset=start))
    if path.stat().st_size == piece.offset:
        return EndChange(path, piece, is_done=True)
    raise _gone_on_error(operation, path)


def _plan_append(operation: Operation, path: Path, piece: FileRange, recorded: bytes) -> EndChange:
    # What is appended to a last line without a newline begins with that.
    data = (b"\n" + recorded)[-piece.length :]
    if hashlib.sha256(data).hexdigest() != piece.sha256:
        raise ConflictError(f"the part removed from {path} is not in the store as it was", "Nothing was changed.")
    if path.stat().st_size == piece.offset:
        return EndChange(path, piece, data)
    if agent_files.find_end(path, piece.length, piece.sha256) is not None:
        return EndChange(path, piece, data, is_done=True)
    raise _gone_on_error(operation, path)


def _gone_on_error(operation: Operation, path: Path) -> ConflictError:
    return ConflictError(
        f"cannot undo “{operation.summary}”: {path} has changed since then",
        "Nothing was changed. `sessgit ops` lists all operations.",
    )


def _undone_turns(store: Store, tip: str, undo: Operation) -> list[tuple[Message, list[bytes]]]:
    """Return the turns that an undo removed from a branch, in order: their messages, and their lines with newlines."""
    turns: dict[int, tuple[Message, list[bytes]]] = {}
    for commit, message in store.history(tip):
        if commit == undo.moves[0].new:
            break
        number = message.number("Turn")
        if number and number not in turns:
            turns[number] = message, [line + b"\n" for line in store.lines(commit, number).whole]
    return [turns[number] for number in sorted(turns)]
