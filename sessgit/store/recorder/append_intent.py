"""What is just being appended to an agent's file: noted first, so that a kill leaves nothing half done or half told.

The note stays until the operation is written down that the bytes belong to. Until then whoever records the file knows
from it where these turns come from.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sessgit.store.layout import StorePaths
from sessgit.store.store import write_private

MergeOrigins = Mapping[str, tuple[str, str]]
"""By the uuids of prompts the event of their turns and where they come from."""


@dataclass(frozen=True, slots=True)
class AppendIntent:
    """`data` belongs at `offset` of the file at `path`; before that the session's head was `head`, ``""`` where that
    is not known. `command` is what it is done for, `files` are those that were put beside the file, by path with the
    SHA-256 of their bytes."""

    path: str
    offset: int
    data: bytes
    head: str = ""
    command: str = ""
    brought: MergeOrigins = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> set[str]:
        """The branches from which the turns come."""
        return {origin.partition("@")[0] for _, origin in self.brought.values()}


def load_intent(beside: StorePaths, session: str) -> AppendIntent | None:
    """The session's note, or None where there is none that can be read."""
    try:
        left = json.loads(beside.append_intent(session).read_bytes())
        brought = {key: (event, origin) for key, (event, origin) in left.get("brought", {}).items()}
        found = AppendIntent(
            left["path"], left["offset"], base64.b64decode(left["data"]), left.get("head", ""),
            left.get("command", ""), brought, left.get("files", {}),
        )  # fmt: skip
        texts = [found.path, found.head, found.command, *brought, *(text for pair in brought.values() for text in pair)]
        texts += [text for pair in found.files.items() for text in pair]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found if all(isinstance(text, str) for text in texts) and _is_place(found.offset) else None


def load_origins(beside: StorePaths, session: str) -> MergeOrigins:
    """Where the turns come from that were just being appended when that was interrupted."""
    note = load_intent(beside, session)
    return note.brought if note else {}


def save_intent(beside: StorePaths, session: str, note: AppendIntent) -> None:
    """Keeps the note, on the disk when this returns; raises StoreError."""
    document: dict[str, Any] = {
        "path": note.path,
        "offset": note.offset,
        "data": base64.b64encode(note.data).decode(),
        "head": note.head,
        "command": note.command,
        "brought": {key: list(value) for key, value in note.brought.items()},
        "files": dict(note.files),
    }
    write_private(beside.append_intent(session), json.dumps(document).encode(), lasting=True)


def delete_intent(beside: StorePaths, session: str) -> None:
    """There is no note of the session any more."""
    beside.append_intent(session).unlink(missing_ok=True)


def delete_finished_intents(beside: StorePaths, before: float) -> int:
    """Forgets the notes of operations that are written down, and returns how many: a kill in between left them.

    Only those that were noted before a moment: the same bytes may be appended again.
    """
    # Loaded here: each recording looks whether there is a note.
    from sessgit.store import journal

    written = {
        (path, *piece)
        for operation in journal.read(beside)
        for path, piece in operation.wrote.appended.items()
    }  # fmt: skip
    count = 0
    for place in beside.state.glob("*.append"):
        note = load_intent(beside, place.stem)
        with suppress(OSError):
            if note is None or place.stat().st_mtime > before:
                continue
            if (note.path, note.offset, len(note.data), hashlib.sha256(note.data).hexdigest()) in written:
                place.unlink()
                count += 1
    return count


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
