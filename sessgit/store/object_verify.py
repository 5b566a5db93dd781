"""What git's objects tell in plain values, a commit as git writes it, and files proved by their names.

The library proves all that it reads, by a slow SHA-1 that also finds forged collisions, which takes as long as to find
and unpack an object. Whatever brings objects into a store has looked for those: here the name alone is proved.
What is not packed yet is read here as well: the library asks three times for such a file.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
_BLOB = _KINDS[b"blob"]
_LONGEST_HEADER = 32
"""More bytes than stand before an object: its kind and its size."""
_MOST_INFLATION = 1100
"""More than anything becomes smaller when it is compressed."""

Entry = tuple[str, bool]
"""An object's id and whether it is a tree."""
ObjectSource = Callable[[str], tuple[int, bytes]]
"""From an object's id to its kind, as git numbers them, and bytes that nobody has proved."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git has it; `time` is in seconds since 1970."""

    id: str
    tree: str
    parents: tuple[str, ...]
    message: str
    time: int


def encode_commit(tree: str, parents: Iterable[str], author: tuple[str, str], time: int, message: str) -> bytes:
    """The bytes of a commit, as git writes it; raises ValueError for a message that UTF-8 cannot hold."""
    who = f"{author[0]} <{author[1]}> {time} +0000"
    head = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
    return "\n".join((*head, "", message)).encode()


def verified_file(sources: Iterable[ObjectSource], oid: str, errors: tuple[type[Exception], ...]) -> bytes | None:
    """The bytes of the file out of the first source that has it, or None where they do not hash to its name, or one of
    `errors` is raised; a source raises KeyError for what it does not have."""
    for read in sources:
        try:
            kind, data = read(oid)
        except KeyError:
            continue
        except errors:
            return None
        digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
        digest.update(data)
        return data if kind == _BLOB and digest.hexdigest() == oid else None
    return None


def loose_source(objects: Path) -> ObjectSource:
    """The source of what lies in files of its own in a folder of objects; it raises ValueError for what is damaged."""
    folder = str(objects)

    def read(oid: str) -> tuple[int, bytes]:
        try:
            # A path that is put together here, since there are thousands of them.
            with open(f"{folder}/{oid[:2]}/{oid[2:]}", "rb", buffering=0) as file:  # noqa: PTH123
                packed = file.read()
        except OSError as error:
            raise KeyError(oid) from error
        try:
            return _inflate_object(packed)
        except zlib.error as error:
            raise ValueError(str(error)) from error

    return read


def _inflate_object(packed: bytes) -> tuple[int, bytes]:
    head, end, _ = zlib.decompressobj().decompress(packed, _LONGEST_HEADER).partition(b"\0")
    kind, _, size = head.partition(b" ")
    if kind not in _KINDS or not size.isdigit() or int(size) > _MOST_INFLATION * len(packed):
        raise ValueError("what is no object of git")
    begin, unpacking = len(head) + len(end), zlib.decompressobj()
    data = unpacking.decompress(packed, begin + int(size) + 1)
    if len(data) != begin + int(size) or not unpacking.eof:
        raise ValueError("an object of another size than it says")
    return _KINDS[kind], data[begin:]


def first_known_commits(start: str, known: Collection[str], read: Callable[[str], Commit]) -> set[str]:
    """The first of the known commits on each way back from one."""
    found, seen, waiting = set[str](), set[str](), [start]
    while waiting:
        oid = waiting.pop()
        if oid in known:
            found.add(oid)
        elif oid not in seen:
            seen.add(oid)
            waiting += read(oid).parents
    return found
