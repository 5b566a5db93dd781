"""Lines of a transcript, each with its bytes, its place, and what its agent means by it; they are redacted as they are
read."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from sessgit.agents import is_packed
from sessgit.errors import NotFoundError, SessgitError
from sessgit.model import ids, json_strings
from sessgit.model.conversation.message import Extent
from sessgit.model.frozen import frozen

CHOSEN = 3
"""The rank of a title that a person chose."""
_BOM = b"\xef\xbb\xbf"
NOWHERE = Extent(0, 0)
"""The place of a line that is read from the store."""


class Base(NamedTuple):
    """What a file goes on from: the agent's id of the session with the lines before it, the ordinal of the first line
    that no longer belongs to it, and the length in bytes of what does in that session's file."""

    agent_id: str
    ordinal: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Line(ABC):
    """A line as it is stored: redacted, without its newline.

    `original` is what the agent wrote where that differs; `data` is None where the line is no JSON object. What the
    line means is its agent's to say.
    """

    raw: bytes
    extent: Extent
    data: dict[str, Any] | None
    original: bytes | None = None
    secrets: int = 0

    @property
    def written(self) -> bytes:
        """Return what the agent wrote, without the newline."""
        return self.raw if self.original is None else self.original

    @property
    def is_unended(self) -> bool:
        """Return whether the file ended behind the line without a newline."""
        return self.extent.length == len(self.written) > 0

    def text(self, key: str) -> str:
        """Return the value of a top-level key where it is a string, else ""."""
        value = self.data.get(key) if self.data else None
        return value if isinstance(value, str) else ""

    @property
    @abstractmethod
    def type(self) -> str:
        """Return the kind of line, as the agent names it."""

    @property
    def is_known(self) -> bool:
        """Return whether the agent could have written the line, rather than another program that writes JSON."""
        return bool(self.type)

    @property
    def uuid(self) -> str:
        """Return the line's id, or "" if it has none: recorded lines are recognized by it. Of an agent whose lines have
        no ids, one made of their bytes."""
        return ids.line_id(self.raw, 0) if self.data is not None else ""

    @property
    def is_anonymous(self) -> bool:
        """Return whether the line has no id of its own, but one made of its bytes."""
        return self.data is not None and self.uuid == ids.line_id(self.raw, 0)

    @property
    def parent(self) -> str:
        """Return the id of the line that this one follows, or "" if the agent's files are in order and do not say."""
        return ""

    @property
    def is_root(self) -> bool:
        """Return whether the line says that nothing comes before it, rather than not saying what does."""
        return False

    @property
    def session(self) -> str:
        """Return the agent's id of the session that the line names as its own, or ""."""
        return ""

    @property
    def forked_from(self) -> str:
        """Return the agent's id of the session that the line says it was copied from, or ""."""
        return ""

    @property
    def began_by(self) -> str:
        """Return the agent's id of the session that the line says began this one as a subagent, or ""."""
        return ""

    @property
    def base(self) -> Base | None:
        """Return what the file goes on from if the line, its first one, says that it has not all lines itself."""
        return None

    @property
    def ordinal(self) -> int | None:
        """Return the number of the line in its history, counted on from the base, or None if lines have none."""
        return None

    @property
    @abstractmethod
    def message_text(self) -> str:
        """Return all that the line's message says, or ""."""

    @property
    @abstractmethod
    def time(self) -> str:
        """Return the line's own time, RFC 3339 in UTC with milliseconds, or ""."""

    @property
    def cwd(self) -> str:
        """Return the working folder that the line names, or ""."""
        return self.text("cwd")

    @property
    def version(self) -> str:
        """Return the version of the client that the line names, or ""."""
        return self.text("version")

    @property
    def git_branch(self) -> str:
        """Return the branch of the project's git repository that the line names, or ""."""
        return ""

    @property
    def slug(self) -> str:
        """Return the name of the session's plan that the line names, or ""."""
        return ""

    @property
    def title(self) -> tuple[str, int] | None:
        """Return the title of the session that the line gives, and its rank, at most `CHOSEN`; None if it gives
        none."""
        return None

    @property
    def is_headless(self) -> bool | None:
        """Return whether a program ran the client rather than a person, or None if the line does not say."""
        return None

    @property
    @abstractmethod
    def is_prompt(self) -> bool:
        """Return whether a person, or the program that stands for one, gives the agent something to do here."""

    @property
    def prompt_id(self) -> str:
        """Return the identity of the turn that the line opens, if it is a prompt: its id, or one made of its bytes and
        place if that is not fit for a turn's key."""
        return self.uuid if ids.is_turn_key(self.uuid) else ids.line_id(self.raw, self.extent.offset)

    @property
    @abstractmethod
    def is_said(self) -> bool:
        """Return whether the line is a message, of the person or of the model."""

    @property
    @abstractmethod
    def is_result(self) -> bool:
        """Return whether the line brings the result of a tool."""

    @property
    @abstractmethod
    def is_work(self) -> bool:
        """Return whether the agent is at work here: an answer of the model or the result of a tool."""

    @property
    @abstractmethod
    def is_body(self) -> bool:
        """Return whether a turn's body can end with the line."""

    @property
    def is_boundary(self) -> bool:
        """Return whether a compaction begins here: what came before is no longer sent to the model."""
        return False

    @property
    def turns_rolled_back(self) -> int:
        """Return how many of the last turns the next prompt leaves behind, for an agent whose lines are in the order of
        the file and say so."""
        return 0

    @property
    def is_sidechain(self) -> bool:
        """Return whether the line is a subagent's and not the conversation's own."""
        return False

    @property
    @abstractmethod
    def is_end(self) -> bool:
        """Return whether the turn can be over with the line: the model has answered, and calls no tool."""


def parse(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a line, or None; a line too long or too deep to be read is not read.

    What msgspec reads it reads as `json` does, in half the time. It refuses some that a client may write: lone
    surrogates, numbers without an end, a byte order mark.
    """
    if len(raw) > json_strings.LONGEST_LINE:
        return None
    try:
        data = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        try:  # bytes may be taken for UTF-16
            data = json.loads(raw.removeprefix(_BOM).decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return None
    return data if isinstance(data, dict) else None


def member_reader(*keys: str) -> Callable[[bytes], tuple[Any, ...] | None]:
    """Return a function that reads these members of the object on a line, each None where there is none, and returns
    None instead of them where `parse` does. It makes no objects of the rest, and takes a quarter of the time."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Members", [(key, Any, None) for key in keys])).decode
    values = attrgetter(*keys)

    def read(raw: bytes) -> tuple[Any, ...] | None:
        if len(raw) > json_strings.LONGEST_LINE:
            return None
        try:
            members: tuple[Any, ...] = values(decode(raw.decode()))  # msgspec checks the text of what it reads only
        except (ValueError, RecursionError):
            data = parse(raw)
            return None if data is None else tuple(map(data.get, keys))
        return members

    return read


def split(data: bytes, offset: int) -> Iterator[tuple[bytes, Extent]]:
    """Yield the complete lines of a piece of a file that starts at `offset`; what follows the last newline is left
    out."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end], Extent(offset + start, end + 1 - start)
        start = end + 1


# Lines out of a file


_CHUNK = 8 << 20
_HEAD = 64 << 10
_END = 64 << 10
"""So many bytes of the end of a line tell that it is still there."""

Redact = Callable[[bytes], tuple[bytes, int]]
Make = Callable[[bytes, Extent, Redact], Line]
"""Makes a line of its bytes and its place."""


@frozen
class Opened:
    """An open transcript as it was when it was opened: `size` in bytes, `modified` in seconds since 1970."""

    file: BinaryIO
    inode: int
    size: int
    modified: float

    def at(self, offset: int, length: int) -> bytes:
        """Return so many bytes of the file, fewer at its end, however many a cursor may ask for."""
        length = min(length, self.size - offset)
        self.file.seek(offset)
        parts = []
        while length > 0 and (part := self.file.read(length)):
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def raw(self, start: int, end: int, chunk: int) -> Iterator[tuple[bytes, Extent]]:
        """Yield the lines between two places as the agent wrote them, and last what follows the last newline, as
        long as its extent."""
        while data := self.at(start, min(chunk, end - start)):
            lines = deque(split(data, start)) or deque([self._long(start, end, chunk)])
            del data
            start = lines[-1][1].end
            while lines:
                yield lines.popleft()

    def _long(self, start: int, end: int, chunk: int) -> tuple[bytes, Extent]:
        """Return the line that begins at a place, or what there is of it."""
        line, at = BytesIO(), start
        while data := self.at(at, min(chunk, end - at)):
            newline = data.find(b"\n")
            at += line.write(data if newline < 0 else data[:newline])
            if newline >= 0:
                return line.getvalue(), Extent(start, at + 1 - start)
        return line.getvalue(), Extent(start, at - start)


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Yield the file at `path`, which must be a regular one; a link, a folder or a pipe is refused and never waited
    for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            os.close(handle)
            hint = "Name a file, or move that one away."
            raise SessgitError(f"cannot read {path}: it is not a regular file", hint)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}") from error
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or error
        raise SessgitError(f"cannot read {path}: {reason}") from error
    except ValueError as error:  # NUL or half a character in it
        raise NotFoundError(f"{path} cannot be a file path") from error
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not is_packed(path):
            yield Opened(file, info.st_ino, info.st_size, info.st_mtime)
            return
        import tempfile  # which a hook never needs, nor the other two below

        with tempfile.TemporaryFile(buffering=0) as plain:
            _unpack(path, file, plain)
            size = plain.seek(0, os.SEEK_END)
            plain.seek(0)
            yield Opened(plain, info.st_ino, size, info.st_mtime)


def _unpack(path: Path, packed: BinaryIO, plain: BinaryIO) -> None:
    """Write what a file holds that is compressed with zstd."""
    import shutil
    import subprocess

    try:
        if sys.version_info >= (3, 14):
            from compression import zstd

            with zstd.open(packed) as source:
                shutil.copyfileobj(source, plain)
        else:
            subprocess.run(["zstd", "-dc"], stdin=packed, stdout=plain, stderr=subprocess.DEVNULL, check=True)
    except FileNotFoundError as error:
        hint = "Install the program zstd, or use Python 3.14."
        raise SessgitError(f"cannot read {path}: it is compressed with zstd", hint) from error
    except Exception as error:  # with Python 3.14 a ZstdError, which older versions do not have
        raise SessgitError(f"cannot read {path}: what is compressed in it is damaged") from error


def complete_lines(path: Path, start: int = 0, chunk: int = _CHUNK) -> Iterator[tuple[bytes, Extent]]:
    """Yield the lines of a file from a place on, with their places, read so many bytes at once; none if the file is
    gone or is no regular one. A last line without a newline is one if it is a complete JSON object."""
    with suppress(SessgitError), opened(path) as source:
        for raw, extent in source.raw(start, source.size, chunk):
            if extent.length > len(raw) or parse(raw) is not None:
                yield raw, extent


def no_redaction(raw: bytes) -> tuple[bytes, int]:
    """Return the line as it is, and that no secret was replaced."""
    return raw, 0


class Reader:
    """Reads forward from the file's beginning; `offset` is then behind the last line, `torn` what follows it.

    A last line without a newline is a line if it is a complete JSON object, and else torn: the client may be writing
    it. `unended` says that the last line has none. One line may be as long as all else in memory together: of that
    there is no second copy.
    """

    def __init__(self, source: Opened, make: Make, redact: Redact = no_redaction) -> None:
        self.offset = 0
        self.torn = b""
        self.unended = False
        self.source = source
        self._redact = redact
        self._make = make
        self._last = b"", 0

    def lines(self, chunk: int = _CHUNK) -> Iterator[Line]:
        """Yield each line up to the size that the file had when it was opened, read so many bytes at once."""
        for raw, extent in self.source.raw(self.offset, self.source.size, chunk):
            line = self._make(raw, extent, self._redact)
            if line.is_unended and line.data is None:
                self.torn = raw
                return
            self.offset, self.unended = extent.end, line.is_unended
            self._last = raw[-_END:], extent.offset + len(raw)
            yield line

    def head(self) -> Iterator[Line]:
        """Yield each line, read a little at once: what is looked for is most often on the first ones."""
        return self.lines(_HEAD)

    def settled(self) -> Iterator[Line]:
        """Yield each line, but not a last prompt that nothing was done about, nor what follows it: these are not
        read yet."""
        waiting: list[Line] = []
        for line in self.lines():
            if line.is_prompt:
                yield from waiting
                waiting = [line]
            elif waiting and not line.is_work:
                waiting.append(line)
            else:
                yield from waiting
                yield line
                waiting = []
        if waiting:
            self.offset, self.unended = waiting[0].extent.offset, False

    def resume(self, offset: int, *, unended: bool) -> bool:
        """Continue from where reading ended, behind a line that had no newline then if `unended`; returns False where
        that line has been gone on with, so that it is another one now."""
        next_byte = self.source.at(offset, 1) if unended else b""
        if next_byte in (b"", b"\n"):
            self.offset, self.unended = offset + len(next_byte), unended and not next_byte
            return True
        return False

    def is_as_read(self) -> bool:
        """Return whether the last line is still where it was read: the client may have taken it back meanwhile."""
        end, place = self._last
        return self.source.at(place - len(end), len(end)) == end

    def tail(self) -> list[Line]:
        """Return the torn last line, if there is one."""
        if not self.torn:
            return []
        return [self._make(self.torn, Extent(self.offset, len(self.torn)), self._redact)]

    def again(self, extent: Extent) -> list[Line]:
        """Return the lines of an extent, read again; none where the file is too short for it.

        A last line that had no newline has its newline in its place, if one has come since.
        """
        lines, end = list[Line](), extent.offset
        for raw, where in self.source.raw(extent.offset, extent.end, _CHUNK):
            end = where.end
            is_unended = where.length == len(raw)
            place = Extent(where.offset, where.length + (is_unended and self.source.at(end, 1) == b"\n"))
            lines.append(self._make(raw, place, self._redact))
        return lines if end == extent.end and len(lines) == extent.lines else []
