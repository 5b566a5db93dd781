"""What a push sends, as a repository of its own that is there for as long as git talks.

git compares each ref that it is told by its name with every ref on both sides, which takes minutes for ten thousand.
What it is told by a pattern it looks up. So the refs of this repository are exactly those that go, under their names
there, and it borrows the objects and the settings of the store. The remote has a name of its own in it, which nobody
else's settings know: with `mirror` or `push` for all remotes of that name git would send more, and delete the rest.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import layout
from sessgit.store.files import private
from sessgit.store.layout import StorePaths
from sessgit.store.remote import incoming
from sessgit.store.remote.transport import run_git
from sessgit.store.transaction import Move

_PREFIX = "push-"
_FOLDER_INCLUDE = r"^includeif\.gitdir"
_COPIED_SETTINGS = ("proxy", "proxyauthmethod", "receivepack")
"""What may be said of a remote beside its URL: how it is reached, never what goes there."""
_INCLUDE = b"[include]\n\tpath = ../../config\n"
_STALE_SECONDS = 24 * 3600.0
"""Seconds after which no push goes on: a repository that is older was left by one that was killed."""


@contextmanager
def push_repository(
    store: Path, remote: str, url: str, env: Mapping[str, str], moves: Sequence[Move], held: Mapping[str, str]
) -> Iterator[Path]:
    """The repository from which `git push` moves these refs of the remote and no others; it is gone afterwards.

    The remote has the name of the repository's folder there.
    `held` are tracking refs of the remote as they are there: what git holds the remote's refs against. What the user's
    git is told for the store, it is told for this one. Raises StoreError where it cannot be written.
    """
    try:
        state = StorePaths(store).state
        delete_stale_folders(state)
        folder = Path(tempfile.mkdtemp(dir=state, prefix=_PREFIX))
    except OSError as error:
        raise _write_error(error) from error
    try:
        try:
            with private.files():
                _fill_repository(folder, moves, held)
                _write_config(store, folder, remote, url, env, moves)
        except OSError as error:
            raise _write_error(error) from error
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill_repository(folder: Path, moves: Sequence[Move], held: Mapping[str, str]) -> None:
    (folder / "refs").mkdir()
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "objects" / "info" / "alternates").write_text("../../../objects\n")
    (folder / "HEAD").write_text("ref: refs/heads/HEAD-stays-unborn\n")
    sent = {move.ref: move.new for move in moves if move.new}
    lines = (f"{oid} {ref}\n" for ref, oid in sorted({**sent, **held}.items()))
    (folder / "packed-refs").write_text("".join(lines))


def existing_objects(store: Path, oids: Collection[str]) -> set[str]:
    """Those of the objects that the store holds."""
    if not oids:
        return set()
    given = "".join(f"{oid}\n" for oid in sorted(oids)).encode()
    ended = run_git(store, ["cat-file", "--batch-check"], {}, given=given)
    rows = (line.split() for line in ended.out.decode("utf-8", "replace").splitlines())
    return {row[0] for row in rows if row[-1] != "missing"}


def _write_config(
    store: Path, folder: Path, remote: str, url: str, env: Mapping[str, str], moves: Sequence[Move]
) -> None:
    spaces = [space for space in layout.REF_SPACES if any(move.new and move.ref.startswith(space) for move in moves)]
    gone = [f":{move.ref}" for move in moves if not move.new]
    said = [("url", url), *(("fetch", spec) for spec in incoming.mirror_refspecs(remote))]
    said += [("push", spec) for spec in (*(f"{space}*:{space}*" for space in spaces), *gone)]
    entries = [f"remote.{folder.name}.{key}\n{value}".encode() for key, value in said]
    config = folder / "config"
    config.write_bytes(_INCLUDE)
    if run_git(store, ["config", "--get-regexp", _FOLDER_INCLUDE], env).code == 0:
        here, there = (_list_settings(path, env) for path in (store, folder))
        config.write_bytes(b"".join(_setting_text(entry) for entry in here if entry not in there) + _INCLUDE)
    above = f"remote.{remote}."
    for entry in _list_settings(folder, env):
        key, newline, value = entry.decode("utf-8", "surrogateescape").partition("\n")
        if key.startswith(above) and key.removeprefix(above) in _COPIED_SETTINGS:
            own = f"remote.{folder.name}.{key.removeprefix(above)}{newline}{value}"
            entries.append(own.encode("utf-8", "surrogateescape"))
    with config.open("ab") as file:
        file.writelines(map(_setting_text, entries))


def _list_settings(path: Path, env: Mapping[str, str]) -> list[bytes]:
    """What git goes by in a repository, from wherever: a key and its value each."""
    return [entry for entry in run_git(path, ["config", "--null", "--list"], env).out.split(b"\0") if entry]


def _setting_text(entry: bytes) -> bytes:
    """A key and its value, as git lists them, in the words of a file of settings."""
    key, equals, value = entry.partition(b"\n")
    section, _, name = key.rpartition(b".")
    above, dot, below = section.partition(b".")
    head = b'[%s "%s"]' % (above, _escape_value(below)) if dot else b"[%s]" % above
    return b"%s\n\t%s%s\n" % (head, name, b' = "%s"' % _escape_value(value) if equals else b"")


def _escape_value(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def delete_stale_folders(state: Path) -> None:
    """Deletes what pushes left that were killed."""
    for path in state.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - _STALE_SECONDS:
                shutil.rmtree(path)


def _write_error(error: OSError) -> StoreError:
    return StoreError(f"cannot write to the store: {error.strerror or error}", ROOM)
