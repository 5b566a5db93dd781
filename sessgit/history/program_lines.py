"""Lines that programs added to a turn of the client while it was running: cells and reasons.

They are in `pad/cells.<key>.jsonl` of a commit's tree, `<key>` being that of the turn, and never in the transcript: the
model does not see them. A reader merges them into the turn's lines by their times.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.store import layout

if TYPE_CHECKING:
    from sessgit.agents.line import Line
    from sessgit.store.objects import Entry
    from sessgit.store.store import Store

PREFIX, SUFFIX = "cells.", ".jsonl"
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")


def file_name(key: str) -> str:
    """Return the name of the file in `pad/` for the turn with this key."""
    name = key if _NAME.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{PREFIX}{name}{SUFFIX}"


def is_file(name: str) -> bool:
    """Return whether a file in `pad/` holds lines of programs."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def files(store: Store, tip: str) -> dict[str, Entry]:
    """Return the files of all turns as of a commit, by name."""
    entries = store.entries(tip, layout.PAD).items()
    return {name: entry for name, entry in entries if is_file(name) and not entry[1]}


def lines(store: Store, tip: str, key: str) -> list[bytes]:
    """Return the lines that programs added to a turn, as of a commit."""
    entry = store.entry(tip, f"{layout.PAD}/{file_name(key)}")
    return [line for line in store.objects.blob(entry[0]).split(b"\n") if line] if entry and not entry[1] else []


def add_to_turn(store: Store, tip: str, key: str, body: list[Line]) -> list[Line]:
    """Return the lines of the turn with this key together with those of programs, as of a commit: each of these before
    the first line that is later."""
    added = lines(store, tip, key)
    if not added:
        return body
    out, waiting = body[:1], agents.of_commit(store, tip).parsed(added)
    for line in body[1:]:
        while waiting and line.time and waiting[0].time < line.time:
            out.append(waiting.pop(0))
        out.append(line)
    return out + waiting
