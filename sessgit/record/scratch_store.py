"""A temporary store whose new objects may then be moved into another one, or dropped.

It shares the objects of the other one, and writes new ones into a folder of its own. So a command can show exactly what
it would do, and do it in one step.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit.errors import ROOM, ConflictError, StoreError
from sessgit.store import refs, tempdirs
from sessgit.store import store as stores
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store


@contextmanager
def scratch_store(other: Path | None) -> Iterator[Store]:
    """Yield a store with all refs and objects of the `other` one, which is only read, or an empty one; delete it at the
    end."""
    with tempdirs.make_folder("sessgit-") as folder:
        path = folder / "store"
        stores.create_store(path)
        if other is not None:
            _share_objects(path, other)
        yield Store(path)


def take_over(scratch: Store, into: Store) -> None:
    """Move all objects that were written in the scratch store into the other one; no ref is moved.

    The caller keeps other processes from pruning them before refs lead to them. Raises ConflictError if a value was
    purged from the other store meanwhile, which must not come back.
    """
    if _read_purge_list(scratch) != _read_purge_list(into):
        raise ConflictError("a value was just purged", "Nothing was changed. Try again.")
    try:
        for folder in sorted((scratch.path / "objects").glob("[0-9a-f][0-9a-f]")):
            target = into.path / "objects" / folder.name
            target.mkdir(mode=0o700, exist_ok=True)
            there = {path.name for path in target.iterdir()}
            for path in list(folder.iterdir()):
                if path.name not in there:
                    _move_object(path, target / path.name)
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error


def _move_object(source: Path, target: Path) -> None:
    """Move an object; to another file system it is copied, under a name that is none of an object at first."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = target.with_name(f"tmp_obj_{os.getpid()}")
        shutil.copyfile(source, part)
        part.chmod(0o400)
        part.replace(target)


def pack_refs(scratch: Store) -> None:
    """Move the refs of a scratch store into one file, which is read faster than many."""
    _write_packed_refs(scratch.path, scratch.path)
    shutil.rmtree(scratch.path / "refs")
    (scratch.path / "refs" / "heads").mkdir(parents=True)


def _write_packed_refs(path: Path, other: Path) -> None:
    every = sorted(refs.read_all(other).items())
    (path / "packed-refs").write_text("".join(f"{oid} {ref}\n" for ref, oid in every))


def _read_purge_list(store: Store) -> bytes:
    try:
        return store.paths.forbidden.read_bytes()
    except FileNotFoundError:
        return b""


def _share_objects(path: Path, other: Path) -> None:
    """Share the objects, refs, key and purged values of the other store with a new one."""
    alternates = path / "objects" / "info" / "alternates"
    try:
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_bytes(os.fsencode(other.absolute() / "objects") + b"\n")
        _write_packed_refs(path, other)
        own, there = StorePaths(path), StorePaths(other)
        shutil.copyfile(there.key, own.key)
        if there.forbidden.exists():  # what was purged must not come back
            shutil.copyfile(there.forbidden, own.forbidden)
    except OSError as error:
        said = f"cannot read the store at {other}: {error.strerror or error}"
        raise StoreError(said, "`sessgit doctor` shows why.") from error
    _copy_index(StorePaths(other), StorePaths(path))


def _copy_index(other: StorePaths, own: StorePaths) -> None:
    """Copy the index if all of it is in one file: then only what is new is read. Else it is rebuilt from the refs."""
    log = other.index.with_name(f"{other.index.name}-wal")
    with suppress(OSError):
        if not log.exists() or not log.stat().st_size:
            shutil.copyfile(other.index, own.index)
