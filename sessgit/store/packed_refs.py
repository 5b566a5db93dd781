"""Damage to refs, and a record of the refs that a store had.

git keeps most refs in one file. A power loss may truncate it: if that happens at the end of a line, git sees a store
with fewer refs. So all refs are recorded next to the repository before they are packed.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from sessgit.errors import ROOM, StoreError
from sessgit.store import journal, layout, private_files, refs
from sessgit.store.private_files import write_private

_LINE = re.compile(r"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+")
_RECORDED_LINE = re.compile(r"^([0-9a-f]{40}) ([0-9]{1,18}) (refs/[^\s]+)$", re.MULTILINE)
_TRIES, _WAIT = 20, 0.05
_RECORDED_SPACES = (*layout.REF_SPACES, layout.KEEP)


def record_refs(store: Path) -> None:
    """Record all refs durably, before git packs them. A recorded ref that is gone stays recorded until `forget_refs`,
    since it may be lost."""
    paths = layout.StorePaths(store)
    size = journal_size(paths)
    current = {name: (oid, size) for name, oid in _settled_refs(store).items() if name.startswith(_RECORDED_SPACES)}
    _write_record(paths.refs, {**recorded_refs(store), **current})


def _settled_refs(store: Path) -> dict[str, str]:
    """Return all refs, as soon as the last operation has deleted those that it deletes, after a second at the latest:
    it is in the journal before."""
    for _ in range(_TRIES):
        current, last = refs.read_all(store), journal.last(layout.StorePaths(store))
        if last is None or not any(move.new is None and current.get(move.ref) == move.old for move in last.moves):
            break
        time.sleep(_WAIT)
    return current


def record_new_refs(store: Path, new: Mapping[str, str], size: int) -> None:
    """Record refs that an operation has created: before they are packed, nothing else tells a lost one from one that
    never existed. `size` is the journal's size before the operation."""
    lines = "".join(f"{oid} {size} {ref}\n" for ref, oid in new.items() if ref.startswith(layout.REF_SPACES))
    with suppress(OSError), private_files.open_append(layout.StorePaths(store).refs) as file:
        private_files.write_all(file, lines.encode())


def journal_size(paths: layout.StorePaths) -> int:
    """Return the size of the journal of operations in bytes."""
    return paths.journal.stat().st_size if paths.journal.exists() else 0


def recorded_refs(store: Path) -> dict[str, tuple[str, int]]:
    """Return each recorded ref with the object that it held, and the journal's size then."""
    try:
        text = layout.StorePaths(store).refs.read_text("utf-8", "replace")
    except OSError:
        return {}
    return {name: (oid, int(size)) for oid, size, name in _RECORDED_LINE.findall(text)}


def forget_refs(store: Path, names: Iterable[str]) -> None:
    """Remove refs from the record."""
    known, gone = recorded_refs(store), set(names)
    if gone & known.keys():
        _write_record(layout.StorePaths(store).refs, {name: at for name, at in known.items() if name not in gone})


def _write_record(path: Path, recorded: Mapping[str, tuple[str, int]]) -> None:
    with suppress(StoreError):  # there is no room: the last record stays
        lines = (f"{oid} {size} {name}\n" for name, (oid, size) in sorted(recorded.items()))
        write_private(path, "".join(lines).encode(), durable=True)


def refs_without_id(store: Path) -> list[str]:
    """Return the refs whose file holds no object id, as after a power loss: git fails at them."""
    return sorted(name for name, oid in refs.loose_refs(store, "refs/") if oid is None)


def branches_without_tips(store: Path) -> set[str]:
    """Return the branches of which only the names are known."""
    current = refs.read_all(store)
    lost = [*refs_without_id(store), *(ref for ref in recorded_refs(store) if ref not in current)]
    return {ref.removeprefix(space) for ref in lost for space in layout.BRANCH_SPACES if ref.startswith(space)}


def quarantine_ref(store: Path, ref: str) -> None:
    """Move the file of a ref that holds no id to `state/damaged/`; a packed ref of that name counts again."""
    try:
        (store / ref).replace(_damaged_folder(store) / ref.replace("/", "_"))
    except OSError as error:
        raise StoreError(f"cannot move {ref}: {error.strerror or error}", ROOM) from error


def invalid_lines(store: Path) -> list[int]:
    """Return the numbers of the lines of `packed-refs` that are no refs, also of a last one without newline."""
    try:
        lines = (store / refs.PACKED).read_text("utf-8", "replace").split("\n")
    except OSError:
        return []
    invalid = [number for number, line in enumerate(lines[:-1], start=1) if not _LINE.fullmatch(line)]
    return [*invalid, len(lines)] if lines[-1] else invalid


def remove_invalid_lines(store: Path) -> None:
    """Remove the lines of `packed-refs` that are no refs, and keep a copy of it in `state/damaged/`.

    Raises StoreError if another process is writing it, or it cannot be written.
    """
    path = store / refs.PACKED

    def without_invalid(data: bytes) -> bytes:
        copy = _damaged_folder(store) / f"{refs.PACKED}.{hashlib.sha256(data).hexdigest()[:8]}"
        write_private(copy, data, durable=True)
        return _without_lines(data, invalid_lines(store))

    refs.delete_stale_locks(store, [])
    try:
        private_files.rewrite_locked(path, without_invalid)
    except FileExistsError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", refs.LOCK_HINT) from error
    except (OSError, StoreError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(f"cannot fix {path}: {reason}", ROOM) from error


def _damaged_folder(store: Path) -> Path:
    folder = layout.StorePaths(store).state / "damaged"
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
