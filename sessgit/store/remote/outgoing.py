"""What a push sends, as a repository of its own that is there for as long as git talks.

git compares each ref that it is told by its name with every ref on both sides, which takes minutes for ten thousand.
What it is told by a pattern it looks up. So the refs of this repository are exactly those that go, under their names
there, and it borrows the objects and the settings of the store.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import layout
from sessgit.store.layout import Beside
from sessgit.store.remote.transport import run
from sessgit.store.transaction import Move

_PREFIX = "push-"
_BY_FOLDER = r"^includeif\.gitdir"
_STALE = 24 * 3600.0
"""Seconds after which no push goes on: a repository that is older was left by one that was killed."""


@contextmanager
def repository(
    store: Path, remote: str, env: Mapping[str, str], moves: Sequence[Move], held: Mapping[str, str]
) -> Iterator[Path]:
    """The repository from which `git push` moves these refs of the remote and no others; it is gone afterwards.

    `held` are tracking refs of the remote as they are there: what git holds the remote's refs against. What the user's
    git is told for the store, it is told for this one. Raises StoreError where it cannot be written.
    """
    try:
        state = Beside(store).state
        _sweep(state)
        folder = Path(tempfile.mkdtemp(dir=state, prefix=_PREFIX))
    except OSError as error:
        raise _unwritten(error) from error
    try:
        try:
            _fill(folder, moves, held)
            _configure(store, folder, remote, env, moves)
        except OSError as error:
            raise _unwritten(error) from error
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, moves: Sequence[Move], held: Mapping[str, str]) -> None:
    (folder / "refs").mkdir()
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "objects" / "info" / "alternates").write_text("../../../objects\n")
    (folder / "HEAD").write_text("ref: refs/heads/HEAD-stays-unborn\n")
    sent = {move.ref: move.new for move in moves if move.new}
    lines = (f"{oid} {ref}\n" for ref, oid in sorted({**sent, **held}.items()))
    (folder / "packed-refs").write_text("".join(lines))


def _configure(store: Path, folder: Path, remote: str, env: Mapping[str, str], moves: Sequence[Move]) -> None:
    spaces = [space for space in layout.SPACES if any(move.new and move.ref.startswith(space) for move in moves)]
    gone = [f":{move.ref}" for move in moves if not move.new]
    specs = "".join(f"\tpush = {spec}\n" for spec in (*(f"{space}*:{space}*" for space in spaces), *gone))
    text = f'[include]\n\tpath = ../../config\n[remote "{remote}"]\n{specs}'.encode()
    config = folder / "config"
    config.write_bytes(text)
    if run(store, ["config", "--get-regexp", _BY_FOLDER], env).code == 0:
        here, there = (run(path, ["config", "--null", "--list"], env).out.split(b"\0") for path in (store, folder))
        config.write_bytes(b"".join(_setting(entry) for entry in here if entry not in there) + text)


def _setting(entry: bytes) -> bytes:
    """A key and its value, as git lists them, in the words of a file of settings."""
    key, equals, value = entry.partition(b"\n")
    section, _, name = key.rpartition(b".")
    above, dot, below = section.partition(b".")
    head = b'[%s "%s"]' % (above, _escaped(below)) if dot else b"[%s]" % above
    return b"%s\n\t%s%s\n" % (head, name, b' = "%s"' % _escaped(value) if equals else b"")


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _sweep(state: Path) -> None:
    for path in state.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - _STALE:
                shutil.rmtree(path)


def _unwritten(error: OSError) -> StoreError:
    return StoreError(f"cannot write to the store: {error}", ROOM)
