"""New files where agents keep theirs: whole or not at all, never over one that is there, never through a link."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from sessgit import agents
from sessgit.errors import ROOM, ConflictError, SessgitError
from sessgit.store import private_files

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.tmp", re.DOTALL)
_AT_ONCE = 1 << 20
"""Bytes that are written at once: the parts are turns, of which there can be thousands."""
_STALE = 600.0
"""Seconds after which no process still writes a temporary file."""


def make_folder(path: Path) -> None:
    """Create the folder for a file of an agent, private to its owner; raise OSError, or SessgitError if a link leads
    to it."""
    link = next(filter(None, (agent.home.link_above(path) for agent in agents.every())), None)
    if link is not None:
        raise SessgitError(f"{link} is a link; sessgit does not write through links", "Replace it with its target.")
    private_files.make_folder(path.parent)


def write(path: Path, *parts: bytes) -> None:
    """Put a new file at `path`, whole or not at all, and never over one that is there; raises ConflictError."""
    import uuid  # which takes a millisecond, and who only reads a transcript writes none

    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        make_folder(path)
        sweep(path.parent)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb", _AT_ONCE) as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        # A link and not a rename: it fails where a file is, however late that came.
        path.hardlink_to(temporary)
    except FileExistsError as error:
        raise ConflictError(f"{path} already exists", "It was not changed.") from error
    except (OSError, ValueError) as error:
        raise SessgitError(f"cannot write {path}: {getattr(error, 'strerror', '') or error}", ROOM) from error
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Delete what others left here who were killed before their files were whole."""
    for left in folder.glob(".*.????????.tmp"):
        with suppress(OSError):
            if _UNFINISHED.fullmatch(left.name) and abs(time.time() - left.lstat().st_mtime) > _STALE:
                left.unlink()
