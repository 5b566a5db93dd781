"""git's objects as plain values, and as files read and written without libgit2.

libgit2 verifies what it reads by a slow SHA-1 that also finds forged collisions, which takes as long as finding and
unpacking the object. git looked for collisions when the objects entered the store, so a plain SHA-1 proves a file here.
Loose files are read here too: libgit2 looks for each three times. And large files are read and written in pieces, of
which libgit2 makes several copies.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Final

from sessgit.errors import StoreError
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, file_pieces
from sessgit.store import durable_write

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
LARGE_SIZE: Final = 4 << 20
"""Size in bytes above which a file is large."""
_LEVEL = 1
"""The level at which git compresses loose objects."""
_CHUNK_SIZE = 1 << 20

Entry = tuple[str, bool]
"""An object's id and whether it is a tree."""
Tree = dict[bytes, tuple[bytes, bytes]]
"""A tree as git stores it: the mode and the binary id of each entry by name."""
FOLDER_MODE: Final = b"40000"
_FILE_MODE = b"100644"
_TREE_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{20})", re.DOTALL)
_REFUSED_NAMES = frozenset((b"", b".", b"..", b".git"))


@frozen
class Commit:
    """A commit as git has it; `time` is in seconds since 1970."""

    id: str
    tree: str
    parents: tuple[str, ...]
    message: str
    time: int


def object_id(kind: str, data: Bytes) -> str:
    """Return the id that git gives an object."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode("ascii"), len(data)), usedforsecurity=False)
    for piece in file_pieces(data):
        digest.update(piece)
    return digest.hexdigest()


def encode_commit(tree: str, parents: Iterable[str], author: tuple[str, str], time: int, message: str) -> bytes:
    """Return the bytes of a commit as git writes it; raises ValueError for a message that UTF-8 cannot encode."""
    signature = f"{author[0]} <{author[1]}> {time} +0000"
    head = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    head += [f"author {signature}", f"committer {signature}"]
    return "\n".join((*head, "", message)).encode()


def tree_entry(name: bytes, oid: str, is_tree: bool) -> tuple[bytes, bytes]:
    """Return an entry as a tree holds it. Raises ValueError for a name that git refuses in a tree."""
    if name.lower() in _REFUSED_NAMES or b"\0" in name:
        raise ValueError(f"{os.fsdecode(name)!r} cannot be a name in a tree")
    return FOLDER_MODE if is_tree else _FILE_MODE, bytes.fromhex(oid)


def encode_tree(entries: Tree) -> bytes:
    """Return the bytes of a tree; git sorts a folder as if its name ended in a slash."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1][0] == FOLDER_MODE else item[0])
    return b"".join([b"%b %b\0%b" % (mode, name, oid) for name, (mode, oid) in ordered])


def decode_tree(data: bytes) -> Tree:
    """Return the entries of a tree. Raises ValueError if it is damaged."""
    entries = _TREE_ENTRY.findall(data)
    if sum(len(mode) + len(name) + len(oid) + 2 for mode, name, oid in entries) != len(data):
        raise ValueError("a tree is damaged")
    return {name: (mode, oid) for mode, name, oid in entries}


def files(read_tree: Callable[[str], Mapping[str, Entry]], tree: str, prefix: str = "") -> dict[str, Entry]:
    """Return every file below a tree by path, as `edit_tree` takes them."""
    found: dict[str, Entry] = {}
    for name, (oid, is_tree) in read_tree(tree).items():
        path = f"{prefix}/{name}" if prefix else name
        found |= files(read_tree, oid, path) if is_tree else {path: (oid, False)}
    return found


def read_loose_file(objects: str, oid: str) -> bytes:
    """Return the bytes of a file from a folder of loose objects. Raises KeyError if the folder does not have the
    object, ValueError if it is damaged or no file."""
    try:
        # There may be thousands: `Path` takes four times as long.
        with open(f"{objects}/{oid[:2]}/{oid[2:]}", "rb", buffering=0) as file:  # noqa: PTH123
            packed = file.read()
    except OSError as error:
        raise KeyError(oid) from error
    try:
        data = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    header, _, content = data.partition(b"\0")
    if header != b"blob %d" % len(content) or hashlib.sha1(data, usedforsecurity=False).hexdigest() != oid:
        raise ValueError(f"{oid} is no file, or damaged")
    return content


def write_object_file(folder: Path, oid: str, kind: str, data: Bytes) -> str:
    """Write an object to a folder of loose objects, durably and in one step; return its id. Raises OSError."""
    temporary = folder / f"tmp_obj_{os.urandom(6).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    try:
        with os.fdopen(handle, "wb") as file:
            compressor = zlib.compressobj(_LEVEL)
            file.write(compressor.compress(b"%s %d\0" % (kind.encode("ascii"), len(data))))
            file.writelines(map(compressor.compress, chunks(file_pieces(data))))
            file.write(compressor.flush())
            file.flush()
            os.fsync(handle)
        durable_write.name_object(temporary, folder, oid)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return oid


def chunks(pieces: Iterable[bytes]) -> Iterator[memoryview]:
    """Yield the same bytes in pieces of at most 1 MB, without a copy."""
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _CHUNK_SIZE):
            yield view[start : start + _CHUNK_SIZE]


def large_file_lines(store: Path, oid: str, size: int, longest: float) -> list[bytes] | None:
    """Return what `split` makes of a file at its newlines, read in pieces; None if git cannot read it.

    Lines over `longest` bytes are replaced by empty ones, a last one without newline by its first byte.
    """
    from sessgit.store import git  # which loads modules for processes

    splitter, digest = LineSplitter(longest), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with suppress(StoreError, OSError), git.reading(store, ["cat-file", "blob", oid]) as output:
        while piece := output.read(_CHUNK_SIZE):
            digest.update(piece)
            splitter.add(piece)
    return splitter.lines() if digest.hexdigest() == oid else None


class LineSplitter:
    """Splits a file that comes in pieces into lines. A BytesIO hands its bytes out without a copy."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._lines: list[bytes] = []
        self._last = BytesIO()

    def add(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        if self._last.tell() <= self._longest:
            self._last.write(first)
        if others:
            self._lines.append(self._shortened(self._last.getvalue()))
            self._lines += map(self._shortened, others[:-1])
            self._last = BytesIO()
            self._last.write(others[-1])

    def lines(self) -> list[bytes]:
        last = self._last.getvalue()
        return [*self._lines, self._shortened(last) or last[:1]]

    def _shortened(self, line: bytes) -> bytes:
        return line if len(line) <= self._longest else b""
