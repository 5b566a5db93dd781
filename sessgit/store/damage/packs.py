"""Packs that git cannot use: without an index, with one that is damaged, cut, or not ours to read.

An index is a function of its pack, so it can be made anew. Of a pack that was cut git reads nothing, though most of it
may be there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sessgit.errors import ROOM, StoreError
from sessgit.store import git, layout
from sessgit.store import store as stores
from sessgit.store.damage import objects
from sessgit.store.packing.pack_file import index_ids, is_whole_index, pack_matches_index

PackFault = Literal["closed", "index", "cut", "lost"]
_SHA = 20


@dataclass(frozen=True, slots=True)
class BrokenPack:
    """A pack and what is wrong: it may not be read (`unreadable_packs`), its `index` is missing or damaged, it was
    `cut` or is
    not the one that its index was made for, or is `lost` and its index there."""

    path: Path
    fault: PackFault


def unreadable_packs(store: Path) -> list[Path]:
    """The files of packs that this user may not read; or the folder that they are in."""
    folder = store / "objects" / "pack"
    for place in (folder.parent, folder):
        if place.is_dir() and not os.access(place, os.R_OK | os.X_OK):
            return [place]
    return [
        path for pattern in ("*.pack", "*.idx") for path in _list_files(store, pattern) if not os.access(path, os.R_OK)
    ]


def broken_packs(store: Path) -> list[BrokenPack]:
    """The packs that git cannot use, in their order."""
    return list(_find_broken(store))


def make_index(store: Path, pack: Path) -> int:
    """Makes the index of a pack anew, and returns how many objects it names; a damaged one goes to `state/damaged/`.
    Raises StoreError where the pack is also damaged."""
    index, beside = pack.with_suffix(".idx"), pack.with_name(f"tmp_idx_{pack.stem[5:17]}.idx")
    try:
        done = subprocess.run(
            [git.find_git(), "--git-dir", str(store), "index-pack", "-o", str(beside), str(pack)],
            env=git.env(), cwd="/", capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            beside.unlink(missing_ok=True)
            said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise StoreError(f"{pack.name} is damaged: {said}", "`sessgit repair` restores what can be found.")
        if index.exists():
            _move_to_damaged(store, index)
        beside.replace(index)
        return len(index_ids(index.read_bytes()))
    except OSError as error:
        raise StoreError(f"cannot write {index}: {error.strerror or error}", ROOM) from error


def salvage_objects(store: Path, pack: Path, scratch: Path) -> dict[str, tuple[str, bytes]]:
    """What of a pack that was cut can be read, by its index: the kind and the content of each object by its id."""
    index = pack.with_suffix(".idx")
    try:
        listed = index.read_bytes()
        named = index_ids(listed)
        stores.create_store(scratch)
        folder = scratch / "objects" / "pack"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(index, folder / index.name)
        with pack.open("rb") as file, (folder / pack.name).open("wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.write(listed[-2 * _SHA : -_SHA])  # git believes a pack that ends with what its index says
    except OSError as error:
        raise StoreError(f"cannot copy {pack.name}: {error.strerror or error}", ROOM) from error
    return dict(objects.read_all(scratch, named))


def quarantine_pack(store: Path, pack: Path) -> None:
    """Moves a pack that git cannot use, with its index, to `state/damaged/`."""
    try:
        for path in sorted(pack.parent.glob(f"{pack.stem}.*")):
            _move_to_damaged(store, path)
    except OSError as error:
        raise StoreError(f"cannot move {pack.name}: {error.strerror or error}", ROOM) from error


def _find_broken(store: Path) -> Iterator[BrokenPack]:
    shut = {path.with_suffix(".pack") for path in unreadable_packs(store)}
    yield from (BrokenPack(path, "closed") for path in sorted(shut))
    for pack in _list_files(store, "*.pack"):
        if pack in shut:
            continue
        try:
            index = pack.with_suffix(".idx")
            listed = index.read_bytes() if index.exists() else b""
            if not is_whole_index(listed):
                yield BrokenPack(pack, "index")
            elif not pack_matches_index(pack, listed):
                yield BrokenPack(pack, "cut")
        except OSError:  # it was packed anew meanwhile
            continue
    for index in _list_files(store, "*.idx"):
        pack = index.with_suffix(".pack")
        if pack not in shut and not pack.exists() and index.exists():
            yield BrokenPack(pack, "lost")


def _list_files(store: Path, pattern: str) -> list[Path]:
    try:
        return sorted((store / "objects" / "pack").glob(f"pack-{pattern}"))
    except OSError:  # the folder may not be read
        return []


def _move_to_damaged(store: Path, path: Path) -> None:
    folder = layout.StorePaths(store).state / "damaged"
    folder.mkdir(mode=0o700, exist_ok=True)
    path.replace(folder / path.name)
