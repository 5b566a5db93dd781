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
from sessgit.model.progress import Progress, unseen
from sessgit.store import git, locks
from sessgit.store.files import durable_write
from sessgit.store.layout import StorePaths
from sessgit.store.packing import delta_order
from sessgit.store.packing.pack_file import fits, ids, is_index

FULL: Final = ("--no-reuse-delta", "--no-reuse-object")
"""Nothing is taken over: what packings in the background made is made better."""
_QUICK = ("--no-reuse-delta", "--window=2")
"""For what has just come in, which `pack.py` compressed well but without deltas. Each object is compared with two
others in place of 10. That deltas are not taken over is how git is told to look for any: of two objects in one pack
that have none it thinks that it has looked before."""
_SMALL = ("-c", "core.bigFileThreshold=64k")
"""Larger ones are compared with none."""
_WIDE = ("--no-reuse-delta", "--window=10")
_MEDIUM = ("-c", "core.bigFileThreshold=512k")
"""For the packing in the background: 4 to 8 % smaller, for three to four times the work."""
_HARD = ("-c", "pack.compression=9")
_PACK = ("pack-objects", "--progress", "--delta-base-offset", "--honor-pack-keep", "--non-empty")
_EVERY = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
_FILES = (".idx", ".rev", ".bitmap", ".pack")
"""A pack's files in the order in which they go: one without an index nobody reads, and an index can be made anew."""
_NAME = re.compile(r"(?:\.tmp-[0-9]+-)?pack-[0-9a-f]{40}", re.ASCII)
"""`git repack` gives a pack its last name in a second step, and git reads it as any other before that."""
_UNFINISHED = ("tmp_", ".tmp-")
_HEX = 40
_OID = re.compile(r"[0-9a-f]{40}", re.ASCII)


def anew(store: Path, lock: int = 0, search: Sequence[str] = FULL, progress: Progress = unseen) -> None:
    """One pack of all that is there, whether a ref leads to it or not; `search` says how git looks for what is alike.

    `git repack -a -d -f -F` does that too, but compares what has nothing in common (`delta_order.py`).
    """
    with _marked(store), TemporaryFile(dir=store) as wanted:
        others = _whole(store)
        _list(store, lock, wanted)
        git.run(store, _EVERY, [lock], told=wanted)  # what is named already keeps its name
        wanted.seek(0)
        _replace(store, others, [*_HARD, *_PACK, *search], [lock], wanted, progress)


def arrived(store: Path, names: Collection[str], lock: int = 0, progress: Progress = unseen) -> list[str]:
    """One pack of the packs of these names, which have just come in, and of what is loose; of all that is there, where
    that is less than twice as much. Returns the names of the packs that were made."""
    with _marked(store), TemporaryFile(dir=store) as wanted:
        every = _whole(store)
        new = [index for index in every if index.stem in names]
        if _size(every) < 3 * _size(new):
            new, among = every, None
        else:
            among = set(_loose(store)).union(*(ids(index.read_bytes()) for index in new))
        _list(store, lock, wanted, among)
        if among is None:
            git.run(store, _EVERY, [lock], told=wanted)
        else:
            wanted.writelines(b"%s\n" % oid.encode("ascii") for oid in among)
        wanted.seek(0)
        return _replace(store, new, [*_HARD, *_SMALL, *_PACK, *_QUICK], [lock], wanted, progress)


def again(store: Path, names: Collection[str], lock: int) -> None:
    """One pack of the packs of these names, which `arrived` made, with the smaller deltas that a wider window finds."""
    with _marked(store), TemporaryFile(dir=store) as wanted:
        old = [index for index in _whole(store) if index.stem in names]
        among = set[str]().union(*(ids(index.read_bytes()) for index in old))
        _list(store, lock, wanted, among)
        wanted.writelines(b"%s\n" % oid.encode("ascii") for oid in among)
        wanted.seek(0)
        _replace(store, old, [*_HARD, *_MEDIUM, *_PACK, *_WIDE], [lock], wanted)


def loose(store: Path, lock: int = 0) -> None:
    """A pack more, of the loose objects to which refs lead."""
    with _marked(store):
        _replace(store, (), [*_PACK, "--all", "--unpacked", "--incremental"], [lock])


def join(store: Path, lock: int = 0) -> None:
    """Makes many packs few: one of the small ones, so many that each one that stays has at least twice the objects of
    all that are smaller."""
    with _marked(store), TemporaryFile(dir=store) as wanted:
        some, total = list[Path](), 0
        for index in sorted(_whole(store), key=lambda path: (path.stat().st_size, path)):
            size = _size([index])
            if len(some) > 1 and size >= 2 * total:
                break
            some.append(index)
            total += size
            wanted.writelines(b"%s\n" % oid.encode("ascii") for oid in ids(index.read_bytes()))
        wanted.seek(0)
        _replace(store, some, _PACK, [lock], wanted)


def reached(store: Path, locks: Sequence[int]) -> None:
    """One pack of all to which refs lead; what is in other packs alone is gone. The caller keeps others from writing
    objects."""
    with _marked(store, alone=True):
        _replace(store, _whole(store), [*_PACK, "--all"], locks)


def sweep(store: Path, *, alone: bool = False) -> int:
    """Deletes the unfinished packs of a packing that did not come to its end, and what it had replaced, as its mark
    says; returns how many files.

    A fetch calls what it has not finished just so: while anybody writes objects, the unfinished ones stay, unless the
    caller is `alone`. Whoever sweeps later takes them away.
    """
    begun = changed(StorePaths(store).packing)
    if begun is None:
        return 0
    with nullcontext(enter_result=True) if alone else locks.nobody_writes(StorePaths(store)) as is_alone:
        packs = [path for path in unfinished(store) if is_alone and path.parent.name == "pack"]
        late = [path for path in packs if (when := changed(path)) is not None and when >= begun]
        return _drop(store) + sum(map(deleted, late))


def unfinished(store: Path) -> Iterator[Path]:
    """What will be an object or a pack once somebody ends it."""
    for folder, _, names in os.walk(store / "objects"):
        begun = (Path(folder) / name for name in names if name.startswith(_UNFINISHED))
        # What is in a whole pack may be nowhere else by now.
        yield from (path for path in begun if not _has_both(path))


def deleted(path: Path) -> bool:
    """Whether a file is deleted now and was there before."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def changed(path: Path) -> float | None:
    """When a file was written last, in seconds since 1970, or None where there is none."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def _list(store: Path, lock: int, wanted: IO[bytes], among: Container[str] | None = None) -> None:
    """Writes all objects to which refs lead, or those of them that are `among` some, with the names by which git finds
    what they are like."""
    with TemporaryFile(dir=store) as listed:
        git.run(store, delta_order.LISTING, [lock], told=listed)
        listed.seek(0)
        named = delta_order.named(listed)
        wanted.writelines(line for line in named if among is None or line[:_HEX].decode("ascii") in among)
        wanted.flush()


def _loose(store: Path) -> Iterator[str]:
    """The ids of all loose objects."""
    for folder, _, names in os.walk(store / "objects"):
        start = Path(folder).name
        yield from (start + name for name in names if _OID.fullmatch(start + name))


def _size(indexes: Iterable[Path]) -> int:
    """How many objects packs have, in bytes of their indexes, which have as many for each."""
    return sum(index.stat().st_size for index in indexes)


@contextmanager
def _marked(store: Path, *, alone: bool = False) -> Iterator[None]:
    """A file that stays if this process is killed while it packs: it names what must still go, one pack on a line.
    Where packing fails, it takes no room: the disk may be full. `alone` says that nobody else writes objects."""
    mark = StorePaths(store).packing
    sweep(store, alone=alone)
    try:
        mark.touch(0o600)
        yield
    except (StoreError, OSError) as error:
        sweep(store, alone=alone)
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot pack the store: {error}", ROOM) from error
    mark.unlink(missing_ok=True)


def _replace(
    store: Path,
    others: Collection[Path],
    command: Sequence[str],
    locks: Sequence[int],
    given: IO[bytes] | None = None,
    progress: Progress = unseen,
) -> list[str]:
    """Makes a pack, and then takes the others away, and the loose objects that are in one. Returns the names of the
    packs that were made."""
    folder = store / "objects" / "pack"
    hashes = git.pack_objects(store, [*command, str(folder / "pack")], locks, given, progress)
    made = [f"pack-{name}" for name in hashes]
    durable_write.sync(folder)
    left = sorted({path.stem for path in others}.difference(made))
    StorePaths(store).packing.write_text("".join(f"{name}\n" for name in left), "ascii")
    _drop(store)
    git.run(store, ["prune-packed", "--quiet"], locks)
    return made


def _drop(store: Path) -> int:
    """Deletes the packs that the mark names: all that they hold is in another one, or is to go."""
    with suppress(OSError):
        named = StorePaths(store).packing.read_text("ascii", "replace").split("\n")[:-1]
        packs = [store / "objects" / "pack" / name for name in named if _NAME.fullmatch(name)]
        return sum(deleted(pack.with_suffix(end)) for pack in packs for end in _FILES)
    return 0


def _whole(store: Path) -> list[Path]:
    """The indexes of the packs that git reads, but for those that a fetch keeps. Of others nobody knows what they hold:
    it may be nowhere else."""
    found = list[Path]()
    for path in (store / "objects" / "pack").glob("*.idx"):
        if _has_both(path) and not path.with_suffix(".keep").exists():
            index = path.read_bytes()
            if is_index(index) and fits(path.with_suffix(".pack"), index):
                found.append(path)
    return found


def _has_both(path: Path) -> bool:
    """Whether a file is of a pack that has its index, whatever it is called."""
    return _NAME.fullmatch(path.stem) is not None and all(path.with_suffix(end).exists() for end in (".pack", ".idx"))
