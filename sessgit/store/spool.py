"""The events that wait for a recorder, and the claim of the recorder that is about to read them.

The claim is a file lock, which the kernel releases when its holder dies. The stub cannot take file locks: the holder's
pid is in the file `waiting`, which the stub trusts only while that process runs as a recorder of this store.

The order that keeps the last event of a burst from being left: the stub renames the event into place, and then looks
for a claim; a recorder gives its claim up, and then reads the spool.

Loaded at every event: only the standard library's light modules.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store import locks, private_files
from sessgit.store.layout import StorePaths

MAX_BYTES = 2 << 20
"""The stub saves at most 1 MiB, or 2 if the shell counts blocks of 1,024."""
_STALE_SAVE_SECONDS = 600.0
_CLAIM_TIMEOUT = 60.0
"""Seconds after which a claim does not count: no recorder runs longer, so its holder was stopped."""
_TEXTS = ("hook_event_name", "session_id", "transcript_path", "cwd")
_OPTIONAL_TEXTS = ("source", "reason", "agent_transcript_path")


@dataclass(frozen=True, slots=True)
class Event:
    """An event as the client passed it to a hook; texts that an event does not carry are empty."""

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
    """Return the events in order of arrival, and delete what killed stubs left half saved ten minutes ago."""
    arrivals = []
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
            arrivals.append((state.st_mtime_ns, entry.name))
        elif entry.name.endswith(".tmp") and state.st_mtime < now - _STALE_SAVE_SECONDS:
            with suppress(OSError):
                (spool / entry.name).unlink()
    events = (_read_event(spool / name, time / 1e9) for time, name in sorted(arrivals))
    return [event for event in events if event is not None]


def discard_event(event: Event | UnreadableEvent) -> bool:
    """Delete the event's file; return whether it is gone, without which the spool must not be read again."""
    try:
        event.path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _read_event(path: Path, received: float) -> Event | UnreadableEvent | None:
    """Return the event in a file, or None if another recorder has discarded it meanwhile."""
    try:
        return _parse_event(path, received, _read_file(path, MAX_BYTES + 1))
    except FileNotFoundError:
        return None
    except OSError as error:  # O_NOFOLLOW reports a link as ELOOP
        return UnreadableEvent(path, received, error.strerror or "not readable")
    except ValueError as error:
        return UnreadableEvent(path, received, str(error))


def _parse_event(path: Path, received: float, content: bytes) -> Event:
    """Return the event. Raises ValueError with the reason why there is none."""
    if len(content) > MAX_BYTES:
        raise ValueError("too long")
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("not JSON") from error
    if not isinstance(payload, dict):
        raise ValueError("not an object")
    for key in _TEXTS:
        if not isinstance(payload.get(key), str) or not payload[key]:
            raise ValueError(f"no {key}")
    message = payload.get("last_assistant_message")
    optional = {key: payload.get(key) for key in _OPTIONAL_TEXTS}
    for key, text in (*optional.items(), ("last_assistant_message", message)):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"{key} is not a text")
    texts: dict[str, str] = {key: payload.get(key) or "" for key in (*_TEXTS, *_OPTIONAL_TEXTS)}
    if not all(map(_can_be_path, texts.values())):
        raise ValueError("a text that cannot be a path")
    for key in ("transcript_path", "agent_transcript_path"):
        # The recorder has left the client's folder, so a relative path would lead to another file.
        if texts[key] and not os.path.isabs(texts[key]):  # noqa: PTH117
            raise ValueError(f"{key} is relative")
    name, session, transcript, cwd, source, reason, agent = texts.values()
    return Event(path, received, name, session, transcript, cwd, message, source, reason, agent)


def _read_file(path: Path, most: int) -> bytes:
    """Return at most so many bytes of a regular file; no link is followed, and no pipe is waited for."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        return file.read(most)


def _can_be_path(text: str) -> bool:
    """JSON can spell NUL and lone surrogates, at which `open` raises ValueError instead of OSError."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


class Claim:
    """The claim to read the spool, as far as one recorder has it."""

    def __init__(self, paths: StorePaths) -> None:
        self._paths = paths
        self._lock = 0

    def take(self, now: float) -> bool:
        """Return whether this recorder is to read the spool; if not, another process is about to.

        If locks do not work, every recorder reads it: the locks of the sessions and their refs keep that right.
        """
        if self._lock:
            return True
        try:
            self._lock = locks.spool_reader_lock(self._paths)
        except StoreError:
            return True
        if not self._lock:
            return not self._is_recent(now)
        with suppress(StoreError):
            private_files.write_private(self._paths.waiting, b"%d\n" % os.getpid())
        return True

    def give_up(self) -> None:
        """Give up the claim if this recorder has it; to be called before the spool is read.

        A delayed stub may read this process's pid after that, so the spool is read again at the end.
        """
        with suppress(OSError, ValueError):
            if int(_read_file(self._paths.waiting, 32)) == os.getpid():
                self._paths.waiting.unlink()
        if self._lock:
            locks.release(self._lock)
            self._lock = 0

    def _is_recent(self, now: float) -> bool:
        try:
            return abs(now - self._paths.waiting.lstat().st_mtime) < _CLAIM_TIMEOUT
        except OSError:
            return True
