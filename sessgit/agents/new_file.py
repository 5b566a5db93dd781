"""New files where agents keep theirs: whole or not at all, never over one that is there, never through a link."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from sessgit import agents
from sessgit.errors import ROOM, ConflictError, SessgitError
from sessgit.store.files import private

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.tmp", re.DOTALL)
_AT_ONCE = 1 << 20
"""Bytes that are written at once: the parts are turns, of which there can be thousands."""
_STALE = 600.0
"""Seconds after which nobody writes a file any more that has yet to take its place."""


def make_folder(path: Path) -> None:
    """The folder for a file of an agent's is there, its owner's alone where it is new; raises OSError, and
    SessgitError where a link would lead to it."""
    link = next(filter(None, (agent.home.link_above(path) for agent in agents.every())), None)
    if link is not None:
        raise SessgitError(f"{link} is a link; sessgit does not write through links", "Replace it with its target.")
    private.folder(path.parent)


def write(path: Path, *parts: bytes) -> None:
    """Puts a new file at `path`, whole or not at all, and never over one that is there; raises ConflictError."""
    import uuid  # which takes a millisecond, and who only reads a transcript writes none

    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        make_folder(path)
        sweep(path.parent)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb", _AT_ONCE) as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        # A link and not a rename: it fails where a file is, however late that came.
        path.hardlink_to(beside)
    except FileExistsError as error:
        raise ConflictError(f"{path} already exists", "It was not changed.") from error
    except (OSError, ValueError) as error:
        raise SessgitError(f"cannot write {path}: {getattr(error, 'strerror', '') or error}", ROOM) from error
    finally:
        with suppress(OSError, ValueError):
            beside.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Deletes what others left here who were killed before their files were whole."""
    for left in folder.glob(".*.????????.tmp"):
        with suppress(OSError):
            if _UNFINISHED.fullmatch(left.name) and abs(time.time() - left.lstat().st_mtime) > _STALE:
                left.unlink()
