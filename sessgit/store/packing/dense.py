"""What is archived, in a pack of its own that is smaller than git's.

git takes a delta by its length before it is compressed, and none that is longer than half of the object: so most
commits, folders and small files have none. And it compares each object with few others. What is archived is packed
once and seldom read, so here the base of each is sought by what it says (`densebases.py`), and what is smaller is
taken as it will stand on the disk. git reads that pack as any other.

Each object is worked on once: as long as the pack is there, git leaves what it holds alone (`--keep-pack`), and what is
archived later is added to it. That it is the one stands in `state/dense`; without that it is a pack among others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

from sessgit.errors import StoreError
from sessgit.model.progress import Progress
from sessgit.store import git, layout
from sessgit.store.files import lasting, private
from sessgit.store.layout import Beside
from sessgit.store.packing import delta, densepack
from sessgit.store.packing.densebases import BLOB, Bases
from sessgit.store.packing.densepack import Entry, Writer, compressed, least
from sessgit.store.packing.pack import fits, ids, is_index

_ARCHIVED: Final = (
    "rev-list", "--objects", "--in-commit-order", "--topo-order", f"--glob={layout.ARCHIVE}*", "--not", "--branches",
)  # fmt: skip
_CHECK: Final = ("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
_READ: Final = ("cat-file", "--batch", "--buffer")
_INDEX: Final = ("-c", "pack.writeReverseIndex=false", "index-pack")
_PROVE: Final = ("verify-pack",)
_NAME = re.compile(r"pack-[0-9a-f]{40}", re.ASCII)
_PACK, _IDX = "tmp_dense_pack", "tmp_dense_idx"
"""Until they are whole. git reads whatever ends as a pack's index does."""
_MOST = 4 << 20
"""Larger objects are left to git, to spare memory."""
_DIGITS = re.compile(rb"[0-9]+")
_TEXTS = b"/%s/" % layout.TEXTS.encode()
_BEFORE_BASE = 3
"""About so many bytes it takes to tell what an object is made from."""


class _Held(NamedTuple):
    """The pack that is there, if any, and what it holds."""

    pack: Path | None
    entries: Mapping[str, Entry]


class _Wanted(NamedTuple):
    oid: str
    kind: bytes
    size: int
    name: bytes
    """What is likely to be alike has the same, or it is empty."""


def known(store: Path) -> Path | None:
    """The index of the pack of what is archived, where there is one that is whole."""
    with suppress(OSError):
        pack = _mark(store).read_text("ascii", "replace").strip()
        path = store / "objects" / "pack" / f"{pack}.idx"
        if _NAME.fullmatch(pack) and is_index(index := path.read_bytes()) and fits(path.with_suffix(".pack"), index):
            return path
    return None


def name(store: Path, pack: str) -> None:
    """From now on the pack of this name, which is on the disk, is the one of what is archived; `""` if none is."""
    mark, new = _mark(store), _mark(store).with_name(".dense.tmp")
    with private.files():
        new.write_text(f"{pack}\n", "ascii")
    lasting.sync(new)
    new.replace(mark)


def prove(store: Path, lock: int) -> None:
    """Looks through the pack. Where it is damaged, it is a pack among others from now on: what it held may have been
    put back beside it, and would go where git believes that it is in a pack."""
    if (pack := known(store)) is not None:
        try:
            git.run(store, [*_PROVE, str(pack)], [lock])
        except StoreError:
            name(store, "")


def grow(store: Path, lock: int, progress: Progress) -> None:
    """Adds what was archived since the last time to the pack, if anything was: then there is a new one, and the one
    before is a pack among others. Tells how many objects are done. The file that says that the store is being packed
    is there (`making.py`). Raises StoreError and OSError."""
    old = known(store)
    pack = old.with_suffix(".pack") if old else None
    held = _Held(pack, densepack.entries(pack, old.read_bytes()) if old and pack else {})
    wanted = _wanted(store, lock)
    every = held.entries.keys() | {entry.oid for entry in wanted}
    if len(every) == len(held.entries):
        return
    folder = store / "objects" / "pack"
    made = folder / _PACK
    try:
        new = _written(made, held, wanted, _read(store, lock, wanted), progress)
        _proved(store, lock, made, every)
        _placed(store, made, new)
    finally:
        for unfinished in (_PACK, _IDX):
            (folder / unfinished).unlink(missing_ok=True)


def _wanted(store: Path, lock: int) -> list[_Wanted]:
    """What archived conversations alone lead to, in the order in which bases are sought: of the files the large ones
    first, since what a file once was is found in it."""
    with TemporaryFile(dir=store) as listed, TemporaryFile(dir=store) as asked, TemporaryFile(dir=store) as told:
        git.run(store, _ARCHIVED, [lock], told=listed)
        listed.seek(0)
        paths = {oid.decode("ascii"): path for oid, _, path in (line.rstrip(b"\n").partition(b" ") for line in listed)}
        asked.writelines(b"%s\n" % oid.encode("ascii") for oid in paths)
        asked.seek(0)
        git.run(store, _CHECK, [lock], given=asked, told=told)
        told.seek(0)
        found = [_described(line, paths) for line in told]
    return sorted((entry for entry in found if entry.size <= _MOST), key=_rank)


def _described(line: bytes, paths: Mapping[str, bytes]) -> _Wanted:
    oid, kind, size = line.split()
    path = paths[oid.decode("ascii")]
    if kind != BLOB:
        return _Wanted(oid.decode("ascii"), kind, int(size), _DIGITS.sub(b"", path) or b"/")
    last = b"" if _TEXTS in path else path.rpartition(b"/")[2]
    return _Wanted(oid.decode("ascii"), kind, int(size), last)


def _rank(entry: _Wanted) -> tuple[bool, int]:
    return entry.kind == BLOB, -entry.size if entry.kind == BLOB else 0


def _written(
    made: Path, held: _Held, wanted: list[_Wanted], read: Iterator[tuple[_Wanted, bytes]], progress: Progress
) -> str:
    """The name of the pack that is made at a place, of an old one and of what is wanted, as it is read."""
    bases, done, total = Bases(), 0, sum(entry.oid not in held.entries for entry in wanted)
    writer = Writer(made, held.pack, len(held.entries))
    try:
        for want, data in read:
            entry = held.entries.get(want.oid)
            if entry is None:
                entry = _added(writer, bases, want, data)
                done += 1
                progress(done, total)
            bases.add(want.kind, want.name, data, entry)
        return writer.finish()
    finally:
        writer.close()


def _added(writer: Writer, bases: Bases, want: _Wanted, data: bytes) -> Entry:
    best, base = data, None
    most = len(compressed(data)) - _BEFORE_BASE
    for near in bases.near(want.kind, want.name, data):
        for other in delta.between(near.data, data):
            size = len(compressed(other))
            if size < most:
                best, base, most = other, near.entry, size
    packed = least(best)
    return writer.changed(base, len(best), packed) if base else writer.whole(want.kind, len(best), packed)


def _read(store: Path, lock: int, wanted: Iterable[_Wanted]) -> Iterator[tuple[_Wanted, bytes]]:
    """Each with its bytes; git proves each object by its id."""
    with TemporaryFile(dir=store) as asked:
        asked.writelines(b"%s\n" % entry.oid.encode("ascii") for entry in wanted)
        asked.seek(0)
        with git.speaking(store, _READ, [lock], asked) as told:
            for entry in wanted:
                yield entry, _next(told, entry)


def _next(told: IO[bytes], entry: _Wanted) -> bytes:
    head = told.readline().split()
    data = told.read(entry.size + 1)
    if head != [entry.oid.encode("ascii"), entry.kind, b"%d" % entry.size] or len(data) != entry.size + 1:
        raise StoreError(f"git could not read object {entry.oid}", git.DAMAGED)
    return data[:-1]


def _proved(store: Path, lock: int, made: Path, expected: set[str]) -> None:
    """Makes the index of a pack; raises StoreError unless it holds just these objects, each as its id says."""
    index = made.with_name(_IDX)
    git.run(store, [*_INDEX, "-o", str(index), str(made)], [lock])
    if set(ids(index.read_bytes())) != expected:
        raise StoreError("git could not pack the store: a pack does not hold what it should", git.DAMAGED)
    lasting.sync(index)


def _placed(store: Path, made: Path, new: str) -> None:
    """Gives the pack its name. Until all is done, whoever packs next takes it away: the others are there still."""
    folder, going = made.parent, Beside(store).packing
    if not (folder / f"{new}.idx").exists():  # else it may be all that is there
        going.write_text(f"{new}\n", "ascii")
        made.rename(folder / f"{new}.pack")
        made.with_name(_IDX).rename(folder / f"{new}.idx")
    lasting.sync(folder)
    name(store, new)
    going.write_text("", "ascii")


def _mark(store: Path) -> Path:
    return Beside(store).state / "dense"
