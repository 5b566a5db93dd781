"""Packs made by git, which take the places of what was there.

First the new pack is on the disk with its name; then what it replaces is written down, and goes. So it is here and not
left to `git repack -d`, which deletes before the name of the new pack is on the disk, so that a loss of power may take
both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from sessgit.errors import ROOM, StoreError
from sessgit.model.progress import Progress, no_progress
from sessgit.store import git, locks
from sessgit.store.files import durable_write
from sessgit.store.layout import StorePaths
from sessgit.store.packing import delta_order
from sessgit.store.packing.pack_file import index_ids, is_whole_index, pack_matches_index

FULL_SEARCH: Final = ("--no-reuse-delta", "--no-reuse-object")
"""Nothing is taken over: what packings in the background made is made better."""
_QUICK_SEARCH = ("--no-reuse-delta", "--window=2")
"""For what has just come in, which `pack.py` compressed well but without deltas. Each object is compared with two
others in place of 10. That deltas are not taken over is how git is told to look for any: of two objects in one pack
that have none it thinks that it has looked before."""
_SMALL_THRESHOLD = ("-c", "core.bigFileThreshold=64k")
"""Larger ones are compared with none."""
_WIDE_SEARCH = ("--no-reuse-delta", "--window=10")
_MEDIUM_THRESHOLD = ("-c", "core.bigFileThreshold=512k")
"""For the packing in the background: 4 to 8 % smaller, for three to four times the work."""
_BEST_COMPRESSION = ("-c", "pack.compression=9")
_PACK = ("pack-objects", "--progress", "--delta-base-offset", "--honor-pack-keep", "--non-empty")
_LIST_ALL_OBJECTS = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
_PACK_SUFFIXES = (".idx", ".rev", ".bitmap", ".pack")
"""A pack's files in the order in which they go: one without an index nobody reads, and an index can be made anew."""
_NAME = re.compile(r"(?:\.tmp-[0-9]+-)?pack-[0-9a-f]{40}", re.ASCII)
"""`git repack` gives a pack its last name in a second step, and git reads it as any other before that."""
_TEMPORARY_PREFIXES = ("tmp_", ".tmp-")
_HEX = 40
_OID = re.compile(r"[0-9a-f]{40}", re.ASCII)


def pack_everything(
    store: Path, lock: int = 0, search: Sequence[str] = FULL_SEARCH, progress: Progress = no_progress
) -> None:
    """One pack of all that is there, whether a ref leads to it or not; `search` says how git looks for what is alike.

    `git repack -a -d -f -F` does that too, but compares what has nothing in common (`delta_order.py`).
    """
    with _deletion_mark(store), TemporaryFile(dir=store) as wanted:
        others = _usable_indexes(store)
        _list_objects(store, lock, wanted)
        git.run(store, _LIST_ALL_OBJECTS, [lock], told=wanted)  # what is named already keeps its name
        wanted.seek(0)
        _replace_packs(store, others, [*_BEST_COMPRESSION, *_PACK, *search], [lock], wanted, progress)


def pack_arrived(store: Path, names: Collection[str], lock: int = 0, progress: Progress = no_progress) -> list[str]:
    """One pack of the packs of these names, which have just come in, and of what is loose; of all that is there, where
    that is less than twice as much. Returns the names of the packs that were made."""
    with _deletion_mark(store), TemporaryFile(dir=store) as wanted:
        every = _usable_indexes(store)
        new = [index for index in every if index.stem in names]
        if _index_size(every) < 3 * _index_size(new):
            new, among = every, None
        else:
            among = set(_loose_ids(store)).union(*(index_ids(index.read_bytes()) for index in new))
        _list_objects(store, lock, wanted, among)
        if among is None:
            git.run(store, _LIST_ALL_OBJECTS, [lock], told=wanted)
        else:
            wanted.writelines(b"%s\n" % oid.encode("ascii") for oid in among)
        wanted.seek(0)
        return _replace_packs(
            store, new, [*_BEST_COMPRESSION, *_SMALL_THRESHOLD, *_PACK, *_QUICK_SEARCH], [lock], wanted, progress
        )


def repack_with_better_deltas(store: Path, names: Collection[str], lock: int) -> None:
    """One pack of the packs of these names, which `pack_arrived` made, with the smaller deltas that a wider window
    finds."""
    with _deletion_mark(store), TemporaryFile(dir=store) as wanted:
        old = [index for index in _usable_indexes(store) if index.stem in names]
        among = set[str]().union(*(index_ids(index.read_bytes()) for index in old))
        _list_objects(store, lock, wanted, among)
        wanted.writelines(b"%s\n" % oid.encode("ascii") for oid in among)
        wanted.seek(0)
        _replace_packs(store, old, [*_BEST_COMPRESSION, *_MEDIUM_THRESHOLD, *_PACK, *_WIDE_SEARCH], [lock], wanted)


def pack_loose(store: Path, lock: int = 0) -> None:
    """A pack more, of the loose objects to which refs lead."""
    with _deletion_mark(store):
        _replace_packs(store, (), [*_PACK, "--all", "--unpacked", "--incremental"], [lock])


def join_small_packs(store: Path, lock: int = 0) -> None:
    """Makes many packs few: one of the small ones, so many that each one that stays has at least twice the objects of
    all that are smaller."""
    with _deletion_mark(store), TemporaryFile(dir=store) as wanted:
        some, total = list[Path](), 0
        for index in sorted(_usable_indexes(store), key=lambda path: (path.stat().st_size, path)):
            size = _index_size([index])
            if len(some) > 1 and size >= 2 * total:
                break
            some.append(index)
            total += size
            wanted.writelines(b"%s\n" % oid.encode("ascii") for oid in index_ids(index.read_bytes()))
        wanted.seek(0)
        _replace_packs(store, some, _PACK, [lock], wanted)


def pack_reachable(store: Path, locks: Sequence[int]) -> None:
    """One pack of all to which refs lead; what is in other packs alone is gone. The caller keeps others from writing
    objects."""
    with _deletion_mark(store, alone=True):
        _replace_packs(store, _usable_indexes(store), [*_PACK, "--all"], locks)


def delete_unfinished(store: Path, *, alone: bool = False) -> int:
    """Deletes the unfinished packs of a packing that did not come to its end, and what it had replaced, as its mark
    says; returns how many files.

    A fetch calls what it has not finished just so: while anybody writes objects, the unfinished ones stay, unless the
    caller is `alone`. Whoever sweeps later takes them away.
    """
    begun = modified_time(StorePaths(store).packing)
    if begun is None:
        return 0
    with nullcontext(enter_result=True) if alone else locks.no_writes(StorePaths(store)) as is_alone:
        packs = [path for path in unfinished_files(store) if is_alone and path.parent.name == "pack"]
        late = [path for path in packs if (when := modified_time(path)) is not None and when >= begun]
        return _delete_marked(store) + sum(map(delete_file, late))


def unfinished_files(store: Path) -> Iterator[Path]:
    """What will be an object or a pack once somebody ends it."""
    for folder, _, names in os.walk(store / "objects"):
        begun = (Path(folder) / name for name in names if name.startswith(_TEMPORARY_PREFIXES))
        # What is in a whole pack may be nowhere else by now.
        yield from (path for path in begun if not _has_index(path))


def delete_file(path: Path) -> bool:
    """Whether a file is deleted now and was there before."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def modified_time(path: Path) -> float | None:
    """When a file was written last, in seconds since 1970, or None where there is none."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def _list_objects(store: Path, lock: int, wanted: IO[bytes], among: Container[str] | None = None) -> None:
    """Writes all objects to which refs lead, or those of them that are `among` some, with the names by which git finds
    what they are like."""
    with TemporaryFile(dir=store) as listed:
        git.run(store, delta_order.REV_LIST, [lock], told=listed)
        listed.seek(0)
        named = delta_order.pack_objects_lines(listed)
        wanted.writelines(line for line in named if among is None or line[:_HEX].decode("ascii") in among)
        wanted.flush()


def _loose_ids(store: Path) -> Iterator[str]:
    """The ids of all loose objects."""
    for folder, _, names in os.walk(store / "objects"):
        start = Path(folder).name
        yield from (start + name for name in names if _OID.fullmatch(start + name))


def _index_size(indexes: Iterable[Path]) -> int:
    """How many objects packs have, in bytes of their indexes, which have as many for each."""
    return sum(index.stat().st_size for index in indexes)


@contextmanager
def _deletion_mark(store: Path, *, alone: bool = False) -> Iterator[None]:
    """A file that stays if this process is killed while it packs: it names what must still go, one pack on a line.
    Where packing fails, it takes no room: the disk may be full. `alone` says that nobody else writes objects."""
    mark = StorePaths(store).packing
    delete_unfinished(store, alone=alone)
    try:
        mark.touch(0o600)
        yield
    except (StoreError, OSError) as error:
        delete_unfinished(store, alone=alone)
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot pack the store: {error}", ROOM) from error
    mark.unlink(missing_ok=True)


def _replace_packs(
    store: Path,
    others: Collection[Path],
    command: Sequence[str],
    locks: Sequence[int],
    given: IO[bytes] | None = None,
    progress: Progress = no_progress,
) -> list[str]:
    """Makes a pack, and then takes the others away, and the loose objects that are in one. Returns the names of the
    packs that were made."""
    folder = store / "objects" / "pack"
    hashes = git.pack_objects(store, [*command, str(folder / "pack")], locks, given, progress)
    made = [f"pack-{name}" for name in hashes]
    durable_write.sync(folder)
    left = sorted({path.stem for path in others}.difference(made))
    StorePaths(store).packing.write_text("".join(f"{name}\n" for name in left), "ascii")
    _delete_marked(store)
    git.run(store, ["prune-packed", "--quiet"], locks)
    return made


def _delete_marked(store: Path) -> int:
    """Deletes the packs that the mark names: all that they hold is in another one, or is to go."""
    with suppress(OSError):
        named = StorePaths(store).packing.read_text("ascii", "replace").split("\n")[:-1]
        packs = [store / "objects" / "pack" / name for name in named if _NAME.fullmatch(name)]
        return sum(delete_file(pack.with_suffix(end)) for pack in packs for end in _PACK_SUFFIXES)
    return 0


def _usable_indexes(store: Path) -> list[Path]:
    """The indexes of the packs that git reads, but for those that a fetch keeps. Of others nobody knows what they hold:
    it may be nowhere else."""
    found = list[Path]()
    for path in (store / "objects" / "pack").glob("*.idx"):
        if _has_index(path) and not path.with_suffix(".keep").exists():
            index = path.read_bytes()
            if is_whole_index(index) and pack_matches_index(path.with_suffix(".pack"), index):
                found.append(path)
    return found


def _has_index(path: Path) -> bool:
    """Whether a file is of a pack that has its index, whatever it is called."""
    return _NAME.fullmatch(path.stem) is not None and all(path.with_suffix(end).exists() for end in (".pack", ".idx"))
