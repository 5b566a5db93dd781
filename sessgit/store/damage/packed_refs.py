"""The one file in which git keeps most refs: what is wrong in it, and what stood there, noted beside it.

A loss of power may cut it. Where that happens at the end of a line, git sees a store with fewer refs.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.model import canonical
from sessgit.store import layout, refs
from sessgit.store.store import write_private

_LINE = re.compile(r"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+")
_RECORDED_LINE = re.compile(r"^([0-9a-f]{40}) ([0-9]{1,18}) (refs/[^\s]+)$", re.MULTILINE)
_RECORDED_SPACES = (*layout.REF_SPACES, layout.KEEP)


def record_refs(store: Path) -> None:
    """Notes all refs beside the repository, on the disk: git is about to put them into one file, which a loss of power
    may cut. One that was noted before and is gone stays noted, until `forget_refs`: it may be lost."""
    beside = layout.StorePaths(store)
    size = journal_size(beside)
    held = {name: (oid, size) for name, oid in refs.read_all(store).items() if name.startswith(_RECORDED_SPACES)}
    _write_record(beside.refs, {**recorded_refs(store), **held})


def record_new_refs(store: Path, made: Mapping[str, str], mark: int) -> None:
    """Notes refs that an operation has just made: those that were never packed are each in a file of its own, and
    nothing else tells one that was lost from one that never was. `mark` is how long the journal was before it."""
    lines = "".join(f"{oid} {mark} {ref}\n" for ref, oid in made.items() if ref.startswith(layout.REF_SPACES))
    with suppress(OSError):  # a memory aid: the operation is done
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(layout.StorePaths(store).refs, flags, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(lines.encode())


def journal_size(beside: layout.StorePaths) -> int:
    """How long the journal of operations is, in bytes."""
    return beside.journal.stat().st_size if beside.journal.exists() else 0


def refs_without_id(store: Path) -> list[str]:
    """The refs whose own file holds no object's id, as after a loss of power: git stumbles over them."""
    found = []
    for folder, _, names in os.walk(store / "refs"):
        paths = (Path(folder) / name for name in names if not name.endswith(".lock"))
        found += [path.relative_to(store).as_posix() for path in paths if not refs.is_plain_ref(path)]
    return sorted(filter(canonical.is_printable, found))


def branches_without_tips(store: Path) -> set[str]:
    """The branches that are known by their names alone: what their refs held is lost."""
    spaces = (layout.HEADS, layout.ARCHIVE)
    held = refs.read_all(store)
    every = [*refs_without_id(store), *(ref for ref in recorded_refs(store) if ref not in held)]
    return {ref.removeprefix(space) for ref in every for space in spaces if ref.startswith(space)}


def quarantine_ref(store: Path, ref: str) -> None:
    """Moves the file of a ref that holds no id to `state/damaged/`; what was packed under that name counts again."""
    aside = layout.StorePaths(store).state / "damaged"
    try:
        aside.mkdir(mode=0o700, exist_ok=True)
        (store / ref).replace(aside / ref.replace("/", "_"))
    except OSError as error:
        raise StoreError(f"cannot move {ref}: {error.strerror or error}", ROOM) from error


def recorded_refs(store: Path) -> dict[str, tuple[str, int]]:
    """Each ref that was noted, the object that it held, and how long the journal of operations was then."""
    try:
        text = layout.StorePaths(store).refs.read_text("utf-8", "replace")
    except OSError:
        return {}
    return {name: (oid, int(size)) for oid, size, name in _RECORDED_LINE.findall(text)}


def forget_refs(store: Path, names: Iterable[str]) -> None:
    """Notes no longer that there were these refs."""
    known, gone = recorded_refs(store), set(names)
    if gone & known.keys():
        left = {name: at for name, at in known.items() if name not in gone}
        _write_record(layout.StorePaths(store).refs, left)


def _write_record(path: Path, found: Mapping[str, tuple[str, int]]) -> None:
    with suppress(StoreError):  # there is no room: what was noted before stays
        lines = (f"{oid} {size} {name}\n" for name, (oid, size) in sorted(found.items()))
        write_private(path, "".join(lines).encode(), lasting=True)


def invalid_lines(store: Path) -> list[int]:
    """The numbers of the lines of `packed-refs` that are no ref; the last one is none where its end is missing."""
    try:
        lines = (store / refs.PACKED).read_text("utf-8", "replace").split("\n")
    except OSError:
        return []
    wrong = [number for number, line in enumerate(lines[:-1], start=1) if not _LINE.fullmatch(line)]
    return [*wrong, len(lines)] if lines[-1] else wrong


def remove_invalid_lines(store: Path) -> None:
    """Takes the lines out of `packed-refs` that are no refs, and keeps it as it was under `state/damaged/`.

    Raises StoreError where somebody else is just writing it, or it cannot be written.
    """
    path, lock = store / refs.PACKED, store / f"{refs.PACKED}.lock"
    aside = layout.StorePaths(store).state / "damaged"
    refs.delete_stale_locks(store, [])
    try:
        aside.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}", refs.LOCK_HINT) from error
    try:
        with os.fdopen(handle, "wb") as file:
            data = path.read_bytes()
            wrong = set(invalid_lines(store))
            write_private(aside / f"{refs.PACKED}.{hashlib.sha256(data).hexdigest()[:8]}", data, lasting=True)
            file.writelines(_without_lines(data.split(b"\n"), wrong))
            file.flush()
            os.fsync(file.fileno())
        lock.replace(path)
    except (OSError, StoreError) as error:
        lock.unlink(missing_ok=True)
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(f"cannot fix {path}: {why}", ROOM) from error


def _without_lines(lines: Sequence[bytes], wrong: Collection[int]) -> Iterator[bytes]:
    """The lines but for those; what a tag leads to goes with the line of the tag."""
    is_kept = False
    for number, line in enumerate(lines, start=1):
        if not line.startswith(b"^"):
            is_kept = bool(line) and number not in wrong
        if is_kept and number not in wrong:
            yield line + b"\n"
