"""The store's log: what went wrong where nobody was there to be told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sessgit import __version__
from sessgit.model import canonical

_MAX_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the log; `time` is RFC 3339 in UTC, `version` that of the program that wrote it."""

    time: str
    version: str
    message: str


def write(path: Path, now: float, message: str) -> None:
    """Appends one line; a log over 1 MiB is begun anew, the last one kept beside it. Never raises."""
    line = f"{canonical.rfc3339(now)} {__version__} {canonical.one_line(message, 1000)}\n"
    try:
        if path.exists() and path.stat().st_size > _MAX_SIZE:
            path.replace(path.with_name(path.name + ".1"))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(line.encode("utf-8", "replace"))
    except OSError:
        return


def entries(path: Path) -> Iterator[LogEntry]:
    """The entries, oldest first."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        parts = line.split(" ", 2)
        if len(parts) == 3:
            yield LogEntry(*parts)
