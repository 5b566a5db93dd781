"""Operations: what users' commands do to the refs, written to the journal first, and undone later.

A recording is no operation, since nothing that was said is undone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypeVar

from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.store import journal, layout, packed_refs, refs, transaction
from sessgit.store.journal import FileWrites, Operation
from sessgit.store.store import Store
from sessgit.store.transaction import Move

OperationState = Literal["done", "undone", "not done"]

BACKGROUND = "background"
"""The command of an operation that no user ran: `undo` needs its id."""
PURGE = "purge"
"""The command of an operation that cannot be undone, since the purged data is gone."""
_TRIES = 5
_Result = TypeVar("_Result")


@frozen
class ListedOperation:
    """An operation and its state: one that was interrupted, or whose refs had moved, is `not done`."""

    operation: Operation
    standing: OperationState


def perform_operation(  # noqa: PLR0913, PLR0917 - what an operation is
    store: Store,
    command: str,
    summary: str,
    moves: Sequence[Move],
    now: float,
    files: Mapping[str, bytes] | None = None,
    undoes: str = "",
    *,
    wrote: FileWrites | None = None,
    held: Mapping[str, str] | None = None,
    completes: str = "",
) -> Operation:
    """Append the operation to the journal and move the refs, all or none. Raises MovedError if one was moved meanwhile.

    `files` are those that the command writes next, by path with their bytes, `wrote` is what it did to others before.
    `held` has the present values of refs that recording has moved since the operation began, `completes` the id of the
    operation that was its first step. A tip that becomes unreachable stays under `refs/keep/`. Raises ConflictError if
    a commit for a ref was pruned meanwhile.
    """
    hashes = {path: hashlib.sha256(data).hexdigest() for path, data in (files or {}).items()}
    wrote = replace(wrote or FileWrites(), files={**(wrote.files if wrote else {}), **hashes})
    planned = Operation(
        canonical.rfc3339(now), command, summary, {move.ref: (move.old, move.new) for move in moves}, wrote.files,
        undoes, wrote.appended, wrote.cut, completes,
    )  # fmt: skip
    store.repo.begin_write()
    try:
        finish_interrupted(store, but={move.ref for move in moves})
        return _perform_locked(store, planned, held or {})
    finally:
        store.repo.release()


def retry_moved(store: Store, message: str, attempt: Callable[[], _Result]) -> _Result:
    """Return what `attempt` returns, which is called again if another process moves its refs. Raises StoreError with
    the message if that happens again and again."""
    for _ in range(_TRIES):
        store.repo.begin_write()  # waits for a purge: `attempt` must know the purged values
        try:
            return attempt()
        except MovedError:
            continue
        finally:
            store.repo.release()
    raise StoreError(message, "Try again.")


def drop_tombstone(store: Store, session: str, now: float) -> None:
    """Remove the tombstone of a session that is recorded again, if it has one."""
    ref = layout.tombstone_ref(session)
    with suppress(MovedError):
        tombstone = refs.read(store.path, ref)
        if tombstone is not None:
            perform_operation(store, "import", f"{session[:8]}: recorded again", [Move(ref, tombstone, None)], now)


def finish_interrupted(store: Store, *, but: Collection[str] = ()) -> bool:
    """Finish the last operation if a kill left only some of its refs moved; return whether it did.

    An operation on one of the refs `but` is left alone: the caller relies on what they hold.
    """
    last = journal.last(store.paths)
    moves = [move for move in last.moves if move.old != move.new] if last else []
    if len(moves) < 2 or any(move.ref in but for move in moves):
        return False
    current = refs.read_all(store.path)
    left = [move for move in moves if current.get(move.ref) == move.old]
    done = [move for move in moves if current.get(move.ref) == move.new]
    if not left or not done or len(left) + len(done) < len(moves):
        return False
    with suppress(MovedError):  # another process is doing it
        transaction.move_all(store.path, left)
    return True


def _perform_locked(store: Store, planned: Operation, held: Mapping[str, str]) -> Operation:
    moves = planned.moves
    problems = {store.repo.read_problem(move.new) for move in moves if move.new is not None}
    if "damaged" in problems:
        raise StoreError("a commit that it needs is damaged", "Nothing was changed. `sessgit verify` names the commit.")
    if "missing" in problems:
        raise ConflictError("the data it needs was deleted for good by sessgit gc --prune", "Nothing was changed.")
    store.repo.flush()
    size = packed_refs.journal_size(store.paths)
    operation = journal.append(store.paths, planned)
    kept = [
        Move(layout.kept_ref(operation.id, number), None, tip)
        for number, tip in enumerate(_unreachable_tips(store, moves), start=1)
        if not store.repo.read_problem(tip)  # git keeps none that it cannot read
    ]
    steps = [
        move._replace(old=held.get(move.ref, move.old))
        for move in moves
        if move.ref not in held or held[move.ref] != move.new
    ]
    if len(steps) == 1 and not kept:
        store.repo.move(*steps[0])
    else:
        transaction.move_all(store.path, [*kept, *steps])  # in this order: after a kill every tip is kept
    packed_refs.record_new_refs(store.path, {move.ref: move.new for move in moves if not move.old and move.new}, size)
    if len(moves) > transaction.MANY_MOVES:
        from sessgit.store import maintenance

        maintenance.pack_moved_refs(store.path, len(moves))
    return operation


def find_operation(every: Sequence[ListedOperation], prefix: str) -> ListedOperation:
    """Return the operation whose id begins with `prefix`. Raises NotFoundError if there is none, or several."""
    matches = [listed for listed in every if listed.operation.id.startswith(prefix)]
    if len(matches) != 1:
        what = f"“{prefix}” matches {len(matches)} operations" if matches else f"there is no operation “{prefix}”"
        raise NotFoundError(what, "`sessgit ops` lists the operations.")
    return matches[0]


def list_operations(store: Store) -> list[ListedOperation]:
    """Return the operations, newest first, with their states; the first step of another one is left out."""
    later, undone, steps = _LaterOperations(store), set[str](), set[str]()
    listed = []
    for operation in reversed(journal.read(store.paths)):
        if operation.id in steps:
            continue
        state: OperationState = "done"
        if operation.id in undone:
            state = "undone"
        elif later.repeat(operation) or not all(map(later.took_effect, operation.moves)):
            state = "not done"
        if state == "done" and operation.undoes:
            undone.add(operation.undoes)
        if state != "not done":
            steps.add(operation.completes)
            later.add(operation)
        listed.append(ListedOperation(operation, state))
    return listed


class _LaterOperations:
    """What is known of an operation's refs from the store and from the operations after it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._current = refs.read_all(store.path)
        self._old: dict[str, dict[str | None, None]] = {}
        """The values from which later operations moved each ref, the next one last."""
        self._next: dict[str, Operation] = {}
        self._tips: dict[str, list[str]] = {}
        """The tips of each session's branches, also of those that were deleted later."""
        self._recorded_again = set[str]()
        """The sessions that were deleted and recorded again later."""
        for ref, tip in self._current.items():
            self._add_tip(ref, tip)

    def add(self, operation: Operation) -> None:
        for move in operation.moves:
            self._next[move.ref] = operation
            old = self._old.setdefault(move.ref, {})
            old.pop(move.old, None)
            old[move.old] = None
            if move.new is None and move.old is not None:
                self._add_tip(move.ref, move.old)
            if move.new is None and move.ref.startswith(layout.DELETED):
                self._recorded_again.add(move.ref.removeprefix(layout.DELETED))

    def _add_tip(self, ref: str, tip: str) -> None:
        if ref.startswith(layout.BRANCH_SPACES):
            self._tips.setdefault(layout.session_of_ref(ref), []).append(tip)

    def repeat(self, operation: Operation) -> bool:
        """Return whether an operation was interrupted and then done again."""
        again = self._next.get(operation.moves[0].ref) if operation.moves else None
        return again is not None and again.moves == operation.moves and again.command == operation.command

    def took_effect(self, move: Move) -> bool:
        """Return whether the ref, or a later operation, has what the move left there, or a commit based on that.

        After a rewind this is on another branch of the session.
        """
        repo, now, later = self._store.repo, self._current.get(move.ref), self._old.get(move.ref, {})
        session = layout.session_of_ref(move.ref)
        if now == move.new or move.new in later:
            return True
        if move.new is None:
            return session in self._recorded_again
        if layout.tombstone_ref(session) in self._current and not repo.has(move.new):
            return True  # after a prune nothing more can be known
        sides = self._tips.get(session, ()) if move.ref.startswith(layout.BRANCH_SPACES) else ()
        tips = dict.fromkeys(tip for tip in (next(reversed(later), None), now, *sides) if tip is not None)
        based = [tip for tip in tips if repo.is_ancestor(move.new, tip)]
        # A move back has no effect as long as what it leads away from is there.
        if based and move.old is not None and repo.is_ancestor(move.new, move.old):
            based = [tip for tip in based if not repo.is_ancestor(move.old, tip)]
        return bool(based)


def has_only_end_commits(store: Store, after: str | None, tip: str | None) -> bool:
    """Return whether nothing came after a commit but the notes that the agent has ended the session."""
    if after is None or tip is None or after == tip:
        return after == tip
    for commit in store.repo.first_parents(tip):
        if commit.id == after:
            return True
        if store.message(commit.id).get("Event") != "end":
            return False
    return False


def _unreachable_tips(store: Store, moves: Sequence[Move]) -> Iterator[str]:
    """Yield the tips that the moves make unreachable, except tombstones."""
    moves = [move for move in moves if not move.ref.startswith(layout.DELETED)]
    new = {move.new for move in moves if move.new is not None}
    for old, own in {move.old: move.new for move in moves if move.old is not None}.items():
        # First the ref itself, which usually went forward: each of a thousand is not compared with all others.
        if old in new or (own is not None and store.repo.is_ancestor(old, own)):
            continue
        if not any(store.repo.is_ancestor(old, tip) for tip in new):
            yield old
