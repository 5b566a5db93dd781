"""What people's commands do to the refs: written down before it is done, and taken back.

A recording is no operation: nobody undoes what was said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sessgit.agents.claude import home
from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError
from sessgit.model import canonical
from sessgit.ops.files import endings
from sessgit.store import journal, layout, locks, refs, transaction
from sessgit.store.damage import packed
from sessgit.store.journal import Operation, Wrote
from sessgit.store.store import Store
from sessgit.store.transaction import Move

Standing = Literal["done", "undone", "not done"]

BACKGROUND = "background"
"""The command of an operation that nobody gave: it is undone where its id is named."""
PURGE = "purge"
"""The command of an operation that nobody can take back: what it took away is nowhere."""
_LOCK_WAIT = 10.0
_PLACES = (layout.HEADS, layout.ARCHIVE)
_MANY = 1000
"""So many refs that were moved are packed at once: each is a file of its own before, and every command reads them."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An operation and how it stands: `not done` is one that was interrupted, or found the refs moved."""

    operation: Operation
    standing: Standing


@dataclass(frozen=True, slots=True)
class Undone:
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


def perform(  # noqa: PLR0913, PLR0917 - what an operation is
    store: Store,
    command: str,
    summary: str,
    moves: Sequence[Move],
    now: float,
    files: Mapping[str, bytes] | None = None,
    undoes: str = "",
    *,
    wrote: Wrote | None = None,
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
    wrote = replace(wrote or Wrote(), files={**(wrote.files if wrote else {}), **proved})
    planned = Operation(canonical.rfc3339(now), command, summary, tuple(moves), wrote, undoes, completes)
    store.repo.hold()
    try:
        finish(store, but={move.ref for move in moves})
        return _performed(store, planned, held or {})
    finally:
        store.repo.release()


def finish(store: Store, *, but: Collection[str] = ()) -> bool:
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


def _performed(store: Store, planned: Operation, held: Mapping[str, str]) -> Operation:
    moves = planned.moves
    troubles = {store.repo.trouble(move.new) for move in moves if move.new is not None}
    if "damaged" in troubles:
        raise StoreError("a commit that it needs is damaged", "sessgit verify names it. Nothing was changed.")
    if "missing" in troubles:
        raise ConflictError(
            "what it needs is gone for good: sessgit gc --prune made that final", "Nothing was changed."
        )
    store.repo.settle()
    mark = packed.length(store.beside)
    written = journal.append(store.beside, planned)
    kept = [
        Move(layout.kept(written.id, number), None, tip)
        for number, tip in enumerate(_unreachable(store, moves), start=1)
        if not store.repo.trouble(tip)  # git keeps none that it cannot read
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
    packed.note_made(store.path, {move.ref: move.new for move in moves if not move.old and move.new}, mark)
    if len(moves) > _MANY:
        from sessgit.store import maintenance

        with locks.maintenance(store.beside) as lock:
            if lock:
                maintenance.pack_refs(store.path, lock)
    return written


def listed(store: Store) -> list[Listed]:
    """The operations, newest first, and how each stands; one that was the first step of another is told by that."""
    every = journal.read(store.beside)
    taken_back = set[str]()
    held = refs.read_all(store.path)
    later: dict[str, dict[str | None, None]] = {}
    again, steps = set[str](), set[str]()
    latest: dict[str, Operation] = {}
    branches = _branches(held)
    out = []
    for operation in reversed(every):
        if operation.id in steps:
            continue
        if operation.id in taken_back:
            standing: Standing = "undone"
        elif _was_done_later(operation, latest):
            standing = "not done"
        else:
            took = all(_took(store, move, held, branches, later, again) for move in operation.moves)
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
                if move.new is None and move.old is not None and move.ref.startswith(_PLACES):
                    branches.setdefault(layout.session_at(move.ref), []).append(move.old)
                if move.ref.startswith(layout.DELETED) and move.new is None:
                    again.add(move.ref.removeprefix(layout.DELETED))
        out.append(Listed(operation, standing))
    return out


def named(every: Sequence[Listed], wanted: str) -> Listed:
    """The operation whose id begins so; raises NotFoundError where there is none, or several."""
    fitting = [one for one in every if one.operation.id.startswith(wanted)]
    if len(fitting) != 1:
        what = f"“{wanted}” fits {len(fitting)} operations" if fitting else f"there is no operation “{wanted}”"
        raise NotFoundError(what, "sessgit ops lists them.")
    return fitting[0]


def undo(store: Store, wanted: str, config: Path, now: float, *, dry_run: bool = False) -> Undone:
    """Takes an operation back, by default the last one that stands and is no undo itself.

    Only while every ref still holds what the operation left there, and a file that it appended to ends with that:
    raises ConflictError where one has gone on since. Files that it wrote below `config`, the agent's folder, go where
    they are unchanged.
    """
    found = _wanted(store, wanted)
    if not found.wrote.appended and not found.wrote.cut:
        return _undo(store, found, config, now, dry_run=dry_run)
    session = layout.session_at(found.moves[0].ref)
    with locks.session(store.beside, session, _LOCK_WAIT) as held:
        if not held:
            raise StoreError(f"a recorder is at work on {session[:8]}", "Try again.")
        return _undo(store, found, config, now, session, dry_run=dry_run)


def _undo(store: Store, found: Operation, config: Path, now: float, session: str = "", *, dry_run: bool) -> Undone:
    """The same, of an operation; `session` is the one to whose file it appended, and then its lock is held."""
    held = refs.read_all(store.path)
    for move in found.moves:
        if not _only_ended(store, move.new, held.get(move.ref)) or _is_back(move, found, held):
            raise ConflictError(
                f"{_named(move.ref)} has gone on since “{found.summary}”", "Nothing was changed. sessgit ops lists all."
            )
    back = tuple(Move(move.ref, held.get(move.ref), move.old) for move in found.moves)
    unchanged, changed = _files(found, config)
    for path in unchanged:
        endings.check_closed(path.stem, config)
    ends = str(back[0].old), str(back[0].new)
    turned = endings.turns(store, found, config, *ends) if session else []
    cut = tuple(one.path for one in turned if one.data is None)
    appended = tuple(one.path for one in turned if one.data is not None)
    if dry_run:
        return Undone(found, None, back, unchanged, changed, cut, appended)
    if session:
        endings.check_closed(store.state(str(held.get(found.moves[0].ref))).agent_id, config)
    transaction.check()  # nothing is half done for want of git
    wrote = endings.do(store, found, turned, session, ends[1]) if session else None
    # The files before the refs: a restore brings them back, but one that outlived its session would be recorded anew.
    endings.take_away(unchanged, config)
    try:
        done = perform(store, "undo", f"undo: {found.summary}", back, now, undoes=found.id, wrote=wrote)
    except MovedError as error:
        raise ConflictError("a ref was moved just now", "Nothing was changed but files. Try again.") from error
    except StoreError as error:
        if unchanged or turned:
            hint = f"Nothing was changed but files: sessgit undo {found.id} does the rest."
            raise StoreError(str(error), hint) from error
        raise
    if session:
        endings.done(store, session)
    return Undone(found, done, back, unchanged, changed, cut, appended)


def _wanted(store: Store, wanted: str) -> Operation:
    every = listed(store)
    if not wanted:
        for one in every:
            if _is_next(one):
                _check_there(store, one.operation, every)
                return _undoable(one.operation)
        raise NotFoundError("there is nothing to undo", "sessgit ops lists what commands did.")
    found = named(every, wanted)
    if found.standing != "done":
        state = "was undone already" if found.standing == "undone" else "was never done"
        raise ConflictError(f"“{found.operation.summary}” {state}", "sessgit ops lists all.")
    return _undoable(found.operation)


def _is_next(one: Listed) -> bool:
    """Whether an undo that names no operation may mean this one."""
    return one.standing == "done" and not one.operation.undoes and one.operation.command != BACKGROUND


def _check_there(store: Store, found: Operation, every: Sequence[Listed]) -> None:
    """Raises ConflictError where what the operation took away was pruned, with the next one that can be taken back."""

    def is_there(one: Operation) -> bool:
        return all(move.old is None or store.repo.trouble(move.old) != "missing" for move in one.moves)

    if is_there(found):
        return
    held = refs.read_all(store.path)
    for one in (one.operation for one in every if _is_next(one) and one.operation.command != PURGE):
        if is_there(one) and all(_only_ended(store, move.new, held.get(move.ref)) for move in one.moves):
            hint = f"sessgit undo {one.id} takes back “{one.summary}”."
            break
    else:
        hint = "sessgit ops lists what commands did."
    raise ConflictError(
        f"“{found.summary}” cannot be undone any more: sessgit gc --prune made it final", f"Nothing was changed. {hint}"
    )


def _undoable(found: Operation) -> Operation:
    if found.command == PURGE:
        raise ConflictError(
            "a purge cannot be undone: what it took away is nowhere", "sessgit undo OP takes an earlier operation back."
        )
    return found


def _was_done_later(operation: Operation, latest: Mapping[str, Operation]) -> bool:
    """Whether it was interrupted and the very same was done after it; `latest` has the next one of each ref."""
    again = latest.get(operation.moves[0].ref) if operation.moves else None
    return again is not None and again.moves == operation.moves and again.command == operation.command


def _took(
    store: Store, move: Move, held: Mapping[str, str], branches: Mapping[str, Sequence[str]],
    later: Mapping[str, dict[str | None, None]], again: Collection[str],
) -> bool:  # fmt: skip
    """Whether the ref holds what the move left there, or something that came of it, or a later operation found it.

    `later` is what later operations found in each ref, the next of them last. `again` are sessions that were recorded
    again later, after they had been deleted. What a rewind left behind came of it too: that is on another of the
    session's `branches`, also of those that were taken away later.
    """
    now, found = held.get(move.ref), later.get(move.ref, {})
    session = layout.session_at(move.ref)
    if move.new is None and session in again:
        return True
    if now == move.new or move.new in found:
        return True
    if move.new is not None and layout.tombstone(session) in held and not store.repo.has(move.new):
        return True  # of what a prune made final nobody can say more
    next_found = next(reversed(found)) if found else None
    sides = branches.get(session, ()) if move.ref.startswith(_PLACES) else ()
    tips = dict.fromkeys(tip for tip in (next_found, now, *sides) if tip is not None)
    if move.new is None:
        return False
    came = [tip for tip in tips if store.repo.is_ancestor(move.new, tip)]
    # A move back is not done as long as what it leads away from is there.
    if came and move.old is not None and store.repo.is_ancestor(move.new, move.old):
        came = [tip for tip in came if not store.repo.is_ancestor(move.old, tip)]
    return bool(came)


def _branches(held: Mapping[str, str]) -> dict[str, list[str]]:
    """The tips of all branches of each session, wherever they are."""
    found: dict[str, list[str]] = {}
    for ref, tip in held.items():
        if ref.startswith(_PLACES):
            found.setdefault(layout.session_at(ref), []).append(tip)
    return found


def _only_ended(store: Store, after: str | None, held: str | None) -> bool:
    """Whether nothing came since but the note that the agent has let go of the session."""
    if after is None or held is None or after == held:
        return after == held
    for commit in store.repo.first_parents(held):
        if commit.id == after:
            return True
        if store.message(commit.id).get("Event") != "end":
            return False
    return False


def _is_back(move: Move, operation: Operation, held: Mapping[str, str]) -> bool:
    """Whether undoing a move would say that a session was deleted, and leave it there."""
    if not move.ref.startswith(layout.DELETED) or move.old is None:
        return False
    session = move.ref.removeprefix(layout.DELETED)
    places = {layout.head(session), layout.archived(session)} & held.keys()
    return not places <= {other.ref for other in operation.moves}


def _unreachable(store: Store, moves: Sequence[Move]) -> Iterator[str]:
    """The tips that the moves leave without a ref that leads to them; nothing is kept of a tombstone."""
    kept = [move for move in moves if not move.ref.startswith(layout.DELETED)]
    new = {move.new for move in kept if move.new is not None}
    for old, on in {move.old: move.new for move in kept if move.old is not None}.items():
        # First the ref itself, which mostly went forward: of a thousand refs each is not held against all the others.
        if old in new or (on is not None and store.repo.is_ancestor(old, on)):
            continue
        if not any(store.repo.is_ancestor(old, tip) for tip in new):
            yield old


def _files(operation: Operation, config: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that the operation wrote: those that are as it wrote them, and those that have changed."""
    unchanged, changed = list[Path](), list[Path]()
    for name, proof in operation.files.items():
        path = Path(name)
        if not home.is_inside(config, path):
            continue  # no command of ours wrote there
        try:
            same = not path.is_symlink() and hashlib.sha256(path.read_bytes()).hexdigest() == proof
        except OSError:
            continue
        (unchanged if same else changed).append(path)
    if any(path.match("projects/*/*.jsonl") and not path.name.startswith("agent-") for path in changed):
        unchanged.clear()  # a transcript that stays keeps what lies beside it
    return tuple(unchanged), tuple(changed)


def _named(ref: str) -> str:
    """The ref as a person knows it."""
    for space in (layout.HEADS, layout.ARCHIVE, layout.DELETED, layout.TAGS):
        if ref.startswith(space):
            name = ref.removeprefix(space)
            return f"the tag “{name}”" if space == layout.TAGS else name[:8]
    return ref
