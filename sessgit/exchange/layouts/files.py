"""The files of a folder that somebody else wrote: found without following a link, read with bounds, accounted for."""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from sessgit.errors import NotFoundError, UsageError
from sessgit.model import canonical
from sessgit.model.foreign_session import ForeignSession, Outcome, SourceFile

LARGEST_FILE = 64 << 20
"""Bytes of a file, also of one that is unpacked."""
MOST_ENTRIES = 50_000
"""Files and folders that are looked at."""
MOST_LEVELS = 100
"""How deep values in JSON may lie in each other."""
_DEEPEST_FOLDER = 32
_LONGEST_NAME = 150
_LATEST_TIME = 253402300799

Kind = Literal["file", "link", "other"]


class DamagedFileError(Exception):
    """A file whose content cannot be had; `str()` says why, in words for a person."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies in a folder: a file, a link (`target` is where it leads) or something else, as a pipe."""

    path: str
    kind: Kind
    size: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """The objects of a file with one on each line, those lines that are none, and whether the last one is torn: it has
    no newline and is no JSON, as an append-only file looks whose writer was killed."""

    values: tuple[dict[str, Any], ...]
    damaged: tuple[int, ...] = ()
    torn: bool = False

    @property
    def why(self) -> str:
        """What is wrong with the file in words, or ``""``."""
        parts = []
        if self.damaged:
            many = len(self.damaged)
            parts.append(f"line {self.damaged[0]} is not JSON" if many == 1 else f"{many:,} lines are not JSON")
        return "; ".join([*parts, *(["its last line is torn"] if self.torn else [])])


@dataclass
class Folder:
    """A folder that is read. Paths are below it, with `/`; nothing outside is read, and no link is followed.

    What became of each file is noted with `note`; one of which nobody says anything counts as left.
    """

    root: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    noted: dict[str, SourceFile] = field(default_factory=dict)

    def names(self, pattern: str) -> list[str]:
        """The paths of regular files that fit a pattern as `sessions/*/io.log`: `*` is any part of one name."""
        return [path for path, entry in self.entries.items() if entry.kind == "file" and matches_pattern(path, pattern)]

    def below(self, folder: str) -> list[str]:
        """The paths of all regular files below a folder, ``""`` for all."""
        start = f"{folder}/" if folder else ""
        return [path for path, entry in self.entries.items() if entry.kind == "file" and path.startswith(start)]

    def has(self, path: str) -> bool:
        """Whether there is a regular file."""
        entry = self.entries.get(path)
        return entry is not None and entry.kind == "file"

    def data(self, path: str) -> bytes:
        """The bytes of a file as they are; raises DamagedFileError."""
        return _read_bytes(self.root / path)

    def unpacked(self, path: str) -> bytes:
        """The bytes of a file, unpacked where its name ends in `.gz`; raises DamagedFileError."""
        data = self.data(path)
        return gunzip(data) if path.endswith(".gz") else data

    def json(self, path: str) -> Any:
        """The value that a file holds; raises DamagedFileError."""
        return parse_json(self.unpacked(path))

    def object(self, path: str) -> dict[str, Any]:
        """The object that a file holds; raises DamagedFileError where it holds another value."""
        value = self.json(path)
        if not isinstance(value, dict):
            raise DamagedFileError("it is not an object")
        return value

    def lines(self, path: str) -> Lines:
        """The objects of a file of JSON lines, whatever is wrong with others of its lines; raises DamagedFileError."""
        return parse_lines(self.unpacked(path))

    def note(self, path: str, outcome: Outcome, why: str = "", session: str = "") -> None:
        """What became of a file; the last word counts, but that of a damaged one stays."""
        known = self.noted.get(path)
        if known is not None and known.outcome == "damaged" and outcome != "damaged":
            return
        self.noted[path] = SourceFile(printable_path(path), outcome, why, session)

    def files(self) -> tuple[SourceFile, ...]:
        """Every file in order, with what became of it."""
        return tuple(
            self.noted.get(path) or _unknown_entry_outcome(entry) for path, entry in sorted(self.entries.items())
        )


def open_folder(root: Path, *only: str) -> Folder:
    """The folder with all that lies below it, or below those folders in it that are wanted `only` where there is one;
    raises NotFoundError, or UsageError where there is too much."""
    if not root.is_dir():
        raise NotFoundError(f"there is no folder {root}", "Name the folder of the other system.")
    folder = Folder(root)
    parts = [name for name in only if not (root / name).is_symlink() and (root / name).is_dir()]
    for part in parts or [""]:
        for entry in _walk(root, PurePosixPath(part), 0):
            folder.entries[entry.path] = entry
            if len(folder.entries) > MOST_ENTRIES:
                raise UsageError(
                    f"{root} holds more than {MOST_ENTRIES:,} files", "Name the folder of the sessions in it."
                )
    folder.entries = dict(sorted(folder.entries.items()))
    return folder


def list_folder(root: Path) -> list[Entry]:
    """What lies in the folder itself, folders left out."""
    every = _walk(root, PurePosixPath(), _DEEPEST_FOLDER)
    return [entry for entry in every if entry.kind != "other" or not (root / entry.path).is_dir()]


def subfolder(folder: Folder, start: str) -> Folder:
    """The same folder with only what lies below a part of it; what is noted there counts in both."""
    prefix = f"{start}/" if start else ""
    kept = {path: entry for path, entry in folder.entries.items() if path.startswith(prefix)}
    return Folder(folder.root, kept, folder.noted)


def matches_pattern(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern in which `*` is any part of one name."""
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(_name_matches, names, wanted))


def _name_matches(name: str, wanted: str) -> bool:
    before, star, after = wanted.partition("*")
    if not star:
        return name == wanted
    return len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after)


def printable_path(path: str) -> str:
    """A path as it can be told: no control characters, no halves of characters."""
    text = canonical.printable(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return text.replace("\n", "\ufffd").replace("\t", "\ufffd")


def sort_parents_first(sessions: Iterable[ForeignSession]) -> tuple[ForeignSession, ...]:
    """The sessions in their order, but each behind its parent; of those in a circle the first one stays in front."""
    every = list(sessions)
    by_id = {one.id: one for one in reversed(every)}
    done = dict[int, ForeignSession]()
    for one in every:
        chain = dict[int, ForeignSession]()
        following: ForeignSession | None = one
        while following is not None and id(following) not in done and id(following) not in chain:
            chain[id(following)] = following
            following = by_id.get(following.parent) if following.parent else None
        done.update(reversed(chain.items()))
    return tuple(done.values())


# Bytes


def gunzip(data: bytes, most: int = LARGEST_FILE) -> bytes:
    """What gzip packed, however many members there are; raises DamagedFileError where it is none, or too much."""
    out = bytearray()
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            out += stream.decompress(data, most + 1 - len(out))
        except zlib.error as error:
            raise DamagedFileError("it is compressed and damaged") from error
        if len(out) > most:
            raise DamagedFileError(f"it holds more than {most >> 20} MB, unpacked")
        if not stream.eof:
            raise DamagedFileError("it is compressed and truncated")
        data = stream.unused_data.lstrip(b"\0")
    return bytes(out)


def parse_json(data: bytes) -> Any:
    """The value of JSON in UTF-8, with no half of a character in it, and none for what is no number; raises
    DamagedFileError."""
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise DamagedFileError("it is not UTF-8") from error
    except RecursionError as error:
        raise DamagedFileError("its values are nested too deeply") from error
    except ValueError as error:
        raise DamagedFileError("it is empty" if not data.strip() else "it is not JSON") from error
    return _clean_value(value, 0)


def parse_lines(data: bytes) -> Lines:
    """The objects of JSON lines; a line that is none is passed over, and so is an empty one."""
    values, damaged = list[dict[str, Any]](), list[int]()
    parts = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    torn = False
    for number, line in enumerate(parts, start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except DamagedFileError:
            value = None
        if isinstance(value, dict):
            values.append(value)
        elif number == len(parts):
            torn = True
        else:
            damaged.append(number)
    return Lines(tuple(values), tuple(damaged), torn)


def json_document(value: Any) -> bytes:
    """A value as a file of JSON, its keys in their order."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode("utf-8", "replace") + b"\n"


def json_line(value: Any) -> bytes:
    """A value as a line of JSON with its newline."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def storable_path(path: str) -> str:
    """A path as a file can be kept by it in a session: each name is one that any system can have."""
    return "/".join(_storable_name(name) for name in printable_path(path).split("/") if name) or "_"


def _storable_name(name: str) -> str:
    name = name[-_LONGEST_NAME:].replace("\\", "_").replace(":", "_")
    is_odd = name.rstrip(" .").lower() in ("", ".git", "git~1") or name.endswith((".", " "))
    return f"_{name.strip(' .')}_" if is_odd else name


# Values of a kind


def text_or_empty(value: object) -> str:
    """The value where it is a text, else ``""``."""
    return value if isinstance(value, str) else ""


def nonempty_texts(value: object) -> tuple[str, ...]:
    """The texts of a list that are not empty."""
    return tuple(one for one in list_or_empty(value) if isinstance(one, str) and one)


def list_or_empty(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def dict_or_empty(value: object) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [one for one in list_or_empty(value) if isinstance(one, dict)]


def count_or_zero(value: object) -> int:
    """The value where it is a whole number from 0, else 0."""
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def number_or_none(value: object) -> float | None:
    """The value where it is a number, else None."""
    return float(value) if type(value) in (int, float) and abs(value) < 1e300 else None  # type: ignore[arg-type]


def parse_seconds(value: object) -> float | None:
    """A time in seconds since 1970, out of a number of seconds or an RFC 3339 text; None where it is no time between
    1970 and 9999, and for 0, which stands for none."""
    if isinstance(value, str):
        return canonical.seconds(value)
    found = number_or_none(value)
    return found if found is not None and 0 < found < _LATEST_TIME else None


def format_time(value: object) -> str:
    """The same as RFC 3339, or ``""``."""
    found = parse_seconds(value)
    return "" if found is None else canonical.rfc3339(found)


def _clean_value(value: Any, depth: int) -> Any:
    if depth > MOST_LEVELS:
        raise DamagedFileError("its values are nested too deeply")
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean_value(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {_clean_value(key, depth): _clean_value(one, depth + 1) for key, one in value.items()}
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def _unknown_entry_outcome(entry: Entry) -> SourceFile:
    if entry.kind == "link":
        return SourceFile(
            printable_path(entry.path),
            "left",
            f"it is a link to {printable_path(entry.target)}; links are not followed",
        )
    if entry.kind == "other":
        return SourceFile(printable_path(entry.path), "left", "it is not a regular file")
    return SourceFile(printable_path(entry.path), "left", "unknown kind of file")


def _walk(root: Path, at: PurePosixPath, depth: int) -> Iterator[Entry]:
    try:
        with os.scandir(root / at) as found:
            inside = sorted(found, key=lambda entry: entry.name)
    except OSError:
        yield Entry(str(at), "other")
        return
    for entry in inside:
        path = str(at / entry.name)
        if entry.is_symlink():
            yield Entry(path, "link", target=_link_target(root / path))
        elif entry.is_dir(follow_symlinks=False):
            if depth >= _DEEPEST_FOLDER:
                yield Entry(path, "other")
            else:
                yield from _walk(root, at / entry.name, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield Entry(path, "file", entry.stat(follow_symlinks=False).st_size)
        else:
            yield Entry(path, "other")


def _link_target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _read_bytes(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise DamagedFileError(f"it cannot be read: {why}") from error
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise DamagedFileError("it is not a regular file")
        parts, size = list[bytes](), 0
        try:
            while part := file.read(1 << 20):
                parts.append(part)
                size += len(part)
                if size > LARGEST_FILE:
                    raise DamagedFileError(f"it is larger than {LARGEST_FILE >> 20} MB")
        except OSError as error:
            raise DamagedFileError(f"it cannot be read: {error.strerror or error}") from error
    return b"".join(parts)
