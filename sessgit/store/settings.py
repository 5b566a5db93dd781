"""The settings of a store, with their defaults, and the file that they are in, `config.toml`."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from sessgit.errors import ConflictError, SessgitError, StoreError, UsageError
from sessgit.model import stored_fields
from sessgit.model.frozen import frozen
from sessgit.model.prices import Price
from sessgit.model.stored_fields import Rule
from sessgit.store import locks
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

_GLOB = r"(?s:[/*].*|~|~/.*)"
_FOLDER = r"~|~?/[^\0]*"
_SPAN = r"([1-9][0-9]{0,5})([hdw])"
Granularity = Literal["turn", "cell"]
Glob = Annotated[str, Rule(what="a glob of paths: start it with /, ~/ or *", pattern=_GLOB)]
Globs = Annotated[tuple[Glob, ...], Rule(what='a list of globs, such as ["~/private/*"]')]
Shared = Annotated[str, Rule(what="a glob or a label: start it with /, ~/, * or label:", pattern=f"{_GLOB}|label:.+")]
Folder = Annotated[str, Rule(what="an absolute path: start it with / or ~/", pattern=_FOLDER)]
Span = Annotated[str, Rule(what="a time span: use a number and a unit, such as 30d, 12w or 48h", pattern=f"({_SPAN})?")]
SPANS = ("archive.after", "undo.keep")
"""The settings that are time spans."""


@frozen
class RecordConfig:
    """What is recorded and how: a commit for each turn or for each cell, redacted, flushed to the disk.

    A project is recorded where it fits a glob of `include`, or if there is none, and fits none of `exclude`.
    """

    granularity: Granularity = "turn"
    redact: bool = True
    fsync: bool = True
    exclude: Globs = ()
    include: Globs = ()


@frozen
class Privacy:
    """What may be recorded: the settings, the home that `~` in them means, and whether nothing may be because a
    command asks (`SESSGIT_OFF=1`)."""

    rules: RecordConfig = field(default_factory=RecordConfig)
    home: str = "/"
    off: bool = False

    @property
    def is_everything(self) -> bool:
        """Return whether every project is recorded."""
        return not self.rules.exclude and not self.rules.include


@frozen
class ArchiveConfig:
    """How long after its last turn a session is archived by itself, as `90d`; ``""`` is never."""

    after: Span = ""


@frozen
class UndoConfig:
    """How long what an operation took away is kept, as `90d`; ``""`` is for ever."""

    keep: Span = "90d"


@frozen
class ProjectConfig:
    """`map` says by folder of another machine which folder here stands for it, and for all below it."""

    map: dict[Folder, Folder] = field(default_factory=dict)


@frozen
class PluginConfig:
    """`answer`: the plugin answers /sessgit:log and /sessgit:search itself, without a request to the model."""

    answer: bool = False


@frozen
class SyncConfig:
    """What `push` and `sync` send by default: globs of projects, and labels as `label:keep`."""

    include: Annotated[tuple[Shared, ...], Rule(what='a list, such as ["~/code/*", "label:shared"]')] = ()


@frozen
class Config:
    """`prices` override the built-in table by model name."""

    record: RecordConfig = field(default_factory=RecordConfig)
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    undo: UndoConfig = field(default_factory=UndoConfig)
    project: ProjectConfig = field(default_factory=ProjectConfig)
    sync: SyncConfig = field(default_factory=SyncConfig)
    plugin: PluginConfig = field(default_factory=PluginConfig)
    prices: dict[str, Price] = field(default_factory=dict)


def span_seconds(span: str) -> float:
    """Return how long a span is: `90d`, `12w`, `48h`; infinite for "". Raises ValueError where it is none."""
    if not span:
        return math.inf
    match = re.fullmatch(_SPAN, span)
    if not match:
        raise ValueError(span)
    return int(match[1]) * _UNIT_SECONDS[match[2]]


def is_folder(path: str) -> bool:
    """Return whether a path is whole: absolute, or from the home on."""
    return re.fullmatch(_FOLDER, path) is not None


def label_of(item: str) -> str:
    """Return the label that an item of `sync.include` names, or "" where it is a glob."""
    return item.removeprefix(_LABEL_PREFIX) if item.startswith(_LABEL_PREFIX) else ""


def parse_config(document: Mapping[str, Any], where: str) -> Config:
    """Return the settings of a document; raise SessgitError that names the first key that is wrong."""
    try:
        config: Config = _parse_value(Config, document, "")
    except ValueError as error:
        raise SessgitError(f"{where}: {error}", FILE_HINT) from error
    return config


def _parse_value(hint: Any, value: Any, key: str) -> Any:
    """Return the value of a setting, or the settings of a table; raises ValueError that names the first key that is
    wrong."""
    if hint == _PRICES and isinstance(value, dict):
        return {model: _parse_value(Price, price, f"{key}.{model}") for model, price in value.items()}
    if not is_dataclass(hint):
        try:
            return stored_fields.typed(hint, value)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{key}: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{key}: a table is needed{_PRICE_EXAMPLE if hint is Price else ''}")
    hints, inside = get_type_hints(hint, include_extras=True), f"{key}." if key else ""
    for name in dict.fromkeys((*hints, *value)):
        if name not in hints:
            raise ValueError(f"{inside}{name}: no such setting")
        if hint is Price and name not in value:
            raise ValueError(f"{inside}{name}: a value is needed")
    settings: Any = hint
    return settings(**{name: _parse_value(hints[name], each, f"{inside}{name}") for name, each in value.items()})


FILE_HINT = "Correct the file, or delete it: all settings have defaults."
_LABEL_PREFIX = "label:"
_UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
_PRICES = dict[str, Price]
_PRICE_EXAMPLE = ", such as {input = 5, output = 25} for a price"


# The file

_MAP_KEY = "project.map"
TABLES = ("prices", "project", _MAP_KEY)
"""The tables with keys of the user's choice; they may be empty."""


def load_settings(paths: StorePaths) -> Config:
    """Return the settings, or the defaults if there is no file. Raises SessgitError if the file is invalid."""
    return parse_config(read_document(paths), str(paths.config))


def read_document(paths: StorePaths) -> dict[str, Any]:
    """Return the document in the file."""
    try:
        content = paths.config.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {paths.config}: {error.strerror or error}", "Is the file yours?") from error
    return _parse(paths, content)


def _parse(paths: StorePaths, content: bytes) -> dict[str, Any]:
    try:
        return _load_toml(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SessgitError(f"{paths.config} is not TOML: {error}", FILE_HINT) from error


def _load_toml(text: str) -> dict[str, Any]:
    import tomllib  # many stores have no settings

    return tomllib.loads(text)


def load_or_default(paths: StorePaths) -> tuple[Config, str]:
    """Return the settings and ``""``, or, if the file is invalid, the defaults and the error; the list of recorded
    projects is kept. Raises SessgitError if the file does not even give that."""
    try:
        return load_settings(paths), ""
    except StoreError:
        raise
    except SessgitError as error:
        document = read_document(paths)
        record = document.pop("record", {})
        if not isinstance(record, dict):
            raise
        private = {key: record.pop(key) for key in ("exclude", "include") if key in record}
        sync = document.get("sync")
        if isinstance(sync, dict):
            sync.pop("include", None)
        # No other setting is a list, so another list may be one of these, misspelled.
        if _has_list(document) or _has_list(record):
            raise
        return parse_config({"record": private}, str(paths.config)), str(error)


def _has_list(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and any(map(_has_list, value.values())))


def change_setting(paths: StorePaths, key: str, value: object | None) -> None:
    """Set one dotted key, or remove it if `value` is None, and keep the rest of the file with its comments.

    Raises UsageError if there is no such setting, also none to remove, or the value is invalid.
    """
    with locks.settings_lock(paths):
        check_change(paths, key, value)
        _write_changes(paths, {key: value})


def check_change(paths: StorePaths, key: str, value: object | None) -> None:
    """Raise UsageError if `change_setting` would, without writing."""
    document = read_document(paths)
    if value is None and not _has_key(document, key) and not _is_known(key):
        raise UsageError(f"there is no setting “{key}”", "`sessgit config` lists all settings.")
    try:
        _edited_text(paths, {key: value})
    except RecursionError as error:
        raise UsageError(f"the value for {key} is nested too deeply", "Nothing was changed.") from error


def update_lists(paths: StorePaths, change: Callable[[RecordConfig], Mapping[str, Sequence[str]]]) -> None:
    """Set the keys to the lists that `change` returns for what is recorded now, under the lock of the settings."""
    with locks.settings_lock(paths):
        changes = change(load_settings(paths).record)
        if changes:
            _write_changes(paths, {key: list(values) or None for key, values in changes.items()})


def _write_changes(paths: StorePaths, changes: Mapping[str, object | None]) -> None:
    place = Path(os.path.realpath(paths.config))  # a link stays one: it may lead into a collection of dotfiles
    write_private(place, _edited_text(paths, changes).encode(), durable=True)


def _edited_text(paths: StorePaths, changes: Mapping[str, object | None]) -> str:
    """Return the file's text with the changes made, or raise UsageError."""
    before = paths.config.read_text("utf-8") if paths.config.exists() else ""
    try:
        text = edited_toml(before, {tuple(_split_key(key)): value for key, value in changes.items()})
    except ConflictError as error:
        key = next(iter(changes))
        raise UsageError(f"there is no setting “{key}”", "`sessgit config` lists all settings.") from error
    try:
        parse_config(_parse(paths, text.encode()), str(paths.config))
    except SessgitError as error:
        raise UsageError(str(error), _suggest_value(changes)) from error
    return text


def _suggest_value(changes: Mapping[str, object | None]) -> str:
    """Return the hint for an invalid value: for a number without a unit, the same in days."""
    for key, value in changes.items():
        with suppress(ValueError):
            if key in SPANS and span_seconds(f"{value}d"):
                return f"Nothing was changed. Use `sessgit config {key} {value}d`."
    return "Nothing was changed. `sessgit config` lists keys and values."


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
    """Return the names in a dotted key. A folder in `project.map` is one name, whatever dots it has."""
    if key.startswith(f"{_MAP_KEY}."):
        return [*_MAP_KEY.split("."), key.removeprefix(f"{_MAP_KEY}.")]
    return key.split(".")


@frozen
class Setting:
    """A setting by its dotted key; `is_default` if it is not in the file."""

    key: str
    value: object
    is_default: bool


def list_settings(config: Config, document: dict[str, Any]) -> list[Setting]:
    """Return all settings, from the file or with their defaults."""

    def in_table(values: dict[str, Any], table: Any, prefix: str) -> Iterator[Setting]:
        for name, value in values.items():
            is_set = isinstance(table, dict) and name in table
            if isinstance(value, dict):
                yield from in_table(value, table[name] if is_set else None, f"{prefix}{name}.")
            else:
                yield Setting(f"{prefix}{name}", value, not is_set)

    return list(in_table(asdict(config), document, ""))


def toml_value(value: object) -> str:
    """Return a value in TOML, on one printable line."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        plain = json.dumps(value, ensure_ascii=False)
        return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in plain)
    return str(value).lower() if isinstance(value, bool) else str(value)


# Changes to TOML files that people edit too: comments, order and layout stay

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
        values = _load_toml(text)
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
