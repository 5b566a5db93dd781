"""Documents of a layout that several sessions share, of which each session alone writes its own part."""

from __future__ import annotations

from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.files import DamagedFileError

_APEX_FOLDER = ".apex/sessions"


def merge_documents(path: str, there: bytes, more: bytes) -> bytes | None:
    """One document with what two say that stand for different sessions; None where the file is a session's alone, or
    cannot be read."""
    if path == f"{_APEX_FOLDER}/active.json":
        return there
    if path != f"{_APEX_FOLDER}/index.json":
        return None
    try:
        one, other = files.parse_json(there), files.parse_json(more)
    except DamagedFileError:
        return None
    if not isinstance(one, dict) or not isinstance(other, dict) or one.get("version") != other.get("version"):
        return None
    entries: dict[Any, Any] = {str(entry.get("id")): entry for entry in files.objects_of(one.get("sessions"))}
    entries |= {str(entry.get("id")): entry for entry in files.objects_of(other.get("sessions"))}
    last = max(files.text_or_empty(one.get("lastUpdated")), files.text_or_empty(other.get("lastUpdated")))
    both = {**one, "sessions": list(entries.values()), **({"lastUpdated": last} if last else {})}
    return there if both == one else files.json_document(both)
