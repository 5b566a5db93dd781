"""Taking back what a command did: its refs, the files that it wrote, and what it appended to an agent's file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.branch import append_undo
from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError
from sessgit.store import layout, locks, refs, transaction
from sessgit.store.files import paths
from sessgit.store.journal import Operation
from sessgit.store.operations import (
    BACKGROUND,
    PURGE,
    ListedOperation,
    find_operation,
    has_only_end_commits,
    list_operations,
    perform_operation,
)
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_LOCK_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo did: `operation` is what was taken back, `undo` the operation that did it, None for a dry run.

    `removed` are files that went, `left` those that stay, since they have changed. `cut` are those that lost again what
    was appended to them, `appended` those that got it back.
    """

    operation: Operation
    undo: Operation | None
    moves: tuple[Move, ...]
    removed: tuple[Path, ...] = ()
    left: tuple[Path, ...] = ()
    cut: tuple[Path, ...] = ()
    appended: tuple[Path, ...] = ()


def undo_operation(store: Store, wanted: str, config: Path, now: float, *, dry_run: bool = False) -> UndoResult:
    """Takes an operation back, by default the last one that stands and is no undo itself.

    Only while every ref still holds what the operation left there, and a file that it appended to ends with that:
    raises ConflictError where one has gone on since. Files that it wrote below `config`, the agent's folder, go where
    they are unchanged.
    """
    found = _chosen_operation(store, wanted)
    if not found.wrote.appended and not found.wrote.cut:
        return _undo_locked(store, found, config, now, dry_run=dry_run)
    session = layout.session_of_ref(found.moves[0].ref)
    with locks.session_lock(store.beside, session, _LOCK_WAIT) as held:
        if not held:
            raise StoreError(f"a recorder is writing {session[:8]}", "Try again.")
        return _undo_locked(store, found, config, now, session, dry_run=dry_run)


def _undo_locked(
    store: Store, found: Operation, config: Path, now: float, session: str = "", *, dry_run: bool
) -> UndoResult:
    """The same, of an operation; `session` is the one to whose file it appended, and then its lock is held."""
    held = refs.read_all(store.path)
    for move in found.moves:
        if not has_only_end_commits(store, move.new, held.get(move.ref)) or _would_delete_again(move, found, held):
            raise ConflictError(
                f"cannot undo “{found.summary}”: {_shown_ref(move.ref)} has changed since then",
                "Nothing was changed. `sessgit ops` lists all operations.",
            )
    back = tuple(Move(move.ref, held.get(move.ref), move.old) for move in found.moves)
    unchanged, changed = _written_files(found, config)
    for path in unchanged:
        append_undo.check_closed(path.stem, config)
    ends = str(back[0].old), str(back[0].new)
    turned = append_undo.planned_changes(store, found, config, *ends) if session else []
    cut = tuple(one.path for one in turned if one.data is None)
    appended = tuple(one.path for one in turned if one.data is not None)
    if dry_run:
        return UndoResult(found, None, back, unchanged, changed, cut, appended)
    if session:
        append_undo.check_closed(store.state(str(held.get(found.moves[0].ref))).agent_id, config)
    transaction.check_git()  # nothing is half done for want of git
    wrote = append_undo.apply_change(store, found, turned, session, ends[1]) if session else None
    # The files before the refs: a restore brings them back, but one that outlived its session would be recorded anew.
    append_undo.delete_files(unchanged, config)
    try:
        done = perform_operation(store, "undo", f"undo: {found.summary}", back, now, undoes=found.id, wrote=wrote)
    except MovedError as error:
        raise ConflictError("a ref was just changed", "Only files were changed. Try again.") from error
    except StoreError as error:
        if unchanged or turned:
            hint = f"Only files were changed. To finish: `sessgit undo {found.id}`"
            raise StoreError(str(error), hint) from error
        raise
    if session:
        append_undo.delete_notes(store, session)
    return UndoResult(found, done, back, unchanged, changed, cut, appended)


def _chosen_operation(store: Store, wanted: str) -> Operation:
    every = list_operations(store)
    if not wanted:
        for one in every:
            if _is_next_undo(one):
                _check_not_pruned(store, one.operation, every)
                return _check_undoable(one.operation)
        raise NotFoundError("there is nothing to undo", "`sessgit ops` lists all operations.")
    found = find_operation(every, wanted)
    if found.standing != "done":
        state = "was already undone" if found.standing == "undone" else "was never completed"
        raise ConflictError(f"“{found.operation.summary}” {state}", "`sessgit ops` lists all operations.")
    return _check_undoable(found.operation)


def _is_next_undo(one: ListedOperation) -> bool:
    """Whether an undo that names no operation may mean this one."""
    return one.standing == "done" and not one.operation.undoes and one.operation.command != BACKGROUND


def _check_not_pruned(store: Store, found: Operation, every: Sequence[ListedOperation]) -> None:
    """Raises ConflictError where what the operation took away was pruned, with the next one that can be taken back."""

    def is_there(one: Operation) -> bool:
        return all(move.old is None or store.repo.read_problem(move.old) != "missing" for move in one.moves)

    if is_there(found):
        return
    held = refs.read_all(store.path)
    for one in (one.operation for one in every if _is_next_undo(one) and one.operation.command != PURGE):
        if is_there(one) and all(has_only_end_commits(store, move.new, held.get(move.ref)) for move in one.moves):
            hint = f"Undo “{one.summary}” instead: `sessgit undo {one.id}`"
            break
    else:
        hint = "`sessgit ops` lists all operations."
    raise ConflictError(
        f"“{found.summary}” can no longer be undone: sessgit gc --prune made it final", f"Nothing was changed. {hint}"
    )


def _check_undoable(found: Operation) -> Operation:
    if found.command == PURGE:
        raise ConflictError(
            "a purge cannot be undone: the value is gone", "To undo an earlier operation: `sessgit undo OP`"
        )
    return found


def _would_delete_again(move: Move, operation: Operation, held: Mapping[str, str]) -> bool:
    """Whether undoing a move would say that a session was deleted, and leave it there."""
    if not move.ref.startswith(layout.DELETED) or move.old is None:
        return False
    session = move.ref.removeprefix(layout.DELETED)
    places = {layout.head_ref(session), layout.archive_ref(session)} & held.keys()
    return not places <= {other.ref for other in operation.moves}


def _written_files(operation: Operation, config: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that the operation wrote: those that are as it wrote them, and those that have changed."""
    unchanged, changed = list[Path](), list[Path]()
    for name, proof in operation.files.items():
        path = Path(name)
        if not paths.is_inside(config, path):
            continue  # no command of ours wrote there
        try:
            same = not path.is_symlink() and hashlib.sha256(path.read_bytes()).hexdigest() == proof
        except OSError:
            continue
        (unchanged if same else changed).append(path)
    if any(path.match("projects/*/*.jsonl") and not path.name.startswith("agent-") for path in changed):
        unchanged.clear()  # a transcript that stays keeps what lies beside it
    return tuple(unchanged), tuple(changed)


def _shown_ref(ref: str) -> str:
    """The ref as a person knows it."""
    for space in (layout.HEADS, layout.ARCHIVE, layout.DELETED, layout.TAGS):
        if ref.startswith(space):
            name = ref.removeprefix(space)
            return f"the tag “{name}”" if space == layout.TAGS else name[:8]
    return ref
