"""The store's settings file, `config.toml`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sessgit.errors import SessgitError, StoreError, UsageError
from sessgit.model.config import SPANS, Config, RecordConfig, config_without_validation, span_seconds
from sessgit.store.layout import StorePaths
from sessgit.store.store import write_private

_MAP_KEY = "project.map"
TABLES = ("prices", "project", _MAP_KEY)
"""The keys under which anything can be named; there may be nothing."""


def load_settings(beside: StorePaths) -> Config:
    """The settings, or the defaults where there is no file; raises SessgitError where the file says nonsense."""
    document = read_document(beside)
    found = config_without_validation(document)
    if found is not None:
        return found
    from sessgit.model.schema import settings as schema

    return schema.validate_config(document, str(beside.config))


def read_document(beside: StorePaths) -> dict[str, Any]:
    """The document as it stands in the file."""
    try:
        text = beside.config.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {beside.config}: {error.strerror or error}", "Is the file yours?") from error
    import tomllib

    try:
        return tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SessgitError(
            f"{beside.config} is not TOML: {error}", "Correct the file, or delete it: all settings have defaults."
        ) from error


def load_or_default(beside: StorePaths) -> tuple[Config, str]:
    """The settings, and what is wrong with them, or ``""``: then the defaults stand in, but for which projects are
    recorded. Raises SessgitError where the file does not tell even that."""
    try:
        return load_settings(beside), ""
    except StoreError:
        raise
    except SessgitError as error:
        document = read_document(beside)
        record = document.pop("record", {})
        if not isinstance(record, dict):
            raise
        private = {key: record.pop(key) for key in ("exclude", "include") if key in record}
        sync = document.get("sync")
        if isinstance(sync, dict):
            sync.pop("include", None)
        # Only these are lists. Another one may be one of them, misspelt.
        if _has_list(document) or _has_list(record):
            raise
        from sessgit.model.schema import settings as schema

        return schema.validate_config({"record": private}, str(beside.config)), str(error)


def _has_list(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and any(map(_has_list, value.values())))


def change_setting(beside: StorePaths, key: str, value: object | None) -> None:
    """Sets one dotted key, or takes it out where `value` is None; the rest of the file, comments too, stays.

    Raises UsageError where no setting has this name and the file has none to take out, or the value does not fit.
    """
    with _settings_change(beside):
        check_change(beside, key, value)
        _write_changes(beside, {key: value})


def check_change(beside: StorePaths, key: str, value: object | None) -> None:
    """Raise UsageError where `change` would; nothing is written."""
    document = read_document(beside)
    if value is None and not _has_key(document, key) and not _is_known(key):
        raise UsageError(f"there is no setting “{key}”", "`sessgit config` lists all settings.")
    try:
        _edited_text(beside, {key: value})
    except RecursionError as error:
        raise UsageError(f"the value for {key} is nested too deeply", "Nothing was changed.") from error


def update_lists(beside: StorePaths, change: Callable[[RecordConfig], Mapping[str, Sequence[str]]]) -> None:
    """Sets the keys to the lists that follow from what is recorded now; nobody else changes a setting meanwhile."""
    with _settings_change(beside):
        changes = change(load_settings(beside).record)
        if changes:
            _write_changes(beside, {key: list(values) or None for key, values in changes.items()})


@contextmanager
def _settings_change(beside: StorePaths) -> Iterator[None]:
    from sessgit.store import locks

    with locks.settings_lock(beside) as held:
        if not held:
            raise StoreError("another command is changing the settings", "Try again.")
        yield


def _write_changes(beside: StorePaths, changes: Mapping[str, object | None]) -> None:
    place = Path(os.path.realpath(beside.config))  # a link stays one: it may lead into somebody's collection
    write_private(place, _edited_text(beside, changes).encode(), lasting=True)


def _edited_text(beside: StorePaths, changes: Mapping[str, object | None]) -> str:
    """Return the file's text with the changes made, or raise UsageError."""
    import tomlkit

    from sessgit.model.schema import settings as schema

    text = beside.config.read_text("utf-8") if beside.config.exists() else ""
    document = tomlkit.parse(text)
    for key, value in changes.items():
        *above, last = _split_key(key)
        table: Any = document
        for name in above:
            table = table.setdefault(name, tomlkit.table()) if value is not None else table.get(name, {})
            if not isinstance(table, dict):
                raise UsageError(f"there is no setting “{key}”", "`sessgit config` lists all settings.")
        if value is None:
            table.pop(last, None)
        else:
            _set_value(table, last, value)
    try:
        schema.validate_config(document.unwrap(), str(beside.config))
    except SessgitError as error:
        raise UsageError(str(error), _suggest_value(changes)) from error
    return tomlkit.dumps(document)


def _suggest_value(changes: Mapping[str, object | None]) -> str:
    """What to type where a value does not fit: of a number that lacks its unit the same in days."""
    for key, value in changes.items():
        with suppress(ValueError):
            if key in SPANS and span_seconds(f"{value}d"):
                return f"Nothing was changed. Use `sessgit config {key} {value}d`."
    return "Nothing was changed. `sessgit config` lists keys and values."


def _set_value(table: Any, name: str, value: object) -> None:
    """Sets a value; of a list only the items that differ, since the others may have comments."""
    there = table.get(name)
    if isinstance(there, list) and isinstance(value, list):
        for item in [item for item in there if item not in value]:
            there.remove(item)
        for item in value[len(there) :]:
            there.append(item)
        if there == value:
            return
    table[name] = value


def _has_key(document: Mapping[str, Any], key: str) -> bool:
    value: Any = document
    for name in _split_key(key):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _is_known(key: str) -> bool:
    known = (setting.key for setting in list_settings(Config(), {}))
    return key in TABLES or any(one == key or one.startswith(f"{key}.") for one in known)


def _split_key(key: str) -> list[str]:
    """The names of the tables and, last, of the value that a dotted key leads through. A folder of `project.map` is one
    name, whatever dots it has."""
    if key.startswith(f"{_MAP_KEY}."):
        return [*_MAP_KEY.split("."), key.removeprefix(f"{_MAP_KEY}.")]
    return key.split(".")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its dotted key; `is_default` says that the file does not name it."""

    key: str
    value: object
    is_default: bool


def list_settings(config: Config, document: dict[str, Any]) -> list[Setting]:
    """All settings, those of the file and the defaults of the others."""

    def below(values: dict[str, Any], named: Any, above: str) -> list[Setting]:
        out: list[Setting] = []
        for name, value in values.items():
            there = isinstance(named, dict) and name in named
            if isinstance(value, dict):
                out += below(value, named[name] if there else None, f"{above}{name}.")
            else:
                out.append(Setting(f"{above}{name}", value, not there))
        return out

    return below(asdict(config), document, "")


def toml_value(value: object) -> str:
    """A value as TOML has it, on one line that is safe to be shown."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        plain = json.dumps(value, ensure_ascii=False)
        return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in plain)
    return str(value).lower() if isinstance(value, bool) else str(value)
