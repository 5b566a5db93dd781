"""What people's commands do to the refs: written down before it is done, and taken back.

A recording is no operation: nobody undoes what was said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError
from sessgit.model import canonical
from sessgit.store import journal, layout, locks, refs, transaction
from sessgit.store.damage import packed_refs
from sessgit.store.journal import FileWrites, Operation
from sessgit.store.store import Store
from sessgit.store.transaction import Move

OperationState = Literal["done", "undone", "not done"]

BACKGROUND = "background"
"""The command of an operation that nobody gave: it is undone where its id is named."""
PURGE = "purge"
"""The command of an operation that nobody can take back: what it took away is nowhere."""
_BRANCH_SPACES = (layout.HEADS, layout.ARCHIVE)
_MANY_MOVES = 1000
"""So many refs that were moved are packed at once: each is a file of its own before, and every command reads them."""


@dataclass(frozen=True, slots=True)
class ListedOperation:
    """An operation and how it stands: `not done` is one that was interrupted, or found the refs moved."""

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
    """Writes the operation down and moves the refs, all or none; raises MovedError where one was moved meanwhile.

    `files` are those that the command writes next, by path with their bytes, `wrote` is what it did to others before.
    `held` says what refs hold by now that recording has moved on since the operation began, `completes` the operation
    that was its first step. A tip that nothing would reach any more stays under `refs/keep/`. Raises ConflictError
    where what a ref shall hold was pruned meanwhile.
    """
    proved = {path: hashlib.sha256(data).hexdigest() for path, data in (files or {}).items()}
    wrote = replace(wrote or FileWrites(), files={**(wrote.files if wrote else {}), **proved})
    planned = Operation(canonical.rfc3339(now), command, summary, tuple(moves), wrote, undoes, completes)
    store.repo.begin_write()
    try:
        finish_interrupted(store, but={move.ref for move in moves})
        return _perform_locked(store, planned, held or {})
    finally:
        store.repo.release()


def drop_tombstone(store: Store, session: str, now: float) -> None:
    """Remove the tombstone of a session that is recorded again, if it has one."""
    ref = layout.tombstone_ref(session)
    with suppress(MovedError):
        stone = refs.read(store.path, ref)
        if stone is not None:
            perform_operation(store, "import", f"{session[:8]}: recorded again", [Move(ref, stone, None)], now)


def finish_interrupted(store: Store, *, but: Collection[str] = ()) -> bool:
    """Does the rest of the last operation where a kill left some of its refs moved and others not; whether it did.

    Not where it is about one of the refs `but`: whoever moves those goes by what they hold.
    """
    last = journal.last(store.beside)
    moves = [move for move in last.moves if move.old != move.new] if last else []
    if len(moves) < 2 or any(move.ref in but for move in moves):
        return False
    held = refs.read_all(store.path)
    left = [move for move in moves if held.get(move.ref) == move.old]
    done = [move for move in moves if held.get(move.ref) == move.new]
    if not left or not done or len(left) + len(done) < len(moves):
        return False
    with suppress(MovedError):  # it is just being done
        transaction.move_all(store.path, left)
    return True


def _perform_locked(store: Store, planned: Operation, held: Mapping[str, str]) -> Operation:
    moves = planned.moves
    troubles = {store.repo.read_problem(move.new) for move in moves if move.new is not None}
    if "damaged" in troubles:
        raise StoreError("a commit that it needs is damaged", "Nothing was changed. `sessgit verify` names the commit.")
    if "missing" in troubles:
        raise ConflictError("the data it needs was deleted for good by sessgit gc --prune", "Nothing was changed.")
    store.repo.flush()
    mark = packed_refs.journal_size(store.beside)
    written = journal.append(store.beside, planned)
    kept = [
        Move(layout.kept_ref(written.id, number), None, tip)
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
        transaction.move_all(store.path, [*kept, *steps])  # in this order: a kill leaves no tip that nothing keeps
    packed_refs.record_new_refs(store.path, {move.ref: move.new for move in moves if not move.old and move.new}, mark)
    if len(moves) > _MANY_MOVES:
        from sessgit.store import maintenance

        with locks.maintenance_lock(store.beside) as lock:
            if lock:
                maintenance.pack_refs(store.path, lock)
    return written


def list_operations(store: Store) -> list[ListedOperation]:
    """The operations, newest first, and how each stands; one that was the first step of another is told by that."""
    every = journal.read(store.beside)
    taken_back = set[str]()
    held = refs.read_all(store.path)
    later: dict[str, dict[str | None, None]] = {}
    again, steps = set[str](), set[str]()
    latest: dict[str, Operation] = {}
    branches = _tips_by_session(held)
    out = []
    for operation in reversed(every):
        if operation.id in steps:
            continue
        if operation.id in taken_back:
            standing: OperationState = "undone"
        elif _was_repeated_later(operation, latest):
            standing = "not done"
        else:
            took = all(_move_took_effect(store, move, held, branches, later, again) for move in operation.moves)
            standing = "done" if took else "not done"
        if standing == "done" and operation.undoes:
            taken_back.add(operation.undoes)
        if standing != "not done":
            steps.add(operation.completes)
            latest.update((move.ref, operation) for move in operation.moves)
            for move in operation.moves:
                found = later.setdefault(move.ref, {})
                found.pop(move.old, None)
                found[move.old] = None
                if move.new is None and move.old is not None and move.ref.startswith(_BRANCH_SPACES):
                    branches.setdefault(layout.session_of_ref(move.ref), []).append(move.old)
                if move.ref.startswith(layout.DELETED) and move.new is None:
                    again.add(move.ref.removeprefix(layout.DELETED))
        out.append(ListedOperation(operation, standing))
    return out


def find_operation(every: Sequence[ListedOperation], wanted: str) -> ListedOperation:
    """The operation whose id begins so; raises NotFoundError where there is none, or several."""
    fitting = [one for one in every if one.operation.id.startswith(wanted)]
    if len(fitting) != 1:
        what = f"“{wanted}” matches {len(fitting)} operations" if fitting else f"there is no operation “{wanted}”"
        raise NotFoundError(what, "`sessgit ops` lists the operations.")
    return fitting[0]


def _was_repeated_later(operation: Operation, latest: Mapping[str, Operation]) -> bool:
    """Whether it was interrupted and the very same was done after it; `latest` has the next one of each ref."""
    again = latest.get(operation.moves[0].ref) if operation.moves else None
    return again is not None and again.moves == operation.moves and again.command == operation.command


def _move_took_effect(
    store: Store, move: Move, held: Mapping[str, str], branches: Mapping[str, Sequence[str]],
    later: Mapping[str, dict[str | None, None]], again: Collection[str],
) -> bool:  # fmt: skip
    """Whether the ref holds what the move left there, or something that came of it, or a later operation found it.

    `later` is what later operations found in each ref, the next of them last. `again` are sessions that were recorded
    again later, after they had been deleted. What a rewind left behind came of it too: that is on another of the
    session's `branches`, also of those that were taken away later.
    """
    now, found = held.get(move.ref), later.get(move.ref, {})
    session = layout.session_of_ref(move.ref)
    if move.new is None and session in again:
        return True
    if now == move.new or move.new in found:
        return True
    if move.new is not None and layout.tombstone_ref(session) in held and not store.repo.has(move.new):
        return True  # of what a prune made final nobody can say more
    next_found = next(reversed(found)) if found else None
    sides = branches.get(session, ()) if move.ref.startswith(_BRANCH_SPACES) else ()
    tips = dict.fromkeys(tip for tip in (next_found, now, *sides) if tip is not None)
    if move.new is None:
        return False
    came = [tip for tip in tips if store.repo.is_ancestor(move.new, tip)]
    # A move back is not done as long as what it leads away from is there.
    if came and move.old is not None and store.repo.is_ancestor(move.new, move.old):
        came = [tip for tip in came if not store.repo.is_ancestor(move.old, tip)]
    return bool(came)


def _tips_by_session(held: Mapping[str, str]) -> dict[str, list[str]]:
    """The tips of all branches of each session, wherever they are."""
    found: dict[str, list[str]] = {}
    for ref, tip in held.items():
        if ref.startswith(_BRANCH_SPACES):
            found.setdefault(layout.session_of_ref(ref), []).append(tip)
    return found


def has_only_end_commits(store: Store, after: str | None, held: str | None) -> bool:
    """Whether nothing came since but the note that the agent has let go of the session."""
    if after is None or held is None or after == held:
        return after == held
    for commit in store.repo.first_parents(held):
        if commit.id == after:
            return True
        if store.message(commit.id).get("Event") != "end":
            return False
    return False


def _unreachable_tips(store: Store, moves: Sequence[Move]) -> Iterator[str]:
    """The tips that the moves leave without a ref that leads to them; nothing is kept of a tombstone."""
    kept = [move for move in moves if not move.ref.startswith(layout.DELETED)]
    new = {move.new for move in kept if move.new is not None}
    for old, on in {move.old: move.new for move in kept if move.old is not None}.items():
        # First the ref itself, which mostly went forward: of a thousand refs each is not held against all the others.
        if old in new or (on is not None and store.repo.is_ancestor(old, on)):
            continue
        if not any(store.repo.is_ancestor(old, tip) for tip in new):
            yield old
