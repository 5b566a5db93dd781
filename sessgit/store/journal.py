"""The journal of operations: what people's commands did to the refs, written before it was done.

One JSON object a line, appended; a line that cannot be read counts as none. The format is in `docs/format.md`,
"Operations".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sessgit.errors import ROOM, StoreError
from sessgit.model import canonical
from sessgit.store import layout, locks
from sessgit.store.layout import StorePaths
from sessgit.store.transaction import Move

_TAIL_SIZE = 1 << 20
"""So much of the journal's end is read for its last line."""
_REMOVED_NAME_MARK = "@"
"""What the names begin with that stand for those of tags which are gone."""
_TAGS_PREFIX = layout.TAGS.encode()
_COMMANDS_WITHOUT_TEXT = ("archive", "unarchive", "delete", "import", "pull", "background")
"""The commands whose summaries hold no words of a conversation."""


class FileRange(NamedTuple):
    """So many bytes at a place in a file, and their SHA-256."""

    offset: int
    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileWrites:
    """What an operation does to the agent's files: those that it writes whole, with the SHA-256 of their bytes, what it
    appends to one that is there, and what it takes off one's end, each by path."""

    files: Mapping[str, str] = field(default_factory=dict)
    appended: Mapping[str, FileRange] = field(default_factory=dict)
    cut: Mapping[str, FileRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """A command's effect on the refs: `time` is RFC 3339, `summary` a line for a person.

    `undoes` is the id of the operation that it takes back, `completes` that of one which was its first step; both may
    be empty.
    """

    time: str
    command: str
    summary: str
    moves: tuple[Move, ...]
    wrote: FileWrites = FileWrites()
    undoes: str = ""
    completes: str = ""
    id: str = ""

    @property
    def files(self) -> Mapping[str, str]:
        """The files that it wrote whole, by path with the SHA-256 of their bytes."""
        return self.wrote.files


def append(beside: StorePaths, operation: Operation) -> Operation:
    """Writes the operation to the disk and returns it with its id, eight hexadecimal digits."""
    document: dict[str, Any] = {
        "time": operation.time,
        "command": operation.command,
        "summary": canonical.one_line(operation.summary, 200),
        "refs": {move.ref: [move.old, move.new] for move in operation.moves},
        "files": dict(operation.files),
        "undoes": operation.undoes,
    }
    more = {"appended": operation.wrote.appended, "cut": operation.wrote.cut, "completes": operation.completes}
    document |= {key: value for key, value in more.items() if value}
    try:
        handle = os.open(beside.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file, locks.append_lock(handle):  # so that no two get one id
            size = os.fstat(file.fileno()).st_size
            document["id"] = hashlib.sha256(json.dumps([size, document]).encode()).hexdigest()[:8]
            # A line that was torn by a full disk must not swallow this one.
            line = (b"\n" if _is_torn(beside, size) else b"") + json.dumps(document).encode() + b"\n"
            left = memoryview(line)
            while left:  # a disk that becomes full takes a part, and says so only at the next write
                left = left[file.write(left) :]
            os.fsync(file.fileno())
    except OSError as error:
        said = f"cannot write the journal: {error.strerror or error}"
        raise StoreError(said, f"Nothing was changed. {ROOM}") from error
    return replace(operation, id=str(document["id"]), summary=str(document["summary"]))


def read(beside: StorePaths, start: int = 0) -> list[Operation]:
    """The operations, oldest first; only those that were written from byte `start` on."""
    try:
        lines = beside.journal.read_bytes()[start:].split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {beside.journal}: {error.strerror or error}", "Is the file yours?") from error
    found = (parse_line(line) for line in lines if line)
    return [operation for operation in found if operation is not None]


def last(beside: StorePaths) -> Operation | None:
    """The newest operation, read without all the others."""
    try:
        size = beside.journal.stat().st_size
        with beside.journal.open("rb") as file:
            file.seek(max(0, size - _TAIL_SIZE))
            lines = file.read().rstrip(b"\n").split(b"\n")
    except OSError:
        return None
    if len(lines) > 1 or size <= _TAIL_SIZE:
        return parse_line(lines[-1])
    return next(reversed(read(beside)), None)


def redact_sessions(beside: StorePaths, sessions: Collection[str]) -> None:
    """Takes the words out of what was written down of sessions, a name or a description.

    Each is overwritten in its place, so that whoever appends meanwhile is not disturbed.
    """

    def without(line: bytes) -> bytes:
        found = parse_line(line)
        if found is None or found.command in _COMMANDS_WITHOUT_TEXT:
            return line
        return (
            _redact_line(line, found)
            if any(layout.session_of_ref(one.ref) in sessions for one in found.moves)
            else line
        )

    if sessions:
        _overwrite_lines(beside, without)


def redact_tags(beside: StorePaths, is_there: Callable[[str], bool]) -> None:
    """Takes out the names of tags of which nothing is there any more that they ever stood at; `is_there` tells of a
    commit. In its place a name gets one that no tag can have, the same one everywhere."""
    stood: dict[str, set[str]] = {}
    for operation in read(beside):
        for move in operation.moves:
            if move.ref.startswith(layout.TAGS):
                stood.setdefault(move.ref, set()).update(oid for oid in (move.old, move.new) if oid)
    names = [ref.removeprefix(layout.TAGS) for ref in stood]
    gone = [
        name for name in names if name[:1] != _REMOVED_NAME_MARK and not any(map(is_there, stood[layout.TAGS + name]))
    ]
    if not gone:
        return
    known = sum(name[:1] == _REMOVED_NAME_MARK for name in names)
    instead = {
        _json_escaped(name): _placeholder_name(len(_json_escaped(name)), n)
        for n, name in enumerate(gone, start=known + 1)
    }
    either = b"|".join(map(re.escape, instead))
    words = re.compile(
        b'(?<="%s)(?:%s)(?=")|(?:(?<="tag )|(?<=: tag ))(?:%s)(?= at | deleted")' % (_TAGS_PREFIX, either, either)
    )
    _overwrite_lines(beside, lambda line: words.sub(lambda found: instead[found[0]], line))


def _json_escaped(name: str) -> bytes:
    return json.dumps(name)[1:-1].encode()


def _placeholder_name(length: int, number: int) -> bytes:
    """A name so many bytes long that no tag has."""
    return (
        _REMOVED_NAME_MARK + str(number).zfill(length - 1)[-(length - 1) :] if length > 1 else _REMOVED_NAME_MARK
    ).encode()


def _overwrite_lines(beside: StorePaths, change: Callable[[bytes], bytes]) -> None:
    """Puts other lines, as long as they were, in the places of lines."""
    try:
        with beside.journal.open("r+b", buffering=0) as file:
            place = 0
            for line in file.read().split(b"\n"):
                if (new := change(line)) != line:
                    file.seek(place)
                    file.write(new)
                place += len(line) + 1
            os.fsync(file.fileno())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot write {beside.journal}: {error.strerror or error}", ROOM) from error


def _redact_line(line: bytes, operation: Operation) -> bytes:
    """The line, as long as it was, with a summary that says only which session it was about."""
    said = json.dumps(operation.summary).encode()
    kept = json.dumps(operation.summary.partition(":")[0]).encode() if ":" in operation.summary else b'""'
    return line.replace(b'"summary": ' + said, b'"summary": ' + kept.ljust(len(said)), 1)


def parse_line(line: bytes) -> Operation | None:
    """The operation that a line of the journal holds, or None."""
    try:
        document = json.loads(line)
        texts = [document[key] for key in ("time", "command", "summary", "undoes", "id")]
        texts.append(document.get("completes", ""))
        moves = tuple(Move(ref, *values) for ref, values in document["refs"].items())
        files = document["files"]
        appended, cut = (_parse_ranges(document.get(key, {})) for key in ("appended", "cut"))
        texts += [value for move in moves for value in (move.old, move.new) if value is not None]
        texts += [*files, *files.values()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not all(isinstance(text, str) for text in texts):
        return None
    time, command, summary, undoes, name, completes, *_ = texts
    return Operation(time, command, summary, moves, FileWrites(files, appended, cut), undoes, completes, name)


def _parse_ranges(said: dict[str, list[Any]]) -> dict[str, FileRange]:
    found = {path: FileRange(*values) for path, values in said.items()}
    for piece in found.values():
        if type(piece.offset) is not int or type(piece.length) is not int or not isinstance(piece.sha256, str):
            raise TypeError
        if piece.offset < 0 or piece.length <= 0:
            raise ValueError
    return found


def _is_torn(beside: StorePaths, size: int) -> bool:
    if not size:
        return False
    with beside.journal.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) != b"\n"
