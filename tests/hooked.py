"""Conversations recorded as a hook does it: while they are held, by another process than the command that is run."""

from __future__ import annotations

import os
import time
from pathlib import Path

from shell import Shell
from transcripts import Talk

from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store


def hooked(sessgit: Shell, talk: Talk, granularity: str = "turn") -> Path:
    """Records the conversation as it is now; nothing tells of an end, and the file has been at rest since."""
    if not sessgit.store.exists():
        sessgit.out("install")
    path = sessgit.keep(talk)
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    record(
        Context(index, privacy=Privacy(RecordConfig(granularity))),
        TranscriptSource(path, talk.session, sessgit.config, live=True),
    )
    index.close()
    return lie(path)


def lie(path: Path, seconds: float = 10.0) -> Path:
    """The file as if nobody had written it for so long."""
    os.utime(path, (time.time() - seconds,) * 2)
    return path
