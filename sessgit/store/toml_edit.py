"""Changes to TOML files that people edit too: comments, order and layout stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from sessgit.errors import ConflictError

Key = tuple[str, ...]
"""The names that lead to a value, from the outermost table on."""


class Commented(NamedTuple):
    """A value with a comment behind it, which an inline table has no place for."""

    value: object
    comment: str


def edited_toml(text: str, changes: Mapping[Key, object | None]) -> str:
    """Return the text with each value set, or removed if it is None.

    Raises ConflictError if the text is not valid TOML, if one of the names on the way is no table, or if the change
    would change other values, too: in some layouts, a new table would take over keys that follow it.
    """
    import tomlkit  # 30 ms, for the few commands that write settings
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import InlineTable

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConflictError(f"this is not valid TOML: {error}", "Nothing was changed. Fix the file first.") from error
    for (*above, last), value in changes.items():
        table: Any = document
        for name in above:
            new = tomlkit.inline_table() if isinstance(table, InlineTable) else tomlkit.table()
            table = table.setdefault(name, new) if value is not None else table.get(name, {})
            if not isinstance(table, dict):
                raise ConflictError(f"“{name}” is not a table", "Nothing was changed. Fix the file first.")
        if value is None:
            table.pop(last, None)
        else:
            _set_value(table, last, value)
    edited = tomlkit.dumps(document)
    if _values(edited, {}) != _values(text, changes):
        hint = "Nothing was changed. Write that table under a [header] of its own first."
        raise ConflictError(f"“{next(iter(changes))[0]}” cannot be changed without changing other values", hint)
    return edited


def _values(text: str, changes: Mapping[Key, object | None]) -> dict[str, Any] | None:
    """Return the values of a text after the changes, without empty tables; None if it is not valid TOML."""
    try:
        values = tomllib.loads(text)
    except ValueError:
        return None
    for (*above, last), value in changes.items():
        table = values
        for name in above:
            table = table.setdefault(name, {})
        table[last] = value.value if isinstance(value, Commented) else value
    return _without_empty(values)


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
    inner = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in table.items()}
    return {key: value for key, value in inner.items() if value is not None and value != {}}


def _set_value(table: Any, name: str, value: object) -> None:
    """Set a value; in a list change only the items that differ, since the others may have comments."""
    current = table.get(name)
    if isinstance(current, list) and isinstance(value, list):
        for item in [item for item in current if item not in value]:
            current.remove(item)
        for item in value[len(current) :]:
            current.append(item)
        if current == value:
            return
    if isinstance(value, Commented):
        import tomlkit

        comment, value = value.comment, tomlkit.item(value.value)
        value.comment(comment)
    table[name] = value
