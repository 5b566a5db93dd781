"""JSON Schemas of what commands print: their structure from documents, their words from one vocabulary."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VOCABULARY: dict[str, str] = tomllib.loads(
    (Path(__file__).parents[1] / "docs" / "schemas" / "vocabulary.toml").read_text("utf-8")
)
"""What a key means; `turns.tokens` is the key `tokens` below `turns`, and the longest path that fits is the one."""
MAPS = (
    "config.settings", "import.refs", "index.cells", "session.files", "session.models", "tools", "bridge.cells",
)  # fmt: skip
"""The objects whose keys are data: paths, models, tools, ids."""
ANY = (
    "args", "client_note", "decisions.ours", "decisions.theirs", "decisions.value", "cell.input", "pieces.input",
    "memory", "source.facts", "settings.*.value",
)  # fmt: skip
"""What can be any JSON."""
_NAMES = {
    bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", dict: "object", list: "array",
}  # fmt: skip


def text(command: str, documents: list[Any]) -> str:
    """The schema of a command as a file."""
    return json.dumps(schema(command, documents), indent=1, ensure_ascii=False) + "\n"


def schema(command: str, documents: list[Any]) -> dict[str, Any]:
    """The schema that all documents fit; those with other keys at the top are forms of their own."""
    forms: dict[frozenset[str], list[Any]] = {}
    for one in documents:
        forms.setdefault(frozenset(one), []).append(one)
    kinds = [_record(command, some) for _, some in sorted(forms.items(), key=lambda form: sorted(form[0]))]
    for kind in kinds:
        if "schema" in kind["properties"]:
            kind["properties"]["schema"] = {"const": f"sessgit.{command}/v1"}
    title = "An error under --json" if command == "error" else f"What sessgit {command} --json prints"
    return {"$schema": DIALECT, "title": title, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}


def keys(found: dict[str, Any]) -> set[str]:
    """The paths of all keys of a schema."""
    return {path for path, _ in described(found, "")}


def described(found: dict[str, Any], at: str) -> Iterator[tuple[str, str]]:
    """The path of each key, and what the schema says of it."""
    for name, below in found.get("properties", {}).items():
        if name != "schema":
            yield f"{at}.{name}", below.get("description", "")
            yield from described(below, f"{at}.{name}")
    for kind in found.get("anyOf", ()):
        yield from described(kind, at)
    for part, below in (("items", at), ("additionalProperties", f"{at}.*")):
        if isinstance(found.get(part), dict):
            yield from described(found[part], below)


def meaning(path: str, used: set[str]) -> str:
    """What the vocabulary says of a key."""
    parts = path.replace(".*", "").strip(".").split(".")
    for start in range(len(parts)):
        name = ".".join(parts[start:])
        if name in VOCABULARY:
            used.add(name)
            return VOCABULARY[name]
    return ""


def _of(path: str, values: Iterable[Any]) -> dict[str, Any]:
    some = list(values)
    if _fits(path, ANY):
        return {}
    types = {_NAMES[type(one)] for one in some}
    if "number" in types:
        types.discard("integer")
    out: dict[str, Any] = {"type": min(types) if len(types) == 1 else sorted(types)} if types else {}
    objects = [one for one in some if isinstance(one, dict)]
    if objects and _fits(path, MAPS):
        out["additionalProperties"] = _of(f"{path}.*", (value for one in objects for value in one.values()))
    elif objects:
        out |= _record(path, objects)
        out["type"] = "object" if len(types) == 1 else sorted(types)
    items = [item for one in some if isinstance(one, list) for item in one]
    if items:
        out["items"] = _of(path, items)
    return out


def _record(path: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for one in objects for name in one))
    properties = {}
    for name in names:
        below = f"{path}.{name}"
        told = meaning(below, set())
        found = _of(below, (one[name] for one in objects if name in one))
        properties[name] = {"description": told, **found} if told else found
    required = [name for name in names if all(name in one for one in objects)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _fits(path: str, names: tuple[str, ...]) -> bool:
    return any(path == name or path.endswith(f".{name}") for name in names)
