"""The JSON Schemas of all stored documents, for `docs/schemas`."""

from __future__ import annotations

from collections.abc import Mapping

from sessgit.model import schema
from sessgit.store.journal import Operation
from sessgit.store.recorder_state import AppendIntent, Cursor, LatestTurn
from sessgit.sync.agreement import Agreement

_LOCAL_FILES: Mapping[str, type] = {
    "cursor": Cursor,
    "operation": Operation,
    "append-note": AppendIntent,
    "latest": LatestTurn,
    "remote-state": Agreement,
}


def schemas() -> dict[str, bytes]:
    """Return each schema by its name, as the bytes of its file."""
    return {name: schema.json_schema(shape) for name, shape in {**schema.SHAPES, **_LOCAL_FILES}.items()}
