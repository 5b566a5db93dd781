"""Packs that git cannot use: without an index, with a damaged one, truncated, or unreadable for this user.

An index follows from its pack, so it can be rebuilt. git reads nothing from a truncated pack, though most of it may be
there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sessgit.errors import ROOM, StoreError
from sessgit.store import git, layout, object_scan
from sessgit.store import store as stores
from sessgit.store.object_scan import GitObject
from sessgit.store.pack_file import index_ids, is_whole_index, pack_matches_index

_SHA = 20


@dataclass(frozen=True, slots=True)
class BrokenPack:
    """A pack and its fault: `closed` if this user cannot read it, `index` if that is missing or damaged, `cut` if the
    pack is truncated or another one than in its index, `lost` if there is only the index."""

    path: Path
    fault: Literal["closed", "index", "cut", "lost"]


def unreadable_packs(store: Path) -> list[Path]:
    """Return the files of packs that this user cannot read, or the folder that they are in."""
    folder = store / "objects" / "pack"
    for place in (folder.parent, folder):
        if place.is_dir() and not os.access(place, os.R_OK | os.X_OK):
            return [place]
    paths = [*_list_files(store, "*.pack"), *_list_files(store, "*.idx")]
    return [path for path in paths if not os.access(path, os.R_OK)]


def broken_packs(store: Path) -> list[BrokenPack]:
    """Return the packs that git cannot use."""
    closed = {path.with_suffix(".pack") for path in unreadable_packs(store)}
    broken = [BrokenPack(path, "closed") for path in sorted(closed)]
    for pack in _list_files(store, "*.pack"):
        if pack in closed:
            continue
        try:
            path = pack.with_suffix(".idx")
            index = path.read_bytes() if path.exists() else b""
            if not is_whole_index(index):
                broken.append(BrokenPack(pack, "index"))
            elif not pack_matches_index(pack, index):
                broken.append(BrokenPack(pack, "cut"))
        except OSError:  # it was repacked meanwhile
            continue
    for path in _list_files(store, "*.idx"):
        pack = path.with_suffix(".pack")
        if pack not in closed and not pack.exists() and path.exists():
            broken.append(BrokenPack(pack, "lost"))
    return broken


def make_index(store: Path, pack: Path) -> int:
    """Rebuild the index of a pack, and return the number of its objects; a damaged index goes to `state/damaged/`.

    Raises StoreError if the pack is damaged too.
    """
    index, temporary = pack.with_suffix(".idx"), pack.with_name(f"tmp_idx_{pack.stem[5:17]}.idx")
    code, _, message = git.call(store, ["index-pack", "-o", str(temporary), str(pack)])
    try:
        if code:
            temporary.unlink(missing_ok=True)
            reason = message.partition("\n")[0]
            raise StoreError(f"{pack.name} is damaged: {reason}", "`sessgit repair` restores what can be found.")
        if index.exists():
            _move_to_damaged(store, index)
        temporary.replace(index)
        return len(index_ids(index.read_bytes()))
    except OSError as error:
        raise StoreError(f"cannot write {index}: {error.strerror or error}", ROOM) from error


def salvage_objects(pack: Path, scratch: Path) -> Iterator[GitObject]:
    """Yield the readable objects of a truncated pack, by its index, from a store that is created at `scratch`."""
    path = pack.with_suffix(".idx")
    try:
        index = path.read_bytes()
        stores.create_store(scratch)
        folder = scratch / "objects" / "pack"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(path, folder / path.name)
        with pack.open("rb") as file, (folder / pack.name).open("wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.write(index[-2 * _SHA : -_SHA])  # git accepts a pack that ends with the checksum in its index
    except OSError as error:
        raise StoreError(f"cannot copy {pack.name}: {error.strerror or error}", ROOM) from error
    return object_scan.intact_objects(scratch, index_ids(index))


def quarantine_pack(store: Path, pack: Path) -> None:
    """Move a pack that git cannot use, with its index, to `state/damaged/`."""
    try:
        for path in sorted(pack.parent.glob(f"{pack.stem}.*")):
            _move_to_damaged(store, path)
    except OSError as error:
        raise StoreError(f"cannot move {pack.name}: {error.strerror or error}", ROOM) from error


def _list_files(store: Path, pattern: str) -> list[Path]:
    try:
        return sorted((store / "objects" / "pack").glob(f"pack-{pattern}"))
    except OSError:  # the folder is unreadable
        return []


def _move_to_damaged(store: Path, path: Path) -> None:
    folder = layout.StorePaths(store).state / "damaged"
    folder.mkdir(mode=0o700, exist_ok=True)
    path.replace(folder / path.name)
