"""Undo of an operation: its refs, the files that it wrote, and what it appended to an agent's file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sessgit import agents
from sessgit.branch import file_append
from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError
from sessgit.model.frozen import frozen
from sessgit.store import git, layout, operations, recorder_state, refs
from sessgit.store.context import Homes
from sessgit.store.operations import (
    BACKGROUND,
    PURGE,
    ListedOperation,
    Move,
    Operation,
    find_operation,
    has_only_end_commits,
    list_operations,
    perform_operation,
)
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
    turned = file_append.planned_changes(store, operation, homes, *ends) if session else []
    cut = tuple(one.path for one in turned if one.data is None)
    appended = tuple(one.path for one in turned if one.data is not None)
    every, original, redone = {each.id: each for each in operations.read(store.paths)}, operation, False
    while original.undoes in every:  # at the end of a chain of undos is what a command performed
        original, redone = every[original.undoes], not redone
    if dry_run:
        return UndoResult(operation, original, redone, None, back, unchanged, changed, cut, appended)
    if session:
        file_append.check_closed(store.state(str(current.get(operation.moves[0].ref))).agent_id, homes)
    git.find_git()  # nothing is half done for want of git
    wrote = file_append.apply_change(store, operation, turned, session, ends[1]) if session else None
    # The files before the refs: a restore brings them back, but one that outlived its session would be recorded anew.
    file_append.delete_files(unchanged, homes)
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
    return UndoResult(operation, original, redone, done, back, unchanged, changed, cut, appended)


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
