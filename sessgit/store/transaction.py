"""Several refs moved at once: all of them or none.

pygit2 moves one ref at a time, so this is git's own transaction (git-update-ref(1), `--stdin`): it locks every ref,
checks every old value, and only then writes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sessgit.errors import ROOM, MovedError, StoreError
from sessgit.store import locks, refs
from sessgit.store.layout import StorePaths

MANY_MOVES = 1000
"""From this number on, moved refs are packed: each is a file of its own before, and every command reads them."""
_TRIES = 150
_WAIT = 0.02
_CONCURRENT_MOVE = re.compile("but expected|already exists|unable to resolve reference|reference is missing")
"""git's messages about a ref that does not hold its old value."""


class Move(NamedTuple):
    """A ref and the commits that it holds before and after; None is no ref."""

    ref: str
    old: str | None
    new: str | None


def move_all(store: Path, moves: Sequence[Move], *, durable: bool = True) -> None:
    """Move the refs in one transaction. Raises MovedError, with nothing moved, if one does not hold its old value.

    Another process that moves or packs a ref holds a lock file for a moment. If not `durable`, a power loss may undo
    the moves.
    """
    if not moves:
        return
    from sessgit.store import git  # most commands start no child process

    # Else git would first look for each commit's id among the refs, in seven places.
    settings = ["-c", "core.warnAmbiguousRefs=false", "-c", f"core.fsync={'' if durable else '-'}reference"]
    script = "".join(("start\n", *map(_update_line, moves), "prepare\n", "commit\n")).encode()
    for tries_left in reversed(range(_TRIES)):
        with locks.ref_move_lock(StorePaths(store)):
            code, _, message = git.call(store, [*settings, "update-ref", "--no-deref", "--stdin"], script)
        if not code:
            return
        now = refs.read_all(store)
        moved = [move for move in moves if now.get(move.ref) != move.old]
        if moved and (_CONCURRENT_MOVE.search(message) or any(now.get(move.ref) != move.new for move in moved)):
            raise MovedError(f"{moved[0].ref} was moved by someone else", "Try again.")
        if moved:
            raise StoreError(f"only some refs were moved: {message}", refs.move_error_hint(message, ROOM))
        locked = (".lock" in message or refs.NEW_PACKED in message) and not refs.is_denied(message)
        if not locked or not tries_left:
            hint = refs.LOCK_HINT if locked else refs.move_error_hint(message, ROOM)
            raise StoreError(f"cannot move the refs: {message}", hint)
        refs.delete_stale_locks(store, [move.ref for move in moves])
        time.sleep(_WAIT)


def _update_line(move: Move) -> str:
    if move.old is None:
        return f"create {move.ref} {move.new}\n"
    if move.new is None:
        return f"delete {move.ref} {move.old}\n"
    return f"update {move.ref} {move.new} {move.old}\n"
