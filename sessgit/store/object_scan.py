"""Objects and packs of a store as git itself reads them: all objects, those of a history, damaged ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, NamedTuple

from sessgit.errors import ROOM, DamageError, StoreError
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import git, layout
from sessgit.store import store as stores
from sessgit.store.objects import object_id, write_object_file
from sessgit.store.pack_file import index_ids, is_whole_index, pack_matches_index

_OID = re.compile(r"[0-9a-f]{40}")
_LOOSE_PATH = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})")
_PERCENT = re.compile(rb"(\d+)% \((\d+)/(\d+)\)")
_HARMLESS_MESSAGE = re.compile(
    r"^(notice:|dangling |unreachable |warning: garbage found|Checking )|: unable to read sha1 file of"
)
_UNBORN_HEAD = ("refs/heads/HEAD-stays-unborn", "HEAD points to an unborn branch")
_KINDS = ("blob", "tree", "commit")
_MOST_MESSAGES = 1000
_LONGEST_MESSAGE = 300


class GitObject(NamedTuple):
    """An object: `kind` is blob, tree, commit or tag, `data` is what git hashes after the header."""

    id: str
    kind: str
    data: bytes


@frozen
class FsckMessage:
    """A message of git about an object or a ref, and the objects that it names."""

    what: str
    objects: tuple[str, ...]


def all_objects(store: Path, progress: Progress) -> Iterator[GitObject]:
    """Yield every object, reachable or not, in the order that git reads fastest. Raises StoreError if one is
    unreadable. `progress` gets the number of objects read and of all."""
    names = git.run(store, ["cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)"]).split()
    for number, read in enumerate(_whole_objects(store, names), start=1):
        yield read
        progress(number, len(names))


def new_objects(store: Path, tips: Sequence[str], known: Sequence[str]) -> Iterator[GitObject]:
    """Yield the objects in the histories of the tips that those of the known commits lack. Raises StoreError."""
    yield from _whole_objects(store, _list_objects(store, [*tips, *(f"^{commit}" for commit in known)]))


def intact_objects(store: Path, object_ids: Iterable[str]) -> Iterator[GitObject]:
    """Yield those of the objects that a damaged repository has whole."""
    left = list(dict.fromkeys(object_ids))
    while left:
        count = 0
        for read in _read_objects(store, left):
            count += 1
            if read and read.kind in _KINDS and object_id(read.kind, read.data) == read.id:
                yield read
        left = left[count + 1 :]  # git ends at an object that is damaged


def existing_objects(store: Path, oids: Collection[str]) -> list[str]:
    """Return those of the objects that a repository has."""
    if not oids:
        return []
    _, output, _ = git.call(store, ["cat-file", "--batch-check"], _lines(sorted(oids)))
    rows = (line.split() for line in output.decode("ascii", "replace").splitlines())
    return [row[0] for row in rows if len(row) == 3 and row[1] in (*_KINDS, "tag")]


def reachable_objects(store: Path, object_ids: Collection[str]) -> list[str]:
    """Return those of the objects that a damaged repository has, and all that they lead to there."""
    existing = existing_objects(store, object_ids)
    return list(dict.fromkeys((*existing, *_list_objects(store, existing)))) if existing else []


def _whole_objects(store: Path, names: Sequence[str]) -> Iterator[GitObject]:
    count = 0
    for read in _read_objects(store, names):
        if read is None:
            break
        count += 1
        yield read
    if count < len(names):
        raise StoreError(f"git cannot read the object {names[count]}", git.DAMAGED)


def _read_objects(store: Path, names: Sequence[str]) -> Iterator[GitObject | None]:
    """Yield each of the objects, or None if it is missing; ends before one that is damaged."""
    with TemporaryFile() as file:  # a pipe would fill up while git waits for its reader
        file.write(_lines(names))
        file.seek(0)
        command = ["cat-file", "--batch", "--buffer"]
        with git.start(store, command, stdin=file, stderr=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            try:
                for name in names:
                    words = child.stdout.readline().split()
                    if words[1:] == [b"missing"]:
                        yield None
                        continue
                    data = child.stdout.read(int(words[2])) if len(words) == 3 else b""
                    if len(words) != 3 or len(data) != int(words[2]) or child.stdout.read(1) != b"\n":
                        return
                    yield GitObject(name, words[1].decode(), data)
            finally:
                child.stdout.close()
                child.kill()


def _list_objects(store: Path, commits: Sequence[str]) -> list[str]:
    command = ["rev-list", "--objects", "--no-object-names", "--stdin"]
    code, output, message = git.call(store, command, _lines(commits))
    names = _OID.findall(output.decode("ascii", "replace"))
    if code and not names:
        raise StoreError(f"git cannot read the store: {message}", git.DAMAGED)
    return names


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


# Damage


def fsck(store: Path, progress: Progress = no_progress) -> list[FsckMessage]:
    """Return what `git fsck --strict` finds: it reads and hashes every object. Raises StoreError."""
    flags = ["--full", "--strict", "--no-dangling", "--no-reflogs", "--progress"]
    messages: dict[str, None] = {}
    with git.start(store, ["fsck", *flags], stderr=subprocess.STDOUT) as child:
        for piece in git.pieces(child.stdout):
            if percent := _PERCENT.search(piece):
                progress(int(percent[2]), int(percent[3]))
            elif line := piece.decode("utf-8", "replace").strip():
                messages[line] = None
    findings = [
        FsckMessage(line[:_LONGEST_MESSAGE], tuple(dict.fromkeys(_named_objects(line))))
        for line in messages
        if not _HARMLESS_MESSAGE.search(line) and not any(words in line for words in _UNBORN_HEAD)
    ]
    if child.returncode and not findings:
        return [FsckMessage(f"git fsck ended with {child.returncode}", ())]
    return findings[:_MOST_MESSAGES]


def _named_objects(line: str) -> list[str]:
    return [*_OID.findall(line), *(folder + name for folder, name in _LOOSE_PATH.findall(line))]


def write_loose_object(store: Path, intact: GitObject, damaged: Path) -> None:
    """Write an object as a loose one, even if a damaged pack has it; move an existing file to the folder `damaged`.

    Raises DamageError if the content does not hash to the id.
    """
    if intact.kind not in _KINDS or object_id(intact.kind, intact.data) != intact.id:
        raise DamageError(f"the data is not the object {intact.id}")
    path = store / "objects" / intact.id[:2] / intact.id[2:]
    try:
        if path.exists():
            damaged.mkdir(mode=0o700, exist_ok=True)
            path.rename(damaged / intact.id)
        write_object_file(store / "objects", intact.id, intact.kind, intact.data, durable=True)
    except OSError as error:
        raise StoreError(f"cannot write the object {intact.id}: {error.strerror or error}", ROOM) from error


# Packs that git cannot use: without an index, with a damaged one, truncated, or unreadable for this user
#
# An index follows from its pack, so it can be rebuilt. git reads nothing from a truncated pack, though most of it may
# be there.

_SHA = 20


@frozen
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
    return intact_objects(scratch, index_ids(index))


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
