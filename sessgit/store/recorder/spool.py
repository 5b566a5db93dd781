"""The events that wait for a recorder.

Loaded at every event: only the standard library's light modules.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import StoreError

# What the stub saves at most is 1 MiB, or 2 where the shell counts in blocks of 1,024.
MAX_BYTES = 2 << 20
STALE_SAVE_SECONDS = 600.0
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""No link is followed, and no pipe is waited for."""


@dataclass(frozen=True, slots=True)
class Event:
    """What the client told a hook; texts that this event does not carry are empty."""

    path: Path
    received: float
    name: str
    session_id: str
    transcript_path: str
    cwd: str
    last_assistant_message: str | None = None
    """May hold lone surrogates, as the transcript may."""
    source: str = ""
    reason: str = ""
    agent_transcript_path: str = ""


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """A file in the spool that is no event of a client; `why` quotes nothing of it."""

    path: Path
    received: float
    why: str


def waiting_events(spool: Path, now: float) -> list[Event | UnreadableEvent]:
    """What waits, in order of arrival; what a killed stub left half saved ten minutes ago is removed."""
    found = []
    try:
        entries = list(os.scandir(spool))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read the spool: {error.strerror or error}") from error
    for entry in entries:
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if entry.name.endswith(".json") and not stat.S_ISDIR(state.st_mode):
            found.append((state.st_mtime_ns, entry.name))
        elif entry.name.endswith(".tmp") and state.st_mtime < now - STALE_SAVE_SECONDS:
            _unlink(spool / entry.name)
    events = (_read_event(spool / name, mtime / 1e9) for mtime, name in sorted(found))
    return [event for event in events if event is not None]


def discard_event(event: Event | UnreadableEvent) -> bool:
    """Whether the event's file is gone; who reads the spool again and again has to stop where it is not."""
    return _unlink(event.path)


def _read_event(path: Path, received: float) -> Event | UnreadableEvent | None:
    """None where another recorder has discarded the file meanwhile."""
    try:
        content = _read_content(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        # A symlink ends here too: O_NOFOLLOW answers ELOOP.
        return UnreadableEvent(path, received, error.strerror or "not readable")
    if content is None:
        return UnreadableEvent(path, received, "not a regular file")
    if len(content) > MAX_BYTES:
        return UnreadableEvent(path, received, "too long")
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError):
        return UnreadableEvent(path, received, "not JSON")
    if not isinstance(payload, dict):
        return UnreadableEvent(path, received, "not an object")
    return _parse_event(path, received, payload)


def _parse_event(path: Path, received: float, payload: dict[str, object]) -> Event | UnreadableEvent:
    texts: dict[str, str] = {}
    for key in ("hook_event_name", "session_id", "transcript_path", "cwd"):
        value = payload.get(key)
        if not isinstance(value, str) or not value:
            return UnreadableEvent(path, received, f"no {key}")
        texts[key] = value
    for key in ("source", "reason", "agent_transcript_path"):
        value = payload.get(key)
        if value is not None and not isinstance(value, str):
            return UnreadableEvent(path, received, f"{key} is not a text")
        texts[key] = value or ""
    message = payload.get("last_assistant_message")
    if message is not None and not isinstance(message, str):
        return UnreadableEvent(path, received, "last_assistant_message is not a text")
    if not all(map(_without_path_breakers, texts.values())):
        return UnreadableEvent(path, received, "a text that cannot be a path")
    for key in ("transcript_path", "agent_transcript_path"):
        # The recorder has left the client's folder: to it a relative path means another file.
        if texts[key] and not os.path.isabs(texts[key]):  # noqa: PTH117
            return UnreadableEvent(path, received, f"{key} is relative")
    return Event(
        path=path,
        received=received,
        name=texts["hook_event_name"],
        session_id=texts["session_id"],
        transcript_path=texts["transcript_path"],
        cwd=texts["cwd"],
        last_assistant_message=message,
        source=texts["source"],
        reason=texts["reason"],
        agent_transcript_path=texts["agent_transcript_path"],
    )


def _read_content(path: Path) -> bytes | None:
    """At most one byte more than is allowed; None for what is not a regular file."""
    with os.fdopen(os.open(path, _OPEN_FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        return file.read(MAX_BYTES + 1)


def _without_path_breakers(text: str) -> bool:
    """JSON can spell NUL and lone surrogates, at which `open` raises ValueError instead of OSError."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
