"""The store's log: errors of background processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessgit import __version__
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.store import private_files

_MAX_SIZE = 1 << 20


@frozen
class LogEntry:
    """A line of the log; `time` is RFC 3339 in UTC, `version` that of the program."""

    time: str
    version: str
    message: str


def write(path: Path, now: float, message: str) -> None:
    """Append one line; a log over 1 MiB is renamed to `log.1` first. Never raises."""
    line = f"{canonical.rfc3339(now)} {__version__} {canonical.one_line(message, 1000)}\n"
    try:
        if path.exists() and path.stat().st_size > _MAX_SIZE:
            path.replace(path.with_name(path.name + ".1"))
        with private_files.open_append(path) as file:
            private_files.write_all(file, line.encode("utf-8", "replace"))
    except OSError:
        return


def entries(path: Path) -> Iterator[LogEntry]:
    """Yield the entries, oldest first."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        parts = line.split(" ", 2)
        if len(parts) == 3:
            yield LogEntry(*parts)
