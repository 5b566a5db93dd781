"""What commands appended to the agent's files, taken off again, and put back where that is undone.

The file comes first and the branch after it, in both directions: whoever records the file between the two finds the
turns that the store has, or those that it is about to have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit import agents
from sessgit.agents import file_end
from sessgit.errors import ConflictError
from sessgit.model.conversation.message import Message
from sessgit.record import divergence
from sessgit.store.files import paths
from sessgit.store.journal import FileRange, FileWrites, Operation
from sessgit.store.recorder import append_intent
from sessgit.store.recorder.append_intent import AppendIntent
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class EndChange:
    """What undoing an operation does to the end of a file: `piece` goes, or comes back as `data`.

    `is_done` says that it is so already, from an undo that was interrupted.
    """

    path: Path
    piece: FileRange
    data: bytes | None = None
    is_done: bool = False


def planned_changes(store: Store, operation: Operation, config: Path, held: str, back: str) -> list[EndChange]:
    """What has to be done to files below `config` where a branch goes from the commit `held` to `back`; a file that
    is gone needs nothing.

    Raises ConflictError where a file has gone on since, cannot be as it was, or is open in a client.
    """
    found = [_plan_cut(operation, path, piece) for path, piece in _existing_ranges(operation.wrote.appended, config)]
    if operation.wrote.cut:
        data = b"".join(line for _, lines in _undone_turns(store, back, operation) for line in lines)
        found += [
            _plan_append(operation, path, piece, data) for path, piece in _existing_ranges(operation.wrote.cut, config)
        ]
    if found:
        check_closed(store.state(held).agent_id, config)
    return found


def check_closed(agent_id: str, config: Path) -> None:
    """Raises ConflictError where a client has the session open."""
    if agents.at(config).home.is_open(config, agent_id):
        raise ConflictError(
            f"{agent_id[:8]} is open in a client that would not see the change",
            "Nothing was changed. Close it first.",
        )


def apply_change(
    store: Store, operation: Operation, planned: Sequence[EndChange], session: str, back: str
) -> FileWrites:
    """Does it, and says what an operation notes of it; whoever calls holds the session's lock."""
    for one in planned:
        if one.is_done:
            continue
        if one.data is None:
            file_end.cut(one.path, one.piece.length, one.piece.sha256)
            continue
        told = [message for message, _ in _undone_turns(store, back, operation)]
        brought = {message.get("Prompt"): (message.get("Event"), message.get("Origin")) for message in told}
        note = AppendIntent(str(one.path), one.piece.offset, one.data, operation.moves[0].new or "", "undo", brought)
        append_intent.save_intent(store.beside, session, note)
        file_end.append(one.path, one.piece.offset, one.data)
    # The cursor may say that more of a file is recorded than there is.
    divergence.reset_cursor(store.beside, session, back)
    pieces = {str(one.path): one.piece for one in planned if one.data is None}
    again = {str(one.path): one.piece for one in planned if one.data is not None}
    return FileWrites(appended=again, cut=pieces)


def delete_files(paths: Iterable[Path], config: Path) -> None:
    """Deletes files of sessions below `config`, the agent's folder, and the folders of theirs that are empty then."""
    for path in paths:
        path.unlink(missing_ok=True)
        folder = path.parent
        with suppress(OSError):  # it holds something else
            while config in folder.parent.parents:
                folder.rmdir()
                folder = folder.parent


def delete_notes(store: Store, session: str) -> None:
    """Forgets what was noted, once the operation is written down."""
    append_intent.delete_intent(store.beside, session)


def _existing_ranges(pieces: Mapping[str, FileRange], config: Path) -> Iterator[tuple[Path, FileRange]]:
    for name, piece in pieces.items():
        path = Path(name)
        if paths.is_inside(config, path) and paths.is_there(path):
            yield path, piece


def _plan_cut(operation: Operation, path: Path, piece: FileRange) -> EndChange:
    start = file_end.found_at(path, piece.length, piece.sha256)
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
    if file_end.found_at(path, piece.length, piece.sha256) is not None:
        return EndChange(path, piece, data, is_done=True)
    raise _gone_on_error(operation, path)


def _gone_on_error(operation: Operation, path: Path) -> ConflictError:
    return ConflictError(
        f"cannot undo “{operation.summary}”: {path} has changed since then",
        "Nothing was changed. `sessgit ops` lists all operations.",
    )


def _undone_turns(store: Store, tip: str, undo: Operation) -> list[tuple[Message, list[bytes]]]:
    """The turns that an undo took off a commit, in their order: their messages and lines with newlines."""
    found: dict[int, tuple[Message, list[bytes]]] = {}
    for commit in store.repo.first_parents(tip):
        if commit.id == undo.moves[0].new:
            break
        message = store.message(commit.id)
        number = message.number("Turn")
        if number and number not in found:
            lines = store.lines(commit.id, number)
            found[number] = message, [line + b"\n" for line in (*lines.before, *lines.body)]
    return [found[number] for number in sorted(found)]
