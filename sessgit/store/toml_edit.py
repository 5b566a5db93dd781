"""Changes to TOML files that people edit too: comments, order and layout stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessgit.errors import ConflictError

Key = tuple[str, ...]
"""The names that lead to a value, from the outermost table on."""


def edited_toml(text: str, changes: Mapping[Key, object | None]) -> str:
    """Return the text with each value set, or removed if it is None.

    Raises ConflictError if the text is not valid TOML, or one of the names on the way is no table.
    """
    import tomlkit  # 30 ms, for the few commands that write settings
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConflictError(f"this is not valid TOML: {error}", "Nothing was changed. Fix the file first.") from error
    for (*above, last), value in changes.items():
        table: Any = document
        for name in above:
            table = table.setdefault(name, tomlkit.table()) if value is not None else table.get(name, {})
            if not isinstance(table, dict):
                raise ConflictError(f"“{name}” is not a table", "Nothing was changed. Fix the file first.")
        if value is None:
            table.pop(last, None)
        else:
            _set_value(table, last, value)
    return tomlkit.dumps(document)


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
    table[name] = value
