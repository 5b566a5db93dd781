"""What the recorder keeps about each session next to the repository: cursors, append intents, the latest turn.

All of it can be derived again, so a file that is damaged or of another version counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from sessgit.errors import StoreError
from sessgit.model import stored_fields
from sessgit.model.conversation.message import Extent
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import Count, Hash, Number, Seconds, Size
from sessgit.store import operations
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

_PROOF_WINDOW = 64 << 10
_Document = TypeVar("_Document")


@frozen
class Cursor:
    """The file state/<id>.json: how far the session's transcript is recorded.

    It is valid if path and inode match, the file is not shorter than offset, proof is right, the head is commit or has
    only edit and merge commits after it, and a newline or nothing follows a line that was unended.
    """

    path: str
    """The path of the transcript."""
    inode: Size
    """The inode of the transcript."""
    offset: Count
    """The number of bytes that are recorded or pending."""
    proof: str
    """SHA-256 of the last 65,536 bytes before the offset; empty, which never matches, if they changed meanwhile."""
    commit: str
    """The head that these bytes led to, or the furthest one, or the end commit before a head from elsewhere."""
    current: str | None
    """The branch whose last turn got the last body line: empty for the head; null: read the file from the beginning."""
    uuids: list[str] = field(default_factory=list)
    """The uuids of that turn's body."""
    pending: list[Extent] = field(default_factory=list)
    """The pending lines: offset, length, number of lines."""
    stuck: Count = 0
    """The number of pending lines that wait for the next prompt whatever comes before it."""
    final: bool = False
    """Whether the agent had closed the file, so that its last lines are recorded too."""
    agents: dict[str, tuple[str, Count, Count]] = field(default_factory=dict)
    """By name of each subagent's file: the key of the turn that last got a piece of it, and its first and last byte."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the lines so far say of the session as a whole."""
    file: Count = 1
    """The number of the file among those of the session, from 1."""
    unended: bool = False
    """Whether the last line before the offset had no newline."""
    torn: Count = 0
    """The length of the incomplete line after the offset."""
    copies: list[str] = field(default_factory=list)
    """Other files of the session, each with its lines replaced by their digests (BLAKE2b, 16 bytes, in hex)."""
    others: list[str] = field(default_factory=list)
    """The branches of older versions of the file."""
    hash: str = ""
    """The File-Hash up to the offset; empty if unknown."""
    version: Literal[1] = 1
    """A cursor of another version is ignored."""


def load_cursor(paths: StorePaths, session: str) -> Cursor | None:
    """Return the session's cursor, or None if none can be read."""
    return _load(paths.cursor(session), Cursor)


def save_cursor(paths: StorePaths, session: str, cursor: Cursor) -> None:
    """Replace the session's cursor. Raises StoreError."""
    write_private(paths.cursor(session), stored_fields.dumps(cursor))


def delete_cursor(paths: StorePaths, session: str) -> None:
    """Delete the session's cursor: its file is read from the beginning next time."""
    paths.cursor(session).unlink(missing_ok=True)


def reset_cursor(paths: StorePaths, session: str, commit: str) -> None:
    """Let the session's file be read from its beginning; all that is known of it is that it leads to the commit."""
    cursor = load_cursor(paths, session)
    if cursor is not None:
        waiting = [Extent(0, 0, 0)]  # nothing says that no line waits
        save_cursor(
            paths, session, Cursor(cursor.path, cursor.inode, 0, "", commit, None, pending=waiting, file=cursor.file)
        )


def prefix_proof(file: BinaryIO, offset: int) -> str:
    """Return the hash of the 64 KiB before `offset`, which shows that a file still begins with what was read."""
    start = max(0, offset - _PROOF_WINDOW)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()


def matches_file(cursor: Cursor, path: Path, file: BinaryIO, inode: int, size: int) -> bool:
    """Return whether the file continues what the cursor says was read."""
    is_same = (cursor.path, cursor.inode) == (str(path), inode) and cursor.offset <= size
    return is_same and cursor.proof == prefix_proof(file, cursor.offset)


# Append intents

MergeOrigins = Mapping[str, tuple[str, str]]
"""The event and the origin of turns, by the uuids of their prompts."""


@frozen
class AppendIntent:
    """The file state/<id>.append: the lines that a merge is appending to a transcript.

    It is written first, so that a kill leaves nothing half done, and stays until the operation is in the journal; until
    then the recorder learns from it where these turns come from.
    """

    path: str
    """The path of the transcript."""
    offset: Count
    """The offset of the data in the transcript."""
    data: bytes
    """The bytes, in base64."""
    head: str = ""
    """The session's head before, or empty if unknown."""
    command: str = ""
    """The command that appends."""
    brought: MergeOrigins = field(default_factory=dict)
    """By the key of each turn in the data its event and its Origin."""
    files: Mapping[str, Hash] = field(default_factory=dict)
    """By path the SHA-256 of each file that was written next to the transcript."""

    @property
    def sources(self) -> set[str]:
        """The branches from which the turns come."""
        return {origin.partition("@")[0] for _, origin in self.brought.values()}


def load_intent(paths: StorePaths, session: str) -> AppendIntent | None:
    """Return the session's append intent, or None if none can be read."""
    return _load(paths.append_intent(session), AppendIntent)


def load_origins(paths: StorePaths, session: str) -> MergeOrigins:
    """Return the origins of the turns whose append was interrupted."""
    intent = load_intent(paths, session)
    return intent.brought if intent else {}


def save_intent(paths: StorePaths, session: str, intent: AppendIntent) -> None:
    """Write the intent durably. Raises StoreError."""
    write_private(paths.append_intent(session), stored_fields.dumps(intent), durable=True)


def delete_intent(paths: StorePaths, session: str) -> None:
    """Delete the session's append intent."""
    paths.append_intent(session).unlink(missing_ok=True)


def delete_finished_intents(paths: StorePaths, before: float) -> int:
    """Delete the intents older than `before` whose operations are in the journal; return how many.

    The same bytes may be appended again, so a newer intent may belong to another operation.
    """
    finished = {
        (path, *extent) for operation in operations.read(paths) for path, extent in operation.wrote.appended.items()
    }
    count = 0
    for path in paths.state.glob("*.append"):
        intent = load_intent(paths, path.stem)
        with suppress(OSError):
            if intent is None or path.stat().st_mtime > before:
                continue
            extent = (intent.path, intent.offset, len(intent.data), hashlib.sha256(intent.data).hexdigest())
            if extent in finished:
                path.unlink()
                count += 1
    return count


# The latest turn


@frozen
class LatestTurn:
    """The file latest.json: the last turn that a recorder recorded."""

    session: str
    turn: Number
    time: Seconds
    """Seconds since 1970."""
    delay: Count | None
    """Milliseconds after the answer, whose time is that of the last write to the transcript before it was read; null if
    the recorder did not wait for one."""
    version: Literal[1] = 1


def save_latest(paths: StorePaths, latest: LatestTurn) -> None:
    """Replace the note of the latest turn, if it can be written."""
    with suppress(StoreError):
        write_private(paths.latest, stored_fields.dumps(latest))


def load_latest(paths: StorePaths) -> LatestTurn | None:
    """Return the latest turn, or None if there is no readable note."""
    return _load(paths.latest, LatestTurn)


def _load(path: Path, kind: type[_Document]) -> _Document | None:
    """Return the document in a file, or None if it is missing, damaged, or of another version."""
    try:
        return stored_fields.load(kind, json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None
