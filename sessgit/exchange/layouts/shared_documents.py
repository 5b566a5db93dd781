"""Documents of a layout that several sessions share, of which each session alone writes its own part."""

from __future__ import annotations

from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.files import DamagedFileError

_APEX = ".apex/sessions"


def united(path: str, there: bytes, more: bytes) -> bytes | None:
    """One document with what two say that stand for different sessions; None where the file is a session's alone, or
    cannot be read."""
    if path == f"{_APEX}/active.json":
        return there
    if path != f"{_APEX}/index.json":
        return None
    try:
        one, other = files.parsed(there), files.parsed(more)
    except DamagedFileError:
        return None
    if not isinstance(one, dict) or not isinstance(other, dict) or one.get("version") != other.get("version"):
        return None
    entries: dict[Any, Any] = {str(entry.get("id")): entry for entry in files.objects(one.get("sessions"))}
    entries |= {str(entry.get("id")): entry for entry in files.objects(other.get("sessions"))}
    last = max(files.text(one.get("lastUpdated")), files.text(other.get("lastUpdated")))
    both = {**one, "sessions": list(entries.values()), **({"lastUpdated": last} if last else {})}
    return there if both == one else files.document(both)
