"""The shapes of documents as JSON Schemas of the draft 2020-12."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from sessgit.model.schema import exchanged, stored

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SCHEMA_CLASSES: Mapping[str, type] = {
    "session": stored.Session,
    "cell": stored.Cell,
    "pad-entry": stored.PadEntry,
    "kept-source": stored.KeptSource,
    "cursor": stored.Cursor,
    "operation": stored.Operation,
    "append-note": stored.AppendNote,
    "latest": stored.Latest,
    "remote-state": stored.RemoteState,
    "purged-values": stored.PurgedValues,
    "program-mark": stored.ProgramMark,
    "unified-session": exchanged.UnifiedSession,
    "unified-cell": exchanged.UnifiedCell,
    "unified-index": exchanged.UnifiedIndex,
}


class _SchemaGenerator(GenerateJsonSchema):
    """Gives no titles to keys, which say their own names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schemas() -> dict[str, bytes]:
    """Each schema by its name, as the bytes of its file."""
    return {name: _schema_bytes(shape) for name, shape in _SCHEMA_CLASSES.items()}


def _schema_bytes(shape: type) -> bytes:
    found = TypeAdapter(shape).json_schema(schema_generator=_SchemaGenerator)
    return json.dumps({"$schema": DIALECT, **found}, indent=2, ensure_ascii=False).encode() + b"\n"
