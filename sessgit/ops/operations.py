"""What people's commands do to the refs: written down before it is done, and taken back.

A recording is no operation: nobody undoes what was said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sessgit.errors import ConflictError, MovedError, NotFoundError
from sessgit.model import canonical
from sessgit.store import journal, layout, locks, maintenance, refs, transaction
from sessgit.store.journal import Operation
from sessgit.store.store import Store
from sessgit.store.transaction import Move

Standing = Literal["done", "undone", "not done"]

BACKGROUND = "background"
"""The command of an operation that nobody gave: it is undone where its id is named."""
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

    `removed` are files that went, `left` those that stay, since they have changed.
    """

    operation: Operation
    undo: Operation | None
    moves: tuple[Move, ...]
    removed: tuple[Path, ...] = ()
    left: tuple[Path, ...] = ()


def perform(  # noqa: PLR0913, PLR0917 - what an operation is
    store: Store,
    command: str,
    summary: str,
    moves: Sequence[Move],
    now: float,
    files: Mapping[str, bytes] | None = None,
    undoes: str = "",
) -> Operation:
    """Writes the operation down and moves the refs, all or none; raises MovedError where one was moved meanwhile.

    `files` are those that the command writes next, by path with their bytes. A tip that nothing would reach any more
    stays under `refs/keep/`. Raises ConflictError where what a ref shall hold was pruned meanwhile.
    """
    store.repo.hold()
    try:
        return _performed(store, command, summary, moves, now, files or {}, undoes)
    finally:
        store.repo.release()


def _performed(  # noqa: PLR0913, PLR0917 - what an operation is
    store: Store, command: str, summary: str, moves: Sequence[Move], now: float, files: Mapping[str, bytes], undoes: str
) -> Operation:
    if not all(move.new is None or store.repo.has(move.new) for move in moves):
        raise ConflictError(
            "what it needs is gone for good: sessgit gc --prune made that final", "Nothing was changed."
        )
    proved = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    planned = Operation(canonical.rfc3339(now), command, summary, tuple(moves), proved, undoes)
    written = journal.append(store.beside, planned)
    kept = [
        Move(layout.kept(written.id, number), None, tip)
        for number, tip in enumerate(_unreachable(store, moves), start=1)
    ]
    if len(moves) == 1 and not kept:
        store.repo.move(*moves[0])
    else:
        transaction.move_all(store.path, [*moves, *kept])
    if len(moves) > _MANY:
        with locks.maintenance(store.beside) as held:
            if held:
                maintenance.pack_refs(store.path, held)
    return written


def listed(store: Store) -> list[Listed]:
    """The operations, newest first, and how each stands."""
    every = journal.read(store.beside)
    taken_back = _taken_back(every)
    held = refs.read_all(store.path)
    later: dict[str, list[str | None]] = {}
    again = set[str]()
    out = []
    for operation in reversed(every):
        if operation.id in taken_back:
            standing: Standing = "undone"
        else:
            standing = "done" if all(_took(store, move, held, later, again) for move in operation.moves) else "not done"
        if standing != "not done":
            for move in operation.moves:
                later.setdefault(move.ref, []).append(move.old)
                if move.ref.startswith(layout.DELETED) and move.new is None:
                    again.add(move.ref.removeprefix(layout.DELETED))
        out.append(Listed(operation, standing))
    return out


def undo(store: Store, wanted: str, config: Path, now: float, *, dry_run: bool = False) -> Undone:
    """Takes an operation back, by default the last one that stands and is no undo itself.

    Only while every ref still holds what the operation left there: raises ConflictError where one has gone on since.
    Files that it wrote below `config`, the agent's folder, go where they are unchanged.
    """
    found = _wanted(store, wanted)
    held = refs.read_all(store.path)
    for move in found.moves:
        if not _only_ended(store, move.new, held.get(move.ref)) or _is_back(move, found, held):
            raise ConflictError(
                f"{_named(move.ref)} has gone on since “{found.summary}”", "Nothing was changed. sessgit ops lists all."
            )
    back = tuple(Move(move.ref, held.get(move.ref), move.old) for move in found.moves)
    unchanged, changed = _files(found, config)
    if dry_run:
        return Undone(found, None, back, unchanged, changed)
    # The files first: a restore brings them back, but one that outlived its session would be recorded anew.
    for path in unchanged:
        path.unlink(missing_ok=True)
    try:
        done = perform(store, "undo", f"undo: {found.summary}", back, now, undoes=found.id)
    except MovedError as error:
        raise ConflictError("a ref was moved just now", "Nothing was changed but files. Try again.") from error
    return Undone(found, done, back, unchanged, changed)


def _wanted(store: Store, wanted: str) -> Operation:
    every = listed(store)
    if not wanted:
        for one in every:
            if one.standing == "done" and not one.operation.undoes and one.operation.command != BACKGROUND:
                return one.operation
        raise NotFoundError("there is nothing to undo", "sessgit ops lists what commands did.")
    fitting = [one for one in every if one.operation.id.startswith(wanted)]
    if len(fitting) != 1:
        what = f"“{wanted}” fits {len(fitting)} operations" if fitting else f"there is no operation “{wanted}”"
        raise NotFoundError(what, "sessgit ops lists them.")
    if fitting[0].standing != "done":
        state = "was undone already" if fitting[0].standing == "undone" else "was never done"
        raise ConflictError(f"“{fitting[0].operation.summary}” {state}", "sessgit ops lists all.")
    return fitting[0].operation


def _taken_back(every: Sequence[Operation]) -> set[str]:
    """The operations that an undo took back which was not undone itself."""
    taken: set[str] = set()
    for operation in reversed(every):
        if operation.undoes and operation.id not in taken:
            taken.add(operation.undoes)
    return taken


def _took(
    store: Store, move: Move, held: Mapping[str, str], later: Mapping[str, Sequence[str | None]], again: Collection[str]
) -> bool:
    """Whether the ref holds what the move left there, or something that came of it, or a later operation found it.

    `again` are sessions that were recorded again later, after they had been deleted.
    """
    now = held.get(move.ref)
    if move.new is None and layout.session_of(move.ref.split("/", 2)[-1]) in again:
        return True
    if now == move.new or move.new in later.get(move.ref, ()):
        return True
    tips = [tip for tip in (now, *later.get(move.ref, ())) if tip is not None]
    return move.new is not None and any(store.repo.is_ancestor(move.new, tip) for tip in tips)


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
    for old in dict.fromkeys(move.old for move in kept if move.old is not None):
        if old not in new and not any(store.repo.is_ancestor(old, tip) for tip in new):
            yield old


def _files(operation: Operation, config: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that the operation wrote: those that are as it wrote them, and those that have changed."""
    unchanged, changed = list[Path](), list[Path]()
    for name, proof in operation.files.items():
        path = Path(name)
        if not path.is_relative_to(config) or ".." in path.parts:
            continue  # no command of ours wrote there
        try:
            same = not path.is_symlink() and hashlib.sha256(path.read_bytes()).hexdigest() == proof
        except OSError:
            continue
        (unchanged if same else changed).append(path)
    return tuple(unchanged), tuple(changed)


def _named(ref: str) -> str:
    """The ref as a person knows it."""
    for space in (layout.HEADS, layout.ARCHIVE, layout.DELETED, layout.TAGS):
        if ref.startswith(space):
            name = ref.removeprefix(space)
            return f"the tag “{name}”" if space == layout.TAGS else name[:8]
    return ref
