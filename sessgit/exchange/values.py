"""Reads values that another program wrote.

Each function returns a value, or the one at a path such as `metadata.model`, if it has the right type, else an empty
one. Without a path it takes the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessgit.model import canonical

Document = Mapping[str, Any]
"""A JSON object of another system."""
_LATEST_TIME = 253402300799


def value_at(document: object, path: str) -> Any:
    """Return the value at a path, None if there is none."""
    for key in path.split(".") if path else ():
        document = document.get(key) if isinstance(document, dict) else None
    return document


def to_number(value: object) -> float | None:
    """Return the value if it is a number, else None."""
    return float(value) if type(value) in (int, float) and abs(value) < 1e300 else None  # type: ignore[arg-type]


def to_seconds(value: object) -> float | None:
    """Return a time, given in seconds since 1970 or in RFC 3339, in seconds; None for 0 and for any other value."""
    if isinstance(value, str):
        return canonical.seconds(value)
    number = to_number(value)
    return number if number is not None and 0 < number < _LATEST_TIME else None


def to_time(value: object) -> str:
    """Return a time, given in seconds since 1970 or in RFC 3339, in RFC 3339, else ``""``."""
    time = to_seconds(value)
    return "" if time is None else canonical.rfc3339(time)


def present(document: Document) -> dict[str, Any]:
    """Return the fields that are not empty."""
    return {key: value for key, value in document.items() if value not in (None, "", [], {})}


# At a path


def text(document: object, *paths: str) -> str:
    """Return the first text at one of the paths that is not empty, else ``""``."""
    every = (value_at(document, path) for path in paths or ("",))
    return next((value for value in every if isinstance(value, str) and value), "")


def items(document: object, path: str = "") -> list[Any]:
    """Return the list at a path."""
    value = value_at(document, path)
    return value if isinstance(value, list) else []


def texts(document: object, path: str = "") -> tuple[str, ...]:
    """Return the texts of the list at a path that are not empty."""
    return tuple(item for item in items(document, path) if isinstance(item, str) and item)


def objects(document: object, path: str) -> list[Document]:
    """Return the objects of the list at a path."""
    return [item for item in items(document, path) if isinstance(item, dict)]


def mapping(document: object, path: str = "") -> Document:
    """Return the object at a path."""
    value = value_at(document, path)
    return value if isinstance(value, dict) else {}


def count(document: object, path: str) -> int:
    """Return the whole number from 0 at a path, else 0."""
    value = value_at(document, path)
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def seconds(document: object, *paths: str) -> float | None:
    """Return the first time at one of the paths, in seconds since 1970, else None."""
    times = (to_seconds(value_at(document, path)) for path in paths)
    return next((time for time in times if time is not None), None)
