"""A file in which a client writes a session."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sessgit.model import ids
from sessgit.model.frozen import frozen


@frozen
class Transcript:
    """A session's file: where it is, the agent's id of the session by its name, and the name of the agent."""

    path: Path
    agent_id: str
    agent: str

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)


def is_packed(path: Path) -> bool:
    """Return whether a file is compressed; a client unpacks it before it writes to it."""
    return path.suffix == ".zst"


def file_end(path: Path, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, and its size; nothing if it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            return file.read(min(size, most)), size
    except OSError:
        return b"", 0


def entries(folder: Path) -> list[Path]:
    """Return what lies in a folder, by name; nothing if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def resolved_in(folder: Path, path: Path) -> Path | None:
    """Return where a path that someone else names leads, links resolved, relative to the folder; None if there is no
    file below the folder, or a link is in its place."""
    try:
        real, top = path.resolve(strict=True), folder.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    is_file = real.is_relative_to(top) and real.is_file() and not path.is_symlink()
    return real.relative_to(top) if is_file else None


def is_real_folder(path: Path) -> bool:
    """Return whether there is a folder, and no link to one."""
    try:
        return not path.is_symlink() and path.is_dir()
    except OSError:
        return False


def holds_bytes(path: Path) -> bool:
    """Return whether there is a regular file that is not empty; the client may delete it at any time."""
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_size > 0
