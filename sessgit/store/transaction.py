"""Several refs moved at once: all of them or none.

libgit2's binding moves one ref at a time, so this is git's own transaction (git-update-ref(1), `--stdin`): it locks
every ref, checks every old value, and only then writes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sessgit.errors import ROOM, MovedError, StoreError
from sessgit.store import locks, refs
from sessgit.store.files import private
from sessgit.store.layout import StorePaths

_TRIES = 150
_WAIT = 0.02
_CONCURRENT_MOVE = re.compile("but expected|already exists|unable to resolve reference|reference is missing")
"""What git says of a ref that does not hold its old value."""


class Move(NamedTuple):
    """A ref and the commits that it holds before and after; None is no ref."""

    ref: str
    old: str | None
    new: str | None


def move_all(store: Path, moves: Sequence[Move], *, lasting: bool = True) -> None:
    """Moves the refs in one transaction; raises MovedError, with nothing moved, where one does not hold its old value.

    Who else is just moving one of them, or packing them, holds a lock file for a moment: that is waited for. Each ref
    is on the disk then; where not `lasting`, a machine that loses its power may forget it.
    """
    if not moves:
        return
    import subprocess

    from sessgit.store import git  # and what else a child process needs, which few commands do

    # Else git looks for each commit's id among the refs first, in seven places, and again for its old value.
    waits = f"core.fsync={'' if lasting else '-'}reference"  # what git does by itself differs by its version
    plain = ["-c", "core.warnAmbiguousRefs=false", "-c", waits]
    command = [git.find_git(), "--git-dir", str(store), *plain, "update-ref", "--no-deref", "--stdin"]
    script = "".join(("start\n", *map(_update_line, moves), "prepare\n", "commit\n")).encode()
    for tries_left in reversed(range(_TRIES)):
        try:
            with locks.ref_move_lock(StorePaths(store)), private.files():
                done = subprocess.run(command, input=script, env=git.env(), capture_output=True, cwd="/", check=False)
        except OSError as error:
            raise git.git_start_error(error) from error
        if done.returncode == 0:
            return
        now, said = refs.read_all(store), done.stderr.decode("utf-8", "replace").strip()
        moved = [move for move in moves if now.get(move.ref) != move.old]
        if moved and (_CONCURRENT_MOVE.search(said) or any(now.get(move.ref) != move.new for move in moved)):
            raise MovedError(f"{moved[0].ref} was moved by someone else", "Try again.")
        if moved:
            raise StoreError(f"only some refs were moved: {said}", refs.move_error_hint(said, ROOM))
        locked = (".lock" in said or refs.NEW_PACKED in said) and not refs.is_denied(said)
        if not locked or not tries_left:
            raise StoreError(
                f"cannot move the refs: {said}", refs.LOCK_HINT if locked else refs.move_error_hint(said, ROOM)
            )
        refs.delete_stale_locks(store, [move.ref for move in moves])
        time.sleep(_WAIT)


def check_git() -> None:
    """Raises StoreError where there is no git to move them."""
    from sessgit.store import git

    git.find_git()


def _update_line(move: Move) -> str:
    if move.old is None:
        return f"create {move.ref} {move.new}\n"
    if move.new is None:
        return f"delete {move.ref} {move.old}\n"
    return f"update {move.ref} {move.new} {move.old}\n"
