"""The shapes of documents as JSON Schemas of the draft 2020-12."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from sessgit.model.conversation.turn import Cell
from sessgit.model.schema import exchanged, stored
from sessgit.model.schema.parts import DOCUMENTED
from sessgit.model.stored_fields import OPTIONAL

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SHAPES: Mapping[str, type] = {
    "session": stored.Session,
    "cell": Cell,
    "pad-entry": stored.PadEntry,
    "kept-source": stored.KeptSource,
    "purged-values": stored.PurgedValues,
    "program-mark": stored.ProgramMark,
    "unified-session": exchanged.UnifiedSession,
    "unified-cell": exchanged.UnifiedCell,
    "unified-index": exchanged.UnifiedIndex,
}
"""The documents in commits, those that programs exchange, and the marks on their lines."""


class _SchemaGenerator(GenerateJsonSchema):
    """Gives no titles to keys, which say their own names, and no defaults: whatever is not optional is stored."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])

    def bytes_schema(self, schema: Any) -> Any:
        return {"type": "string", "contentEncoding": "base64"}

    def dataclass_schema(self, schema: Any) -> Any:
        optional = {field.name for field in fields(schema["cls"]) if field.metadata == OPTIONAL}
        shape = super().dataclass_schema(schema)
        return {**shape, "required": [key for key in shape["properties"] if key not in optional]}


def json_schema(shape: Any) -> bytes:
    """Return the JSON Schema of a dataclass or a shape, as the bytes of its file."""
    shape.__pydantic_config__ = DOCUMENTED
    schema = TypeAdapter(shape).json_schema(schema_generator=_SchemaGenerator)
    return json.dumps({"$schema": DIALECT, **schema}, indent=2, ensure_ascii=False).encode() + b"\n"
