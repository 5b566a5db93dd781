"""All refs of a store, read from git's own files without loading a git library.

Reading commands ask at every start whether the index is level with the refs; loading libgit2 for that would cost
more than the command itself. The two places are git's: loose files under `refs/`, which win, and `packed-refs`
(gitrepository-layout(5)). Loose ones are read first, since packing writes the packed file before it deletes them.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.model import canonical
from sessgit.store import layout

_PACKED = re.compile(r"^([0-9a-f]{40}) (refs/[^\s]+)$", re.MULTILINE)
_PEELED = re.compile(r"^[0-9a-f]{40} (refs/tags/[^\s]+)\n\^([0-9a-f]{40})$", re.MULTILINE)
_HEX = re.compile(r"[0-9a-f]{40}")
_LOCK_SUFFIX = ".lock"
"""The end of the file in which git writes a ref before it takes its place; no ref may be named so."""
_STALE_SECONDS = 60.0
_STALE_SECONDS_ALONE = 2.0
PACKED = "packed-refs"
"""The file in which git keeps most refs."""
NEW_PACKED = f"{PACKED}.new"
"""What git writes before it takes the place of the packed refs."""
_LONGEST_REF_FILE = 1024
_DAMAGED_PACKED_REFS = re.compile(r"corrupted packed references|un(terminated|expected) line in .*packed-refs")
_PACKED_REFS_HINT = "packed-refs in the store is damaged: `sessgit doctor --fix` repairs it, and restores lost refs."
_READ_HINT = "`sessgit doctor` shows why."
_PERMISSION_DENIED = "permission denied"
_PERMISSION_HINT = "`sessgit doctor` shows what is not writable."
LOCK_HINT = "If a process was just killed, its lock is still there: try again in a minute."
"""The hint where a ref stays locked."""


def read_all(store: Path, prefix: str = "refs/") -> dict[str, str]:
    """Each ref whose name starts with `prefix` and the object it holds; what cannot be shown is none of ours."""
    found = {name: oid for name, oid in _loose_below(store, prefix) if oid}
    packed = _read_packed(store)
    for oid, name in _PACKED.findall(packed) if prefix.endswith("/") else _packed_with_prefix(packed, prefix):
        if name.startswith(prefix) and canonical.is_printable(name):
            found.setdefault(name, oid)
    return found


def refs_hash(store: Path) -> bytes:
    """A hash of all refs as they are stored: while it stays the same, no ref has moved. Cheaper than reading them."""
    loose = sorted(f"{name} {oid}\n" for name, oid in _loose_below(store, "refs/"))
    return hashlib.sha256("".join(loose).encode() + _read_packed(store).encode("utf-8", "replace")).digest()


def session_tips(store: Path, session: str, space: str = layout.HEADS) -> dict[str, str]:
    """The branches of one session, the head and its side branches, and their tips; archived ones in that space."""
    found = read_all(store, space + session)
    branches = {name.removeprefix(space): oid for name, oid in found.items()}
    return {branch: oid for branch, oid in branches.items() if layout.session_of(branch) == session}


def branches(store: Path, session: str | None = None) -> dict[str, tuple[str, bool]]:
    """The tip of each branch, or of those of one session, and whether it is archived; one that is live as well counts
    as live."""
    spaces = ((layout.ARCHIVE, True), (layout.HEADS, False))
    if session is not None:
        own = ((session_tips(store, session, space), archived) for space, archived in spaces)
        return {name: (tip, archived) for found, archived in own for name, tip in found.items()}
    every = read_all(store).items()  # once: of thousands of refs git has packed nearly all in one file
    return {
        ref[len(space) :]: (tip, archived) for space, archived in spaces for ref, tip in every if ref.startswith(space)
    }


def read(store: Path, name: str) -> str | None:
    """The object that one ref holds, or None."""
    loose = _read_loose(store / name)
    if loose:
        return loose
    return next((oid for oid, found in _packed_with_prefix(_read_packed(store), name) if found == name), None)


def tags(store: Path) -> dict[str, str]:
    """Each tag by its name and the object it leads to: of an annotated one the commit, where git has packed it."""
    found = {name: oid for name, oid in _loose_below(store, layout.TAGS) if oid}
    packed = _read_packed(store)
    for name, oid in [*_PEELED.findall(packed), *((name, oid) for oid, name in _PACKED.findall(packed))]:
        if name.startswith(layout.TAGS) and canonical.is_printable(name):
            found.setdefault(name, oid)
    return {name.removeprefix(layout.TAGS): oid for name, oid in found.items()}


def delete_stale_locks(store: Path, names: Iterable[str]) -> None:
    """Takes away the locks of refs that a killed process left: git holds one for a moment, and never a minute.

    Where no process of ours is moving refs, two seconds are enough: then it could only be somebody's own git.
    """
    from sessgit.store import locks

    with locks.no_ref_moves(layout.StorePaths(store)) as alone:
        stale = _STALE_SECONDS_ALONE if alone else _STALE_SECONDS
        for name in (*names, PACKED):
            is_ref = name == PACKED or name.startswith("refs/")
            _delete_stale_lock(store, f"{name}{_LOCK_SUFFIX}", stale if is_ref else _STALE_SECONDS)
        if not (store / f"{PACKED}{_LOCK_SUFFIX}").exists():  # who writes the new file holds that
            _delete_stale_lock(store, NEW_PACKED, stale)


def move_error_hint(said: str, otherwise: str) -> str:
    """What to do where git says that refs cannot be moved."""
    return (
        _PACKED_REFS_HINT if _DAMAGED_PACKED_REFS.search(said) else _PERMISSION_HINT if is_denied(said) else otherwise
    )


def is_denied(said: str) -> bool:
    """Whether git says that it may not write: then no lock is in its way, though it names the one it cannot make."""
    return _PERMISSION_DENIED in said.lower()


def _delete_stale_lock(store: Path, name: str, stale: float) -> None:
    lock, aside = store / name, store / f"stale.{os.getpid()}{_LOCK_SUFFIX}"
    with suppress(OSError):
        if _file_age(lock) < stale:
            return
        lock.rename(aside)
        if _file_age(aside) < stale:  # someone else was faster, and this is the lock of whoever came after them
            lock.hardlink_to(aside)
        aside.unlink()


def _file_age(path: Path) -> float:
    """Seconds since the file was written; one of the future is as old, since the clock was put back after it."""
    return abs(time.time() - path.stat().st_mtime)


def _loose_below(store: Path, prefix: str) -> Iterator[tuple[str, str | None]]:
    pending = [prefix.rpartition("/")[0]]
    while pending:
        parent = pending.pop()
        try:
            entries = list(os.scandir(f"{store}/{parent}"))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _read_error(error) from error
        for entry in entries:
            name = f"{parent}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                pending.append(name)
            elif name.startswith(prefix) and not name.endswith(_LOCK_SUFFIX) and canonical.is_printable(name):
                yield name, _read_loose(entry.path)


def _read_error(error: OSError) -> StoreError:
    where = f"{error.filename}: " if error.filename else ""
    return StoreError(f"cannot read the refs of the store: {where}{error.strerror or error}", _READ_HINT)


def is_plain_ref(path: Path) -> bool:
    """Whether the file of a ref holds an object's id."""
    return _read_loose(path) is not None


def _read_loose(path: Path | str) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - there may be thousands, and `Path` takes 4 x as long
            text = file.read(_LONGEST_REF_FILE).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if _HEX.fullmatch(text) else None


def _packed_with_prefix(packed: str, start: str) -> Iterator[tuple[str, str]]:
    """The packed refs whose names begin so, and what they hold: of ten thousand lines those of all other sessions are
    not read."""
    at = packed.find(f" {start}")
    while at >= 0:
        end = packed.index("\n", at)
        line = _PACKED.fullmatch(packed, packed.rfind("\n", 0, at) + 1, end)
        if line is not None:
            yield line[1], line[2]
        at = packed.find(f" {start}", end)


def _read_packed(store: Path) -> str:
    try:
        with open(f"{store}/{PACKED}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            text = file.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _read_error(error) from error
    return text[: text.rfind("\n") + 1]  # a line without its end was cut: its name may be half of one
