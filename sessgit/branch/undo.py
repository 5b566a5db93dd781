"""Undo of an operation: its refs, the files that it wrote, and what it appended to an agent's file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sessgit import agents
from sessgit.agents import agent_files
from sessgit.branch import file_append
from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError
from sessgit.model.conversation.message import Message
from sessgit.model.frozen import frozen
from sessgit.store import git, layout, operations, recorder_state, refs
from sessgit.store.context import Homes
from sessgit.store.operations import (
    BACKGROUND,
    PURGE,
    FileRange,
    FileWrites,
    ListedOperation,
    Move,
    Operation,
    find_operation,
    has_only_end_commits,
    list_operations,
    perform_operation,
)
from sessgit.store.private_files import path_exists
from sessgit.store.recorder_state import AppendIntent
from sessgit.store.store import Store


@frozen
class UndoResult:
    """What an undo did: `operation` is the undone one, `undo` the new one, None for a dry run.

    `removed` are deleted files, `left` those that have changed and stay. `cut` are the files from which appended lines
    were taken off, `appended` those that got them back. If the undone operation is an undo itself, `original` is the
    operation that a command performed, else the same one; `redone` says that it is in effect again.
    """

    operation: Operation
    original: Operation
    redone: bool
    undo: Operation | None
    moves: tuple[Move, ...]
    removed: tuple[Path, ...]
    left: tuple[Path, ...]
    cut: tuple[Path, ...]
    appended: tuple[Path, ...]


def undo_operation(store: Store, operation_id: str, homes: Homes, now: float, *, dry_run: bool = False) -> UndoResult:
    """Undo an operation, by default the last one that is in effect and is no undo itself.

    Raises ConflictError if a ref has moved since then, or a file that the operation appended to has changed. Files that
    it wrote below `config`, the agent's folder, are deleted if they are unchanged.
    """
    operation = _chosen_operation(store, operation_id)
    if not operation.wrote.appended and not operation.wrote.cut:
        return _undo_locked(store, operation, homes, now, dry_run=dry_run)
    session = layout.session_of_ref(operation.moves[0].ref)
    with file_append.writable_session(store.paths, session):
        return _undo_locked(store, operation, homes, now, session, dry_run=dry_run)


def _undo_locked(
    store: Store, operation: Operation, homes: Homes, now: float, session: str = "", *, dry_run: bool
) -> UndoResult:
    """Undo an operation; the caller holds the lock of `session`, to whose file it appended, if any."""
    current = refs.read_all(store.path)
    for move in operation.moves:
        if not has_only_end_commits(store, move.new, current.get(move.ref)) or _would_delete_again(
            move, operation, current
        ):
            raise ConflictError(
                f"cannot undo “{operation.summary}”: {_shown_ref(move.ref)} has changed since then",
                "Nothing was changed. `sessgit ops` lists all operations.",
            )
    back = tuple(Move(move.ref, current.get(move.ref), move.old) for move in operation.moves)
    unchanged, changed = _written_files(operation, homes)
    for made in filter(None, (agents.transcript_at(homes, path) for path in unchanged)):
        file_append.check_closed(made.agent_id, homes)
    ends = str(back[0].old), str(back[0].new)
    turned = _planned_changes(store, operation, homes, *ends) if session else []
    cut = tuple(one.path for one in turned if one.data is None)
    appended = tuple(one.path for one in turned if one.data is not None)
    every, original, redone = {each.id: each for each in operations.read(store.paths)}, operation, False
    while original.undoes in every:  # at the end of a chain of undos is what a command performed
        original, redone = every[original.undoes], not redone
    result = UndoResult(operation, original, redone, None, back, unchanged, changed, cut, appended)
    if dry_run:
        return result
    if session:
        file_append.check_closed(store.state(str(current.get(operation.moves[0].ref))).agent_id, homes)
    git.find_git()  # nothing is half done for want of git
    wrote = _apply_change(store, operation, turned, session, ends[1]) if session else None
    # The files before the refs: a restore brings them back, but one that outlived its session would be recorded anew.
    _delete_files(unchanged, homes)
    try:
        done = perform_operation(
            store, "undo", f"undo: {operation.summary}", back, now, undoes=operation.id, wrote=wrote
        )
    except MovedError as error:
        raise ConflictError("a ref was just changed", "Only files were changed. Try again.") from error
    except StoreError as error:
        if unchanged or turned:
            hint = f"Only files were changed. To finish: `sessgit undo {operation.id}`"
            raise StoreError(str(error), hint) from error
        raise
    if session:
        recorder_state.delete_intent(store.paths, session)
    return replace(result, undo=done)


def _chosen_operation(store: Store, operation_id: str) -> Operation:
    every = list_operations(store)
    if not operation_id:
        for one in every:
            if _is_next_undo(one):
                _check_not_pruned(store, one.operation, every)
                return _check_undoable(one.operation)
        raise NotFoundError("there is nothing to undo", "`sessgit ops` lists all operations.")
    listed = find_operation(every, operation_id)
    if listed.standing != "done":
        state = "was already undone" if listed.standing == "undone" else "was never completed"
        raise ConflictError(f"“{listed.operation.summary}” {state}", "`sessgit ops` lists all operations.")
    return _check_undoable(listed.operation)


def _is_next_undo(one: ListedOperation) -> bool:
    """Return whether an undo without an id may undo this operation."""
    return one.standing == "done" and not one.operation.undoes and one.operation.command != BACKGROUND


def _check_not_pruned(store: Store, operation: Operation, every: Sequence[ListedOperation]) -> None:
    """Raise ConflictError if what the operation removed was pruned; the hint names the next one to undo."""

    def is_there(one: Operation) -> bool:
        return all(move.old is None or store.repo.read_problem(move.old) != "missing" for move in one.moves)

    if is_there(operation):
        return
    current = refs.read_all(store.path)
    for one in (one.operation for one in every if _is_next_undo(one) and one.operation.command != PURGE):
        if is_there(one) and all(has_only_end_commits(store, move.new, current.get(move.ref)) for move in one.moves):
            hint = f"Undo “{one.summary}” instead: `sessgit undo {one.id}`"
            break
    else:
        hint = "`sessgit ops` lists all operations."
    raise ConflictError(
        f"“{operation.summary}” can no longer be undone: sessgit gc --prune made it final",
        f"Nothing was changed. {hint}",
    )


def _check_undoable(operation: Operation) -> Operation:
    if operation.command == PURGE:
        raise ConflictError(
            "a purge cannot be undone: the value is gone", "To undo an earlier operation: `sessgit undo OP`"
        )
    return operation


def _would_delete_again(move: Move, operation: Operation, current: Mapping[str, str]) -> bool:
    """Return whether undoing a move would restore a tombstone while the session exists."""
    if not move.ref.startswith(layout.DELETED) or move.old is None:
        return False
    session = move.ref.removeprefix(layout.DELETED)
    places = {layout.head_ref(session), layout.archive_ref(session)} & current.keys()
    return not places <= {other.ref for other in operation.moves}


def _written_files(operation: Operation, homes: Homes) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files that the operation wrote: the unchanged ones, and those that have changed."""
    unchanged, changed = list[Path](), list[Path]()
    for name, proof in operation.files.items():
        path = Path(name)
        if not homes.hold(path):
            continue  # no command of ours wrote there
        try:
            same = not path.is_symlink() and hashlib.sha256(path.read_bytes()).hexdigest() == proof
        except OSError:
            continue
        (unchanged if same else changed).append(path)
    if any(agents.is_place(client, path) for client in agents.clients(homes) for path in changed):
        unchanged.clear()  # a transcript that stays keeps its sidecar files
    return tuple(unchanged), tuple(changed)


def _shown_ref(ref: str) -> str:
    """Return the ref as messages show it."""
    for space in layout.REF_SPACES:
        if ref.startswith(space):
            name = ref.removeprefix(space)
            return f"the tag “{name}”" if space == layout.TAGS else name[:8]
    return ref


# The ends of agents' files


@frozen
class _EndChange:
    """What undoing an operation does to the end of a file: `piece` goes, or comes back as `data`.

    `is_done` says that it is so already, from an undo that was interrupted.
    """

    path: Path
    piece: FileRange
    data: bytes | None = None
    is_done: bool = False


def _planned_changes(store: Store, operation: Operation, homes: Homes, tip: str, back: str) -> list[_EndChange]:
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
        file_append.check_closed(store.state(tip).agent_id, homes)
    return changes


def _apply_change(
    store: Store, operation: Operation, planned: Sequence[_EndChange], session: str, back: str
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
        file_append.append_lines(store.paths, session, one.path, intent)
    # The cursor may say that more of a file is recorded than there is.
    recorder_state.reset_cursor(store.paths, session, back)
    pieces = {str(one.path): one.piece for one in planned if one.data is None}
    again = {str(one.path): one.piece for one in planned if one.data is not None}
    return FileWrites(appended=again, cut=pieces)


def _delete_files(paths: Iterable[Path], homes: Homes) -> None:
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


def _plan_cut(operation: Operation, path: Path, piece: FileRange) -> _EndChange:
    start = agent_files.find_end(path, piece.length, piece.sha256)
    if start is not None:
        return _EndChange(path, piece._replace(offset=start))
    if path.stat().st_size == piece.offset:
        return _EndChange(path, piece, is_done=True)
    raise _gone_on_error(operation, path)


def _plan_append(operation: Operation, path: Path, piece: FileRange, recorded: bytes) -> _EndChange:
    # What is appended to a last line without a newline begins with that.
    data = (b"\n" + recorded)[-piece.length :]
    if hashlib.sha256(data).hexdigest() != piece.sha256:
        raise ConflictError(f"the part removed from {path} is not in the store as it was", "Nothing was changed.")
    if path.stat().st_size == piece.offset:
        return _EndChange(path, piece, data)
    if agent_files.find_end(path, piece.length, piece.sha256) is not None:
        return _EndChange(path, piece, data, is_done=True)
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
