"""Imports folders of other systems into a store, and exports sessions of a store to such folders."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.errors import ROOM, ConflictError, SessgitError, UsageError
from sessgit.exchange.files import Link
from sessgit.model.foreign_session import ForeignFolder, SourceFile
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress

if TYPE_CHECKING:
    from sessgit import ImportedSession, Session, SessionImport, Store

MODULES = {"rlm": "rlm", "dialectic": "dialectic", "apex": "apex", "io-log": "iolog"}
"""The module of each system: `read` reads a folder, `write` makes the files of a session, or `write_session` of one in
a store, and `merge_documents` merges a file that sessions share."""


def _module(system: str) -> Any:
    if system not in MODULES:
        raise UsageError(f"unknown system “{system}”", f"SYSTEM is one of {', '.join(sorted(MODULES))}.")
    return import_module(f"sessgit.exchange.{MODULES[system]}")


# Import


@frozen
class FolderImport:
    """What an import of a folder did, or would do, and what became of each file of the folder."""

    system: str
    report: SessionImport
    files: tuple[SourceFile, ...]

    @property
    def sessions(self) -> tuple[ImportedSession, ...]:
        """All sessions of the folder."""
        return self.report.sessions

    @property
    def changed(self) -> tuple[ImportedSession, ...]:
        """The sessions that are new or have changed."""
        return tuple(one for one in self.sessions if one.outcome in ("new", "grown", "changed"))

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """The ids of sessions that could not be imported, and why."""
        return tuple((one.source_id, one.why) for one in self.sessions if one.outcome in ("conflict", "failed"))

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """What could not be imported, and why: sessions by id, files by path."""
        return (*self.refused, *((file.path, file.why) for file in self.files if file.outcome == "damaged"))


def import_folder(
    store: Store, system: str, folder: Path, progress: Progress, *, dry_run: bool = False
) -> FolderImport:  # fmt: skip
    """Import the sessions in a folder of the system. Raises what `Store.import_sessions` raises, and NotFoundError if
    it is not a folder of the system."""
    source: ForeignFolder = _module(system).read(folder)
    report = store.import_sessions(source.sessions, system, dry_run=dry_run, progress=progress)
    ids = [session.id for session in report.sessions]
    sessions = tuple(
        replace(one, why=f"{one.why}: {_paths_of(one.source_id, source.files)}") if ids.count(one.id) > 1 else one
        for one in report.sessions
    )
    out = {file.path: file for file in source.files}
    for one in sessions:  # the main file of a session also says what of it did not fit
        own = [file for file in source.files if file.outcome == "imported" and file.session == one.source_id]
        if one.notes and own:
            main = min(own, key=lambda file: (file.why.startswith("kept "), file.path.count("/"), file.path))
            out[main.path] = replace(main, why="; ".join(filter(None, (main.why, *one.notes))))
    return FolderImport(system, replace(report, sessions=sessions), tuple(out.values()))


def _paths_of(session: str, files: Sequence[SourceFile]) -> str:
    """Return the paths of two files that are of the session, in different folders if there are some."""
    paths = [file.path for file in files if file.session == session and file.outcome != "left"]
    firsts = list({path.rpartition("/")[0]: path for path in reversed(paths)}.values())[::-1]
    return " and ".join((firsts if len(firsts) > 1 else paths)[:2])


# Export


def export_sessions(system: str, sessions: Sequence[Session], folder: Path, progress: Progress) -> int:
    """Write sessions to a folder in the layout of the system, and return the number of files. A link that exists stays.

    Raises ConflictError, and writes nothing, if a file in the folder has other content.
    """
    module, files, links = _module(system), dict[str, bytes](), dict[str, Link]()
    for session in sessions:
        own: Mapping[str, bytes | Link] = (
            module.write_session(session, progress)
            if hasattr(module, "write_session")
            else module.write(session.snapshot(system, progress))
        )
        for path, data in own.items():
            if isinstance(data, Link):
                links.setdefault(path, data)
                continue
            merged = _merged(module, path, files[path], data) if path in files else data
            if merged is None:
                raise SessgitError(f"two of them would have the file {path}", "Export them into separate folders.")
            files[path] = merged
    planned = [_planned(module, folder, path, data) for path, data in files.items()]
    for place, before, after in planned:
        if before != after:
            _write(place, after, replaces=before is not None)
    for path, target in links.items():
        with suppress(OSError):  # there is one, or the file system has none
            (folder / path).symlink_to(target)
    return len(planned)


def _merged(module: Any, path: str, there: bytes, more: bytes) -> bytes | None:
    """Return one file of two with the same path, None if sessions do not share it."""
    merged: bytes | None = module.merge_documents(path, there, more) if hasattr(module, "merge_documents") else None
    return merged


def _planned(module: Any, folder: Path, path: str, data: bytes) -> tuple[Path, bytes | None, bytes]:
    """Return a file with the bytes that it has and will have; raises ConflictError if another file is in the way."""
    place = folder / path
    above = [place.parents[n] for n in range(path.count("/"))]
    odd = next((one for one in above if one.is_symlink() or (one.exists() and not one.is_dir())), None)
    if odd is not None:
        raise ConflictError(f"{odd} is not a folder", "Nothing was written. Name another folder.")
    if not place.exists() and not place.is_symlink():
        return place, None, data
    before = None
    with suppress(OSError):
        before = place.read_bytes() if stat.S_ISREG(place.lstat().st_mode) else None
    after = data if before == data else _merged(module, path, before, data) if before is not None else None
    if after is None:
        raise ConflictError(
            f"{place} already exists with other contents",
            "Nothing was written. Name another folder.",
        )
    return place, before, after


def _write(path: Path, data: bytes, *, replaces: bool) -> None:
    """Write a whole file, readable only by its owner; raises ConflictError if a new file exists meanwhile."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if replaces:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)  # unlike a rename, it fails if the file exists
    except FileExistsError as error:
        raise ConflictError(f"{path} now exists with other contents", "It was not changed.") from error
    except OSError as error:
        raise SessgitError(f"cannot write {path}: {error.strerror or error}", ROOM) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
