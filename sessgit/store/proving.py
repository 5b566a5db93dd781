"""What git's objects tell in plain values, and files proved by their names.

The library proves all that it reads, by a slow SHA-1 that also finds forged collisions, which takes as long as to find
and unpack an object. Whatever brings objects into a store has looked for those: here the name alone is proved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_BLOB = 3

Entry = tuple[str, bool]
"""An object's id and whether it is a tree."""
Source = Callable[[str], tuple[int, bytes]]
"""From an object's id to its kind, as git numbers them, and bytes that nobody has proved."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git has it; `time` is in seconds since 1970."""

    id: str
    tree: str
    parents: tuple[str, ...]
    message: str
    time: int


def file(sources: Iterable[Source], oid: str, errors: tuple[type[Exception], ...]) -> bytes | None:
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
