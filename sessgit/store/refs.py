"""All refs of a store, read from git's own files without loading a git library, and damaged ones repaired.

Every command that reads compares the refs with the index when it starts; loading libgit2 for that would take longer
than the command itself. git has loose files under `refs/`, which take precedence, and `packed-refs`
(gitrepository-layout(5)). Loose files are read first, since packing writes the packed file before it deletes them.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.model import canonical
from sessgit.store import layout, locks, private_files
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

_PACKED = re.compile(r"^([0-9a-f]{40}) (refs/[^\s]+)$", re.MULTILINE)
_PEELED = re.compile(r"^[0-9a-f]{40} (refs/tags/[^\s]+)\n\^([0-9a-f]{40})$", re.MULTILINE)
_HEX = re.compile(r"[0-9a-f]{40}")
_LOCK_SUFFIX = ".lock"
"""The suffix of the file in which git writes a ref first; no ref may have it."""
_STALE_SECONDS = 60.0
_STALE_SECONDS_ALONE = 2.0
PACKED = "packed-refs"
"""The file in which git keeps most refs."""
NEW_PACKED = f"{PACKED}.new"
"""The file that git writes before it replaces the packed refs."""
_LONGEST_REF_FILE = 1024
_DAMAGED_PACKED_REFS = re.compile(r"corrupted packed references|un(terminated|expected) line in .*packed-refs")
_PACKED_REFS_HINT = "packed-refs in the store is damaged: `sessgit doctor --fix` repairs it, and restores lost refs."
_READ_HINT = "`sessgit doctor` shows why."
_PERMISSION_HINT = "`sessgit doctor` shows what is not writable."
LOCK_HINT = "If a process was just killed, its lock is still there: try again in a minute."
"""The hint where a ref stays locked."""


def read_all(store: Path, prefix: str = "refs/") -> dict[str, str]:
    """Return the object of each ref whose name starts with `prefix`, without names that cannot be printed."""
    oids = {name: oid for name, oid in loose_refs(store, prefix) if oid}
    packed = _read_packed(store)
    for oid, name in _PACKED.findall(packed) if prefix.endswith("/") else _packed_with_prefix(packed, prefix):
        if name.startswith(prefix) and canonical.is_printable(name):
            oids.setdefault(name, oid)
    return oids


def refs_hash(store: Path) -> bytes:
    """Return a hash of all refs as they are stored, which is cheaper than reading them: it changes if a ref moves."""
    loose = sorted(f"{name} {oid}\n" for name, oid in loose_refs(store, "refs/"))
    return hashlib.sha256("".join(loose).encode() + _read_packed(store).encode("utf-8", "replace")).digest()


def session_tips(store: Path, session: str, space: str = layout.HEADS) -> dict[str, str]:
    """Return the tips of one session's head and side branches; archived ones are in their own space."""
    branches = {name.removeprefix(space): oid for name, oid in read_all(store, space + session).items()}
    return {branch: oid for branch, oid in branches.items() if layout.session_of(branch) == session}


def branches(store: Path, session: str | None = None) -> dict[str, tuple[str, bool]]:
    """Return the tip of each branch, or of one session's, and whether it is archived; a live ref takes precedence."""
    spaces = ((layout.ARCHIVE, True), (layout.HEADS, False))
    if session is not None:
        own = ((session_tips(store, session, space), archived) for space, archived in spaces)
        return {name: (tip, archived) for tips, archived in own for name, tip in tips.items()}
    every = read_all(store).items()  # once for both spaces: nearly all refs are in one file
    return {
        ref[len(space) :]: (tip, archived) for space, archived in spaces for ref, tip in every if ref.startswith(space)
    }


def read(store: Path, name: str) -> str | None:
    """Return the object that one ref holds, or None."""
    loose = _read_loose(store / name)
    if loose:
        return loose
    return next((oid for oid, ref in _packed_with_prefix(_read_packed(store), name) if ref == name), None)


def session_head(store: Path, session: str) -> tuple[str, str] | None:
    """Return the ref of a session's head, live or archived, and its tip, or None."""
    heads = (layout.head_ref(session), layout.archive_ref(session))
    return next(((ref, tip) for ref in heads if (tip := read(store, ref))), None)


def is_damaged(store: Path, name: str) -> bool:
    """Return whether a ref has a file of its own that holds no object id."""
    path = store / name
    return path.is_file() and _read_loose(path) is None


def tags(store: Path) -> dict[str, str]:
    """Return the object that each tag leads to, by name: for an annotated tag the commit, if git has packed it."""
    targets = {name: oid for name, oid in loose_refs(store, layout.TAGS) if oid}
    packed = _read_packed(store)
    for name, oid in [*_PEELED.findall(packed), *((name, oid) for oid, name in _PACKED.findall(packed))]:
        if name.startswith(layout.TAGS) and canonical.is_printable(name):
            targets.setdefault(name, oid)
    return {name.removeprefix(layout.TAGS): oid for name, oid in targets.items()}


def deleted_sessions(store: Path) -> set[str]:
    """Return the sessions that were deleted here."""
    return {ref.removeprefix(layout.DELETED) for ref in read_all(store, layout.DELETED)}


def delete_stale_locks(store: Path, names: Iterable[str]) -> None:
    """Delete the lock files that a killed process left, which git holds for a moment, never for a minute.

    If no sessgit process is moving refs, two seconds are enough: then it could only be a git run by the user.
    """
    with locks.no_ref_moves(StorePaths(store)) as alone:
        stale = _STALE_SECONDS_ALONE if alone else _STALE_SECONDS
        for name in (*names, PACKED):
            is_ref = name == PACKED or name.startswith("refs/")
            _delete_stale_lock(store, f"{name}{_LOCK_SUFFIX}", stale if is_ref else _STALE_SECONDS)
        if not (store / f"{PACKED}{_LOCK_SUFFIX}").exists():  # the writer of the new file holds it
            _delete_stale_lock(store, NEW_PACKED, stale)


def move_error_hint(message: str, otherwise: str) -> str:
    """Return the hint for git's message that refs cannot be moved."""
    if _DAMAGED_PACKED_REFS.search(message):
        return _PACKED_REFS_HINT
    return _PERMISSION_HINT if is_denied(message) else otherwise


def is_denied(message: str) -> bool:
    """Return whether git may not write: then its message names a lock that it cannot create."""
    return "permission denied" in message.lower()


def _delete_stale_lock(store: Path, name: str, stale: float) -> None:
    lock, moved = store / name, store / f"stale.{os.getpid()}{_LOCK_SUFFIX}"
    with suppress(OSError):
        if _file_age(lock) < stale:
            return
        lock.rename(moved)
        if _file_age(moved) < stale:  # another process was faster, and this is the lock of a third one
            lock.hardlink_to(moved)
        moved.unlink()


def _file_age(path: Path) -> float:
    """Return the seconds since the file was written; a time in the future means that the clock was set back."""
    return abs(time.time() - path.stat().st_mtime)


def loose_refs(store: Path, prefix: str) -> Iterator[tuple[str, str | None]]:
    """Yield each ref with a file of its own whose name starts with `prefix`, and the object that it holds, or None."""
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


def _read_loose(path: Path | str) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - there may be thousands, and `Path` takes 4 x as long
            text = file.read(_LONGEST_REF_FILE).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if _HEX.fullmatch(text) else None


def _packed_with_prefix(packed: str, start: str) -> Iterator[tuple[str, str]]:
    """Yield the objects and names of packed refs whose names start so, without parsing ten thousand other lines."""
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
    return text[: text.rfind("\n") + 1]  # a line without newline is truncated: its name may be half of one


# Damage
#
# A power loss may leave the file of a ref empty, and truncate `packed-refs`.

_LINE = re.compile(r"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+")


def refs_without_id(store: Path) -> list[str]:
    """Return the refs whose file holds no object id, as after a power loss: git fails at them."""
    return sorted(name for name, oid in loose_refs(store, "refs/") if oid is None)


def quarantine_ref(store: Path, ref: str) -> None:
    """Move the file of a ref that holds no id to `state/damaged/`; a packed ref of that name counts again."""
    try:
        (store / ref).replace(_damaged_folder(store) / ref.replace("/", "_"))
    except OSError as error:
        raise StoreError(f"cannot move {ref}: {error.strerror or error}", ROOM) from error


def invalid_lines(store: Path) -> list[int]:
    """Return the numbers of the lines of `packed-refs` that are no refs, also of a last one without newline."""
    try:
        lines = (store / PACKED).read_text("utf-8", "replace").split("\n")
    except OSError:
        return []
    invalid = [number for number, line in enumerate(lines[:-1], start=1) if not _LINE.fullmatch(line)]
    return [*invalid, len(lines)] if lines[-1] else invalid


def remove_invalid_lines(store: Path) -> None:
    """Remove the lines of `packed-refs` that are no refs, and keep a copy of it in `state/damaged/`.

    Raises StoreError if another process is writing it, or it cannot be written.
    """
    path = store / PACKED

    def without_invalid(data: bytes) -> bytes:
        copy = _damaged_folder(store) / f"{PACKED}.{hashlib.sha256(data).hexdigest()[:8]}"
        write_private(copy, data, durable=True)
        return _without_lines(data, invalid_lines(store))

    delete_stale_locks(store, [])
    try:
        private_files.rewrite_locked(path, without_invalid)
    except FileExistsError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", LOCK_HINT) from error
    except (OSError, StoreError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(f"cannot fix {path}: {reason}", ROOM) from error


def _damaged_folder(store: Path) -> Path:
    folder = StorePaths(store).state / "damaged"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _without_lines(data: bytes, invalid: Collection[int]) -> bytes:
    """Return the file without these lines; the commit of an annotated tag goes with the tag."""
    kept, keeps_ref = [], False
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.startswith(b"^"):
            keeps_ref = bool(line) and number not in invalid
        if keeps_ref and number not in invalid:
            kept.append(line + b"\n")
    return b"".join(kept)
