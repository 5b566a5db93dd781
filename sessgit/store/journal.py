"""The journal of operations: what users' commands do to the refs, written before they are moved.

One JSON object on each line, appended; an unreadable line is ignored. `docs/format.md`, "Operations", has the format.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import NamedTuple

from sessgit.errors import ROOM, StoreError
from sessgit.model import canonical, stored_fields
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import OPTIONAL, Count, EntryId, Hash, Number, Time
from sessgit.store import layout, locks, private_files
from sessgit.store.layout import StorePaths
from sessgit.store.transaction import Move

_TAIL_SIZE = 1 << 20
"""Bytes of the journal's end that are read for its last line."""
_REMOVED_NAME_MARK = "@"
"""First character of the names that replace those of removed tags."""
_COMMANDS_WITHOUT_TEXT = ("archive", "unarchive", "delete", "import", "pull", "background")
"""The commands whose summaries hold no words of a conversation."""


class FileRange(NamedTuple):
    """A range of bytes in a file, and their SHA-256."""

    offset: Count
    length: Number
    sha256: Hash


@frozen
class FileWrites:
    """What an operation does to the agent's files, by path: those that it writes whole, with the SHA-256 of the bytes,
    what it appends to existing ones, and what it cuts off at their ends."""

    files: Mapping[str, str] = field(default_factory=dict)
    appended: Mapping[str, FileRange] = field(default_factory=dict)
    cut: Mapping[str, FileRange] = field(default_factory=dict)


@frozen
class Operation:
    """A line of operations.jsonl: what a command does to refs and files."""

    time: Time
    command: str
    """The command; background for what no user asked for."""
    summary: str
    """One line for the user."""
    refs: Mapping[str, tuple[str | None, str | None]]
    """By full name of the ref: the commit before and after; null for no ref."""
    files: Mapping[str, Hash] = field(default_factory=dict)
    """By path the SHA-256 of each file that the command writes next; only files in the agent's folder count."""
    undoes: str = ""
    """The id of the operation that this one reverts, or empty."""
    appended: Mapping[str, FileRange] = field(default_factory=dict, metadata=OPTIONAL)
    """By path what was appended to a file: offset, length, SHA-256."""
    cut: Mapping[str, FileRange] = field(default_factory=dict, metadata=OPTIONAL)
    """By path what was removed from the end of a file: offset, length, SHA-256."""
    completes: str = field(default="", metadata=OPTIONAL)
    """The id of the fork that created the session of a merge or pick. Then refs begin with null."""
    id: EntryId = field(default="", metadata=OPTIONAL)
    """Eight hex digits of the hash of the line's offset and its other content."""

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves of the refs."""
        return tuple(Move(ref, old, new) for ref, (old, new) in self.refs.items())

    @property
    def wrote(self) -> FileWrites:
        """What it did to the agent's files."""
        return FileWrites(self.files, self.appended, self.cut)


def append(paths: StorePaths, operation: Operation) -> Operation:
    """Write the operation durably, and return it with its id, eight hexadecimal digits. Raises StoreError."""
    operation = replace(operation, summary=canonical.one_line(operation.summary, 200))
    document = stored_fields.to_json(operation)
    try:
        with private_files.open_file(paths.journal, os.O_RDWR | os.O_CREAT | os.O_APPEND) as file:
            locks.append_lock(file.fileno())  # so that no two operations get one id
            size = os.fstat(file.fileno()).st_size
            document["id"] = hashlib.sha256(json.dumps([size, document]).encode()).hexdigest()[:8]
            # A line that was torn by a full disk must not swallow this one.
            is_torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            private_files.write_all(file, b"\n" * is_torn + json.dumps(document).encode() + b"\n")
            os.fsync(file.fileno())
    except OSError as error:
        message = f"cannot write the journal: {error.strerror or error}"
        raise StoreError(message, f"Nothing was changed. {ROOM}") from error
    return replace(operation, id=document["id"])


def read(paths: StorePaths, start: int = 0) -> list[Operation]:
    """Return the operations that were written from byte `start` on, oldest first. Raises StoreError."""
    try:
        lines = paths.journal.read_bytes()[start:].split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {paths.journal}: {error.strerror or error}", "Is the file yours?") from error
    operations = (parse_line(line) for line in lines if line)
    return [operation for operation in operations if operation is not None]


def last(paths: StorePaths) -> Operation | None:
    """Return the newest operation without reading all others."""
    try:
        size = paths.journal.stat().st_size
        with paths.journal.open("rb") as file:
            file.seek(max(0, size - _TAIL_SIZE))
            lines = file.read().rstrip(b"\n").split(b"\n")
    except OSError:
        return None
    if len(lines) > 1 or size <= _TAIL_SIZE:
        return parse_line(lines[-1])
    return next(reversed(read(paths)), None)


def redact_sessions(paths: StorePaths, sessions: Collection[str]) -> None:
    """Remove the words, such as names, from the summaries of operations on these sessions.

    They are overwritten in place, so that other processes can append meanwhile.
    """

    def redacted(line: bytes) -> bytes:
        operation = parse_line(line)
        if operation is None or operation.command in _COMMANDS_WITHOUT_TEXT:
            return line
        if not any(layout.session_of_ref(move.ref) in sessions for move in operation.moves):
            return line
        summary = json.dumps(operation.summary).encode()
        session = json.dumps(operation.summary.partition(":")[0] if ":" in operation.summary else "").encode()
        return line.replace(b'"summary": ' + summary, b'"summary": ' + session.ljust(len(summary)), 1)

    if sessions:
        _overwrite_lines(paths, redacted)


def redact_tags(paths: StorePaths, exists: Callable[[str], bool]) -> None:
    """Replace the names of tags of which no commit exists any more by names that no tag can have."""
    commits: dict[str, set[str]] = {}
    for operation in read(paths):
        for move in operation.moves:
            if move.ref.startswith(layout.TAGS):
                name = move.ref.removeprefix(layout.TAGS)
                commits.setdefault(name, set()).update(oid for oid in (move.old, move.new) if oid)
    removed = [name for name in commits if name.startswith(_REMOVED_NAME_MARK)]
    gone = [name for name in commits if name not in removed and not any(map(exists, commits[name]))]
    if not gone:
        return
    replacements: dict[bytes, bytes] = {}
    for number, name in enumerate(gone, start=len(removed) + 1):
        escaped = json.dumps(name)[1:-1].encode()
        digits = str(number).zfill(len(escaped) - 1)[1 - len(escaped) :] if len(escaped) > 1 else ""
        replacements[escaped] = f"{_REMOVED_NAME_MARK}{digits}".encode()
    names = b"|".join(map(re.escape, replacements))
    pattern = b'(?<="%s)(?:%s)(?=")|(?:(?<="tag )|(?<=: tag ))(?:%s)(?= at | deleted")'
    words = re.compile(pattern % (layout.TAGS.encode(), names, names))
    _overwrite_lines(paths, lambda line: words.sub(lambda match: replacements[match[0]], line))


def _overwrite_lines(paths: StorePaths, change: Callable[[bytes], bytes]) -> None:
    """Overwrite lines by others of the same length."""
    try:
        with paths.journal.open("r+b", buffering=0) as file:
            offset = 0
            for line in file.read().split(b"\n"):
                if (new := change(line)) != line:
                    file.seek(offset)
                    file.write(new)
                offset += len(line) + 1
            os.fsync(file.fileno())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot write {paths.journal}: {error.strerror or error}", ROOM) from error


def parse_line(line: bytes) -> Operation | None:
    """Return the operation on a line of the journal, or None."""
    try:
        return stored_fields.load(Operation, json.loads(line))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
