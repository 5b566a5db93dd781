"""An object as what makes it of another one: what a layout gives back as it was need not be kept twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessgit.exchange.layouts import files


def object_difference(value: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the first object of the second one; empty where they are the same."""
    same = {key for key in value if key in other and type(value[key]) is type(other[key]) and value[key] == other[key]}
    found = {"set": {k: v for k, v in value.items() if k not in same}, "unset": sorted(other.keys() - value.keys())}
    return {key: part for key, part in found.items() if part}


def apply_difference(value: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The first object again, of the second one and of what `object_difference` found, which comes from outside."""
    gone = files.nonempty_texts(found.get("unset"))
    return {**{key: one for key, one in value.items() if key not in gone}, **files.dict_or_empty(found.get("set"))}
