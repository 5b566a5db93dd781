"""Reads a folder that another program wrote: follows no link, has limits, and reports what became of each file."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from sessgit.errors import NotFoundError, UsageError
from sessgit.model import canonical
from sessgit.model.foreign_session import ForeignSession, Outcome, SourceFile, agent_id
from sessgit.model.frozen import frozen

_T = TypeVar("_T")
LARGEST_FILE = 64 << 20
"""Bytes of a file, also when decompressed, and of all files that are kept of a session."""
MOST_ENTRIES = 50_000
"""Files and folders that are looked at."""
MOST_LEVELS = 100
"""Nesting of JSON values."""
_DEEPEST_FOLDER = 32
_LONGEST_NAME = 150


class Link(str):
    """The target of a symbolic link that an export makes, relative to its folder."""

    __slots__ = ()


class DamagedFileError(Exception):
    """A file whose content cannot be read; `str()` is the reason, for the report."""


@frozen
class Entry:
    """A file, a link (`target` is where it leads) or something else in a folder, such as a pipe."""

    path: str
    kind: Literal["file", "link", "other"]
    target: str = ""


@frozen
class Lines:
    """The objects of a JSON Lines file, and the numbers of damaged lines. A `torn` last line has no newline and is not
    JSON: its writer was killed."""

    values: tuple[dict[str, Any], ...]
    damaged: tuple[int, ...] = ()
    torn: bool = False

    @property
    def why(self) -> str:
        """What is wrong with the file, or ``""``."""
        damaged = [f"line {number} is not JSON" for number in self.damaged]
        if len(damaged) > 1:
            damaged = [f"{len(damaged):,} lines are not JSON"]
        return "; ".join([*damaged, *(["its last line is torn"] if self.torn else [])])


@dataclass
class Folder:
    """A folder to read. Paths are relative to it, with `/`.

    `note` reports what became of a file; a file without a note is reported as left out.
    """

    root: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    noted: dict[str, SourceFile] = field(default_factory=dict)

    def names(self, pattern: str) -> list[str]:
        """Return the paths of files that match a pattern such as `sessions/*/io.log`: `*` matches within one name."""
        regex = re.compile(re.escape(pattern).replace(r"\*", "[^/]*"), re.DOTALL)
        return [path for path in self.below("") if regex.fullmatch(path)]

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, ``""`` for all."""
        start = f"{folder.rstrip('/')}/" if folder else ""
        return [path for path, entry in self.entries.items() if entry.kind == "file" and path.startswith(start)]

    def has(self, path: str) -> bool:
        """Return whether there is a file."""
        return path in self.entries and self.entries[path].kind == "file"

    def data(self, path: str) -> bytes:
        """Return the bytes of a file; raises DamagedFileError."""
        return _read_bytes(self.root / path)

    def unpacked(self, path: str) -> bytes:
        """Return the bytes of a file, decompressed if its name ends in `.gz`; raises DamagedFileError."""
        data = self.data(path)
        return gunzip(data) if path.endswith(".gz") else data

    def object(self, path: str) -> dict[str, Any]:
        """Return the JSON object in a file; raises DamagedFileError."""
        value = parse_json(self.unpacked(path))
        if not isinstance(value, dict):
            raise DamagedFileError("it is not an object")
        return value

    def lines(self, path: str) -> Lines:
        """Return the objects in a JSON Lines file; raises DamagedFileError."""
        return parse_lines(self.unpacked(path))

    def load(self, read: Callable[[str], _T], path: str, session: str = "") -> _T | None:
        """Return what `read` reads from a file; None if the file is missing, or damaged, which is noted."""
        if not self.has(path):
            return None
        try:
            return read(path)
        except DamagedFileError as error:
            self.note(path, "damaged", str(error), session)
            return None

    def load_object(
        self, path: str, session: str = "", check: Callable[[Mapping[str, Any]], None] | None = None
    ) -> dict[str, Any] | None:  # fmt: skip
        """Return the JSON object in a file as `load` does; `check` raises DamagedFileError if it is invalid."""

        def read(path: str) -> dict[str, Any]:
            document = self.object(path)
            if check is not None:
                check(document)
            return document

        return self.load(read, path, session)

    def keep(self, path: str, name: str, session: str, kept: dict[str, bytes], why: str = "kept as it is") -> None:
        """Add a file to those kept with a session, and note it. A file is left out if its name is taken, or the session
        has too many bytes of files."""
        data = self.load(self.data, path, session)
        if data is None:
            return
        place = storable_path(name)
        if place in kept:
            self.note(path, "left", "another file has its name", session)
        elif sum(map(len, kept.values())) + len(data) > LARGEST_FILE:
            self.note(path, "left", f"the session has more than {LARGEST_FILE >> 20} MB of files", session)
        else:
            kept[place] = data
            self.note(path, "imported", why, session)

    def keep_below(self, folder: str, prefix: str, session: str, kept: dict[str, bytes]) -> None:
        """Keep all files below a folder, by their paths in it after a prefix."""
        for path in self.below(folder):
            self.keep(path, prefix + path.removeprefix(f"{folder}/"), session, kept)

    def note(self, path: str, outcome: Outcome, why: str = "", session: str = "") -> None:
        """Report what became of a file. A later note replaces an earlier one, except that damage stays."""
        known = self.noted.get(path)
        if known is None or known.outcome != "damaged" or outcome == "damaged":
            self.noted[path] = SourceFile(printable_path(path), outcome, _printable_line(why), session)

    def files(self) -> tuple[SourceFile, ...]:
        """Return all files in order, with what became of each."""
        reasons = {"file": "unknown kind of file", "other": "it is not a regular file"}
        return tuple(
            self.noted.get(path)
            or SourceFile(
                printable_path(path),
                "left",
                reasons.get(entry.kind, f"it is a link to {printable_path(entry.target)}; links are not followed"),
            )
            for path, entry in sorted(self.entries.items())
        )


def open_folder(root: Path, *only: str) -> Folder:
    """Return the folder with everything below it, or only below those of the folders `only` that exist; raises
    NotFoundError, or UsageError if there are too many files."""
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


def open_layout(folder: Path, *parts: str) -> tuple[Folder, str, Path | None]:
    """Open a project that has the folder `parts`, or one of these folders itself. Return it with the path of the last
    part in it, `""` or ending with `/`, and the folder of the project if it is known."""
    root = Path(os.path.normpath(folder.absolute()))
    for count in range(len(parts) + 1):
        inner = "/".join(parts[count:])
        if not inner or (root / inner).is_dir():
            break
    project = [root, *root.parents][count] if root.parts[len(root.parts) - count :] == parts[:count] else None
    return open_folder(root, *([] if count else parts[:1])), f"{inner}/" if inner else "", project


def list_folder(root: Path) -> list[Entry]:
    """Return what is in the folder itself, without folders."""
    entries = _walk(root, PurePosixPath(), _DEEPEST_FOLDER)
    return [entry for entry in entries if entry.kind != "other" or not (root / entry.path).is_dir()]


def printable_path(path: str) -> str:
    """Return a path for the report, without control characters and lone surrogates."""
    return _printable_line(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _printable_line(text: str) -> str:
    return canonical.printable(text).replace("\n", "\ufffd").replace("\t", "\ufffd")


def storable_path(path: str) -> str:
    """Return the path by which a file can be kept: every name in it is valid on every system."""
    return "/".join(_storable_name(name) for name in printable_path(path).split("/") if name) or "_"


def _storable_name(name: str) -> str:
    name = name[-_LONGEST_NAME:].replace("\\", "_").replace(":", "_")
    is_odd = name.rstrip(" .").lower() in ("", ".git", "git~1") or name.endswith((".", " "))
    return f"_{name.strip(' .')}_" if is_odd else name


@frozen
class SessionFile:
    """The document of a session, with its id, and whether it is archived."""

    path: str
    id: str
    document: dict[str, Any]
    archived: bool = False


def without_duplicates(source: Folder, system: str, candidates: Iterable[SessionFile]) -> list[SessionFile]:
    """Return the first of files with one id if their documents are equal, none if they are not, and note the others."""
    by_id = dict[str, list[SessionFile]]()
    for file in candidates:
        by_id.setdefault(agent_id(system, file.id), []).append(file)
    out = list[SessionFile]()
    for first, *others in by_id.values():
        if all(other.document == first.document for other in others):
            out.append(first)
            for other in others:
                why = f"it has the same contents as {printable_path(first.path)}"
                source.note(other.path, "left", why, first.id)
            continue
        for file, other in ((first, others[0]), *((other, first) for other in others)):
            why = f"{printable_path(other.path)} is another session with the same id"
            source.note(file.path, "damaged", why, file.id)
    return out


def sort_parents_first(sessions: Iterable[ForeignSession]) -> tuple[ForeignSession, ...]:
    """Return the sessions in their order, but each after its parent; in a circle, the first one stays first."""
    every = list(sessions)
    by_id = {session.id: session for session in reversed(every)}
    out = dict[int, ForeignSession]()
    for session in every:
        chain = dict[int, ForeignSession]()
        current: ForeignSession | None = session
        while current is not None and id(current) not in out and id(current) not in chain:
            chain[id(current)] = current
            current = by_id.get(current.parent) if current.parent else None
        out.update(reversed(chain.items()))
    return tuple(out.values())


# Bytes


def gunzip(data: bytes, most: int = LARGEST_FILE) -> bytes:
    """Decompress gzip data with any number of members; raises DamagedFileError if it is invalid or too large."""
    try:
        out = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    except EOFError as error:
        raise DamagedFileError("it is compressed and truncated") from error
    except (OSError, zlib.error) as error:
        raise DamagedFileError("it is compressed and damaged") from error
    if len(out) > most:
        raise DamagedFileError(f"it holds more than {most >> 20} MB, unpacked")
    return out


def parse_json(data: bytes) -> Any:
    """Return the value of JSON in UTF-8, with None for NaN and infinity, and without lone surrogates; raises
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
    """Return the objects of JSON lines; skips empty lines and reports damaged ones."""
    values, damaged = list[dict[str, Any]](), list[int]()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except DamagedFileError:
            value = None
        if isinstance(value, dict):
            values.append(value)
        else:
            damaged.append(number)
    torn = damaged[-1:] == [len(lines)]
    return Lines(tuple(values), tuple(damaged[: len(damaged) - torn]), torn)


def json_document(value: Any) -> bytes:
    """Return a value as a JSON file, with its keys in their order."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode("utf-8", "replace") + b"\n"


def json_line(value: Any) -> bytes:
    """Return a value as a line of JSON with its newline."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def _clean_value(value: Any, depth: int) -> Any:
    if depth > MOST_LEVELS:
        raise DamagedFileError("its values are nested too deeply")
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean_value(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_clean_value(key, depth): _clean_value(item, depth + 1) for key, item in value.items()}
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def _walk(root: Path, at: PurePosixPath, depth: int) -> Iterator[Entry]:
    try:
        with os.scandir(root / at) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        yield Entry(str(at), "other")
        return
    for entry in inside:
        path = str(at / entry.name)
        if entry.is_symlink():
            yield Entry(path, "link", _link_target(root / path))
        elif entry.is_dir(follow_symlinks=False) and depth < _DEEPEST_FOLDER:
            yield from _walk(root, at / entry.name, depth + 1)
        else:
            yield Entry(path, "file" if entry.is_file(follow_symlinks=False) else "other")


def _link_target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _read_bytes(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise DamagedFileError("it is not a regular file")
            parts, size = list[bytes](), 0
            while part := file.read(1 << 20):
                parts.append(part)
                size += len(part)
                if size > LARGEST_FILE:
                    raise DamagedFileError(f"it is larger than {LARGEST_FILE >> 20} MB")
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise DamagedFileError(f"it cannot be read: {why}") from error
    return b"".join(parts)
