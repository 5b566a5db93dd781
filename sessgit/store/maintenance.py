"""Packing the store with git, pruning it, and deleting what interrupted work left.

libgit2's own packing takes fifteen times as long and leaves the loose objects behind. `git repack -d` deletes the old
packs before the name of the new one is on the disk, so a power loss may take both. Here the new pack is on the disk
under its name first; then the packs that it replaces are written down, and deleted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO, Final, NamedTuple

from sessgit.errors import ROOM, StoreError
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import git, locks, objects, operations, private_files, refs, tempdirs
from sessgit.store.layout import StorePaths
from sessgit.store.pack_file import index_ids, is_whole_index, pack_matches_index

_LEAST_ARRIVED = 64 << 10
"""Bytes of imported packs from which packing them is worth the wait."""
STALE_SECONDS = 600.0
"""Seconds after which no process writes a temporary file any more."""
_PACK = ("pack-objects", "--progress", "--delta-base-offset", "--honor-pack-keep", "--non-empty")
_BEST_COMPRESSION = ("-c", "pack.compression=9")
_WINDOW_2 = (*_BEST_COMPRESSION, "-c", "core.bigFileThreshold=64k", *_PACK, "--no-reuse-delta", "--window=2")
"""For imported packs, which are compressed well but have no deltas. Without `--no-reuse-delta` git would take
two objects of one pack that have no delta for already compared."""
_WINDOW_10 = (*_BEST_COMPRESSION, "-c", "core.bigFileThreshold=512k", *_PACK, "--no-reuse-delta", "--window=10")
"""For the background repack: 4 to 8 % smaller, for three to four times the work."""
FULL_SEARCH: Final = ("--no-reuse-delta", "--no-reuse-object")
"""Look for better deltas and compression of every object, also of those that a background repack packed."""
_LIST_ALL_OBJECTS = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
_PACK_SUFFIXES = (".idx", ".rev", ".bitmap", ".pack")
"""A pack's files in the order of their deletion: nothing reads a pack without an index, which can be rebuilt."""
_PACK_NAME = re.compile(r"(?:\.tmp-[0-9]+-)?pack-[0-9a-f]{40}", re.ASCII)
"""`git repack` renames a pack to its last name in a second step, and git reads it before that too."""
_TEMPORARY_PREFIXES = ("tmp_", ".tmp-")
NO_LIKENESS: Final[Mapping[str, int]] = MappingProxyType({})
_OID = re.compile(r"[0-9a-f]{40}", re.ASCII)
_COUNT_OBJECTS_LINE = re.compile(r"^(?:count|in-pack): ([0-9]+)$", re.MULTILINE)


@frozen
class ObjectCount:
    """The number of objects in a store, and the bytes of all files that hold them, unfinished ones too."""

    objects: int
    size: int


def pack_store(store: Path, lock: int = 0, *, full: bool = False, progress: Progress = no_progress) -> bool:
    """Pack loose objects if that is due, or everything if `full`; return whether anything was packed.

    `lock` is the descriptor of the maintenance lock. Raises StoreError if git is missing or fails, which damages
    nothing.
    """
    if not full and not is_packing_due(store):
        return False
    if full:
        pack_everything(store, lock, progress=progress)
        StorePaths(store).repacking.unlink(missing_ok=True)
    else:
        with _packing(store):
            _replace_packs(store, (), [*_PACK, "--all", "--unpacked", "--incremental"], [lock])
        if count_packs(store) >= MOST_PACKS:
            _join_small_packs(store, lock)
    _note_unreachable_loose(store)
    operations.pack_refs(store, lock)
    return True


def pack_everything(
    store: Path, lock: int = 0, search: Sequence[str] = FULL_SEARCH, progress: Progress = no_progress
) -> None:
    """Make one pack of all objects, reachable or not; `search` are git's options for finding deltas."""
    with _packing(store):
        _pack_by_history(store, _usable_indexes(store), None, [*_BEST_COMPRESSION, *_PACK, *search], lock, progress)


def pack_arrived(
    store: Path, names: Collection[str], lock: int, progress: Progress, likeness: Mapping[str, int] = NO_LIKENESS
) -> None:
    """Make one pack of the named packs, which an import added, and of loose objects; of all objects if that is less
    than twice as much. Small packs wait until there are more. `likeness` is that of texts, as `Pack` has it. Raises
    StoreError as `pack_store` does."""
    if _packs_size(store, names) < _LEAST_ARRIVED and not is_packing_due(store):
        _note_packs(store, names)
        operations.record_refs(store)  # else a branch that was deleted before would not be missed
        return
    with _packing(store):
        old = _usable_indexes(store)
        new = [index for index in old if index.stem in names]
        only: set[str] | None = None
        if _index_size(old) >= 3 * _index_size(new):
            old, only = new, set(_loose_ids(store)) | _ids(new)
        made = _pack_by_history(store, old, only, _WINDOW_2, lock, progress, likeness)
    _note_packs(store, made)
    _note_unreachable_loose(store)
    operations.pack_refs(store, lock)


def repack_imported(store: Path, lock: int) -> None:
    """Pack again, about as small as a full packing, what imports packed quickly. Raises StoreError as `pack_store`
    does."""
    names = noted_packs(store)
    if names:
        with _packing(store):
            old = [index for index in _usable_indexes(store) if index.stem in names]
            _pack_by_history(store, old, _ids(old), _WINDOW_10, lock)
    StorePaths(store).repacking.unlink(missing_ok=True)


def prune(store: Path, locks: Sequence[int]) -> None:
    """Delete every unreachable object. The descriptors are those of the maintenance lock and the prune lock."""
    with _packing(store, exclusive=True):
        _replace_packs(store, _usable_indexes(store), [*_PACK, "--all"], locks)
    git.run(store, ["prune", "--expire=now"], locks)


def count_objects(store: Path) -> ObjectCount:
    """Return how many objects there are, and their size on the disk."""
    counts = _COUNT_OBJECTS_LINE.findall(git.run(store, ["count-objects", "-v"]))
    folders = os.walk(store / "objects")
    size = sum(_file_size(Path(folder, name)) for folder, _, names in folders for name in names)
    return ObjectCount(sum(map(int, counts)), size)


# When packing is due
#
# A loose object takes blocks of the disk and has no delta: a turn takes six times its size in the agent's file. In a
# pack it takes a sixth, or a third if turns are small. So loose objects may take three times the size of the packs,
# which is less than the files that those were recorded from. To pack a hundred objects costs some 30 ms of CPU.

MOST_OBJECTS = 2_000
MOST_PACKS = 20
"""From this number on packs are joined: each is searched for every object."""
_LEAST_LOOSE_BYTES = 128 << 10
_LEAST_RATIO = 3
_BLOCK_SIZE = 512


class LooseObjects(NamedTuple):
    """How many loose objects there are, and their bytes on the disk."""

    objects: int
    size: int


def count_loose(store: Path) -> LooseObjects:
    """Count the loose objects."""
    objects = size = 0
    for folder in (store / "objects").glob("[0-9a-f][0-9a-f]"):
        with suppress(OSError):  # packing deleted it meanwhile
            for entry in os.scandir(folder):
                with suppress(OSError):  # it was packed meanwhile
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_SIZE
                    objects += 1
    return LooseObjects(objects, size)


def is_packing_due(store: Path) -> bool:
    """Return whether packing would make the store much smaller: what the last packing left loose does not count."""
    loose = count_loose(store)
    try:
        left = LooseObjects(*map(int, _loose_note(store).read_text("ascii").split()))
    except (OSError, ValueError, TypeError):
        left = LooseObjects(0, 0)
    if loose.objects - left.objects >= MOST_OBJECTS or count_packs(store) >= MOST_PACKS:
        return True
    return loose.size - left.size > max(_LEAST_LOOSE_BYTES, _LEAST_RATIO * _packed_size(store))


def count_packs(store: Path) -> int:
    """Return the number of packs."""
    return sum(1 for _ in (store / "objects" / "pack").glob("*.idx"))


def _note_unreachable_loose(store: Path) -> None:
    with suppress(StoreError):
        private_files.write_private(_loose_note(store), b"%d %d\n" % count_loose(store))


def _loose_note(store: Path) -> Path:
    return StorePaths(store).state / "loose"


def _packed_size(store: Path) -> int:
    return sum(map(_file_size, (store / "objects" / "pack").glob("*.pack")))


# The background repack
#
# `state/repacking` names the packs that imports made quickly, one on a line, until they are packed again. After a kill,
# the next import or recorder starts another process.

LEAST_REPACK_BYTES = 1 << 20
"""Bytes of packs for which a background repack is started."""
_INHERITED_ENV = ("HOME", "PATH", "LANG", "TMPDIR")
_DETACH_SCRIPT = '"$@" &'
"""The shell ends at once, so that the process is not a child that the caller must wait for."""


def noted_packs(store: Path) -> set[str]:
    """Return the names of existing packs that wait for the background repack."""
    try:
        names = StorePaths(store).repacking.read_text("ascii", "replace").split("\n")
    except OSError:
        return set()
    return {name for name in names if _PACK_NAME.fullmatch(name) and _pack_path(store, name).exists()}


def is_repack_due(store: Path) -> bool:
    """Return whether enough packs wait for the background repack."""
    return _packs_size(store, noted_packs(store)) >= LEAST_REPACK_BYTES


def _note_packs(store: Path, names: Iterable[str]) -> None:
    with suppress(OSError), private_files.open_append(StorePaths(store).repacking) as file:
        private_files.write_all(file, "".join(f"{name}\n" for name in names).encode("ascii"))


def _packs_size(store: Path, names: Iterable[str]) -> int:
    """Return the bytes of these packs, or 0 if one of them is gone, since the store is being packed."""
    try:
        return sum(_pack_path(store, name).stat().st_size for name in names)
    except OSError:
        return 0


def start_repack(store: Path, env: Mapping[str, str]) -> bool:
    """Start a background repack if it is due, with only some variables of `env`; return whether it was started."""
    if not is_repack_due(store):
        return False
    try:
        command = [sys.executable, "-P", "-m", "sessgit.recorder.packer", str(store.absolute())]
        path = os.pathsep.join(filter(None, sys.path))
        subprocess.run(
            ["/bin/sh", "-c", _DETACH_SCRIPT, "sh", *command], cwd="/", check=True, start_new_session=True,
            env={key: env[key] for key in _INHERITED_ENV if key in env} | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):  # the store is larger, and whole
        return False
    return True


def _pack_path(store: Path, name: str) -> Path:
    return store / "objects" / "pack" / f"{name}.pack"


# Leftovers


def delete_leftovers(store: Path, now: float) -> int:
    """Delete what interrupted work left, and return the number of files and folders. The caller holds the maintenance
    lock.

    What a killed packing left goes at once, other files only when no process writes them any more, and temporary
    folders when no process holds their lock.
    """
    count = delete_unfinished(store) + sum(map(_delete_file, leftovers(store, now)))
    StorePaths(store).packing.unlink(missing_ok=True)
    count += objects.delete_stale_folders(store) + tempdirs.delete_stale_folders()
    return count + tempdirs.delete_stale_folders(StorePaths(store).state)


def leftovers(store: Path, now: float) -> list[Path]:
    """Return the files of interrupted work that no process writes any more: unfinished objects and packs, locks of
    refs, temporary files, and what keeps a fetched pack until refs lead to it."""
    paths = [*_unfinished_files(store), *(store / "objects" / "pack").glob("*.keep")]
    for folder, _, names in os.walk(store / "refs"):
        paths += (Path(folder, name) for name in names if name.endswith(".lock"))
    paths += (store / name for name in (f"{refs.PACKED}.lock", refs.NEW_PACKED, "config.lock", "HEAD.lock"))
    for pattern in ("state/.*.tmp", "spool/*.tmp", ".*.tmp", ".hook.*", "stale.*.lock", "_git2_*"):
        paths += store.glob(pattern)
    # A time in the future was written before the clock was set back.
    return [path for path in paths if (time := _modified_time(path)) and abs(now - time) > STALE_SECONDS]


def delete_all_leftovers(store: Path) -> None:
    """Delete all unfinished objects and packs, and what keeps packs. The caller holds the maintenance lock and the
    prune lock."""
    for path in [*_unfinished_files(store), *(store / "objects" / "pack").glob("*.keep")]:
        _delete_file(path)
    objects.delete_stale_folders(store)


def delete_unfinished(store: Path, *, exclusive: bool = False) -> int:
    """Delete the unfinished packs of a killed packing, and those that it had replaced; return the number of files.

    A fetch gives its unfinished packs the same names: they stay as long as another process writes objects, unless the
    caller is `exclusive`.
    """
    begun = _modified_time(StorePaths(store).packing)
    if begun is None:
        return 0
    with nullcontext(enter_result=True) if exclusive else locks.no_writes(StorePaths(store)) as is_alone:
        packs = [path for path in _unfinished_files(store) if is_alone and path.parent.name == "pack"]
        new = [path for path in packs if (time := _modified_time(path)) is not None and time >= begun]
        return _delete_marked(store) + sum(map(_delete_file, new))


def _unfinished_files(store: Path) -> Iterator[Path]:
    """Yield the files that were to become objects or packs."""
    for folder, _, names in os.walk(store / "objects"):
        paths = (Path(folder, name) for name in names if name.startswith(_TEMPORARY_PREFIXES))
        # A whole pack may be the only place of its objects.
        yield from (path for path in paths if not _has_index(path))


# Packs by git


@contextmanager
def _packing(store: Path, *, exclusive: bool = False) -> Iterator[None]:
    """Keep a mark while the context lasts, which names the packs to be deleted, one on a line: after a kill it stays.

    If packing fails, its files are deleted, since the disk may be full. `exclusive` says that no other process writes
    objects.
    """
    mark = StorePaths(store).packing
    delete_unfinished(store, exclusive=exclusive)
    try:
        mark.touch(0o600)
        yield
    except (StoreError, OSError) as error:
        delete_unfinished(store, exclusive=exclusive)
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot pack the store: {error}", ROOM) from error
    mark.unlink(missing_ok=True)


def _pack_by_history(  # noqa: PLR0913, PLR0917 - what is packed, and how
    store: Path,
    old: Collection[Path],
    only: set[str] | None,
    command: Sequence[str],
    lock: int,
    progress: Progress = no_progress,
    likeness: Mapping[str, int] = NO_LIKENESS,
) -> list[str]:
    """Make a pack of all objects, or of those of `only`, in the order of the history, and delete the old packs."""
    with TemporaryFile(dir=store) as wanted, TemporaryFile(dir=store) as listed:
        git.run(store, REV_LIST, [lock], stdout=listed)
        listed.seek(0)
        named = pack_objects_lines(listed, likeness)
        wanted.writelines(line for line in named if only is None or line[:40].decode("ascii") in only)
        wanted.flush()
        if only is None:  # an object that is listed with a name keeps it
            git.run(store, _LIST_ALL_OBJECTS, [lock], stdout=wanted)
        else:
            _write_ids(wanted, only)
        wanted.seek(0)
        return _replace_packs(store, old, command, [lock], wanted, progress)


def _join_small_packs(store: Path, lock: int) -> None:
    """Join so many small packs that each of the others has at least twice the objects of all smaller ones."""
    with _packing(store), TemporaryFile(dir=store) as wanted:
        small, total = list[Path](), 0
        for index in sorted(_usable_indexes(store), key=lambda path: (path.stat().st_size, path)):
            size = _index_size([index])
            if len(small) > 1 and size >= 2 * total:
                break
            small.append(index)
            total += size
            _write_ids(wanted, index_ids(index.read_bytes()))
        wanted.seek(0)
        _replace_packs(store, small, _PACK, [lock], wanted)


def _replace_packs(
    store: Path,
    old: Collection[Path],
    command: Sequence[str],
    locks: Sequence[int],
    stdin: IO[bytes] | None = None,
    progress: Progress = no_progress,
) -> list[str]:
    """Make packs, then delete the old ones and the loose objects in packs; return the names of the new packs."""
    folder = store / "objects" / "pack"
    made = [f"pack-{name}" for name in git.pack_objects(store, [*command, f"{folder}/pack"], locks, stdin, progress)]
    private_files.sync(folder)
    replaced = sorted({path.stem for path in old}.difference(made))
    StorePaths(store).packing.write_text("".join(f"{name}\n" for name in replaced), "ascii")
    _delete_marked(store)
    git.run(store, ["prune-packed", "--quiet"], locks)
    return made


def _delete_marked(store: Path) -> int:
    """Delete the packs that the mark names: their objects are in another one, or are pruned."""
    with suppress(OSError):
        names = StorePaths(store).packing.read_text("ascii", "replace").split("\n")[:-1]
        packs = [_pack_path(store, name) for name in names if _PACK_NAME.fullmatch(name)]
        return sum(_delete_file(pack.with_suffix(suffix)) for pack in packs for suffix in _PACK_SUFFIXES)
    return 0


def _usable_indexes(store: Path) -> list[Path]:
    """Return the indexes of the packs that git reads, except those that a fetch keeps. Any other pack may be the only
    place of its objects."""
    return [
        path
        for path in (store / "objects" / "pack").glob("*.idx")
        if _has_index(path) and not path.with_suffix(".keep").exists()
        if is_whole_index(index := path.read_bytes()) and pack_matches_index(path.with_suffix(".pack"), index)
    ]


def _has_index(path: Path) -> bool:
    """Return whether a file belongs to a pack that has its index, whatever its name."""
    return _PACK_NAME.fullmatch(path.stem) is not None and all(
        path.with_suffix(end).exists() for end in (".pack", ".idx")
    )


def _index_size(indexes: Iterable[Path]) -> int:
    """Return a measure of the number of objects in packs: an index has as many bytes for each."""
    return sum(index.stat().st_size for index in indexes)


def _ids(indexes: Iterable[Path]) -> set[str]:
    return {oid for index in indexes for oid in index_ids(index.read_bytes())}


def _loose_ids(store: Path) -> Iterator[str]:
    for folder, _, names in os.walk(store / "objects"):
        oids = (Path(folder).name + name for name in names)
        yield from filter(_OID.fullmatch, oids)


def _write_ids(file: IO[bytes], oids: Iterable[str]) -> None:
    file.writelines(b"%s\n" % oid.encode("ascii") for oid in oids)


def _delete_file(path: Path) -> bool:
    """Delete a file, and return whether that succeeded."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _modified_time(path: Path) -> float | None:
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def _file_size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # it was packed meanwhile
        return 0


# The order in which git looks for deltas
#
# git compares an object with those of its kind whose names end alike, larger ones first (`pack_name_hash` in
# pack-objects.h). In a store the turn folders, states and cells of all sessions have the same names, so objects of the
# same size, each of another session, would be neighbors: of a hundred sessions no folder would be compared with the one
# that it grew from. So what lies that high in a commit's tree gets its line of history as part of its name. Texts do
# not: the same file may be read in any session. Right after an import, texts with common lines get the same name, so
# that a short search finds the right ones; a longer one finds most of them by their files' names.

REV_LIST: Final = (
    "rev-list", "--all", "--objects", "--in-commit-order", "--topo-order", "--parents", "--left-right",
)  # fmt: skip
"""Lists each commit behind an arrow with its parents, then the objects that no commit before it had, with paths."""
_SIDE_MARKERS = b"<>"
_DEEP_LEVEL = 3
"""Number of slashes in the path of a file directly in a turn's folder: `turns/0000/000001/cells.jsonl`."""


def pack_objects_lines(listed: Iterable[bytes], likeness: Mapping[str, int] = NO_LIKENESS) -> Iterator[bytes]:
    """Yield the lines for `git pack-objects`, from what `REV_LIST` lists."""
    lines: dict[bytes, bytes] = {}
    count, line = 0, b""
    for entry in listed:
        oid, _, path = entry.rstrip(b"\n").partition(b" ")
        if oid[:1] in _SIDE_MARKERS:
            commit, parents = oid[1:], path.split(b" ")
            known = lines.pop(commit, None)
            if known is None:
                count += 1
            line = known or b"%d" % count
            if parents[0]:
                lines.setdefault(parents[0], line)
            yield commit + b"\n"
        elif path.count(b"/") > _DEEP_LEVEL:
            alike = likeness.get(oid.decode("ascii"))
            yield oid + b" " + (b"%08x" % alike if alike else path) + b"\n"
        else:
            yield oid + b" " + path.rpartition(b"/")[2] + b"." + line + b"\n"
