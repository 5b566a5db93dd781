"""How far a transcript is recorded, and what the recorder must know to go on from there.

A cursor is a memory aid: without it, or where it no longer fits the file or the ref, the file is read from its
beginning and ends at the same turns.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from sessgit.model.conversation.message import Extent
from sessgit.store.layout import StorePaths
from sessgit.store.store import write_private

_VERSION = 1
_PROOF_WINDOW = 64 << 10
_MAX_NUMBER = 1 << 64
_EXTENT_FIELDS = 3


@dataclass(frozen=True, slots=True)
class Cursor:
    """`commit` is the head that `offset` bytes of the file at `path` led to; `proof` is that of these, or ``""`` where
    the file was changed while it was read, and is to be read from its beginning.

    `current` is the branch whose last turn was fed last, ``""`` for the session's own, or None where that turn is
    closed and the file must be read from its beginning; `uuids` are those of that turn's body. `pending` are the
    lines that belong to no body yet, the first `stuck` of them from before that turn's last line. `agents` holds
    for each file of a subagent the turn that it was last recorded with, and from and to which byte; `facts` is what
    the lines said of the session as a whole; `file` is the number of the file whose places its extents are. `unended`
    says that the last line that was read has no newline, and `torn` is how many bytes follow it that are no line yet.
    """

    path: str
    inode: int
    offset: int
    proof: str
    commit: str
    current: str | None
    uuids: list[str] = field(default_factory=list)
    pending: list[Extent] = field(default_factory=list)
    stuck: int = 0
    final: bool = False
    agents: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    file: int = 1
    unended: bool = False
    torn: int = 0
    copies: list[int] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    hash: str = ""


def load_cursor(beside: StorePaths, session: str) -> Cursor | None:
    """The session's cursor, or None where there is none that can be read."""
    try:
        document = json.loads(beside.cursor(session).read_bytes())
        if document.pop("version") != _VERSION:
            return None
        document["pending"] = [Extent(*pair) for pair in document["pending"]]
        document["agents"] = {name: tuple(value) for name, value in document["agents"].items()}
        found = Cursor(**document)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found if _is_valid(found) else None


def _is_valid(found: Cursor) -> bool:
    """Whether the values are of their kinds: the file may hold anything."""
    if not all(isinstance(held, list) for held in (found.uuids, found.copies, found.others)) or not isinstance(
        found.facts, dict
    ):
        return False
    if any(len(pair) != _EXTENT_FIELDS for pair in found.agents.values()):
        return False
    places = [place for extent in found.pending for place in (extent.offset, extent.length, extent.lines)]
    places += [place for pair in found.agents.values() for place in pair[1:]]
    texts = [found.path, found.proof, found.commit, found.hash, *found.agents, *found.uuids, *found.others]
    texts += [pair[0] for pair in found.agents.values()]
    texts += [found.current] if found.current is not None else []
    numbers = (found.inode, found.offset, found.stuck, found.file, found.torn, *found.copies, *places)
    if not isinstance(found.unended, bool):
        return False
    return all(isinstance(text, str) for text in texts) and all(
        type(number) is int and 0 <= number < _MAX_NUMBER for number in numbers
    )


def save_cursor(beside: StorePaths, session: str, cursor: Cursor) -> None:
    """Keeps the cursor in the place of the last one; raises StoreError."""
    document: dict[str, Any] = {"version": _VERSION, **asdict(cursor)}
    document["pending"] = [[e.offset, e.length, e.lines] for e in cursor.pending]
    write_private(beside.cursor(session), json.dumps(document).encode())


def delete_cursor(beside: StorePaths, session: str) -> None:
    """There is no cursor of the session any more: its file is read from the beginning."""
    beside.cursor(session).unlink(missing_ok=True)


def prefix_proof(file: BinaryIO, offset: int) -> str:
    """The hash of the last 64 KiB before `offset`: what tells that the file is still the one that was read."""
    start = max(0, offset - _PROOF_WINDOW)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()


def matches_file(cursor: Cursor, path: Path, file: BinaryIO, inode: int, size: int) -> bool:
    """Whether the file goes on from where the cursor stands."""
    return (
        cursor.path == str(path)
        and cursor.inode == inode
        and cursor.offset <= size
        and cursor.proof == prefix_proof(file, cursor.offset)
    )
