"""The settings of a store, with their defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, Literal, get_args

from sessgit.errors import SessgitError
from sessgit.model import globs
from sessgit.model.frozen import frozen

Granularity = Literal["turn", "cell"]
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
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


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

    after: str = ""


@frozen
class UndoConfig:
    """How long what an operation took away is kept, as `90d`; ``""`` is for ever."""

    keep: str = "90d"


@frozen
class ProjectConfig:
    """`map` says by folder of another machine which folder here stands for it, and for all below it."""

    map: dict[str, str] = field(default_factory=dict)


@frozen
class PluginConfig:
    """`answer`: the plugin answers /sessgit:log and /sessgit:search itself, without a request to the model."""

    answer: bool = False


@frozen
class SyncConfig:
    """What `push` and `sync` send by default: globs of projects, and labels as `label:keep`."""

    include: tuple[str, ...] = ()


@frozen
class Price:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float
    cache_write: float


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
    match = _SPAN_PATTERN.fullmatch(span)
    if not match:
        raise ValueError(f"“{span}” is not a time span: use a number and a unit, such as 30d, 12w or 48h")
    return int(match[1]) * _UNIT_SECONDS[match[2]]


def is_folder(path: str) -> bool:
    """Return whether a path is whole: absolute, or from the home on."""
    return (path == "~" or path.startswith(("/", "~/"))) and "\0" not in path


def label_of(item: str) -> str:
    """Return the label that an item of `sync.include` names, or "" where it is a glob."""
    return item.removeprefix(_LABEL_PREFIX) if item.startswith(_LABEL_PREFIX) else ""


def parse_config(document: Mapping[str, Any], where: str) -> Config:
    """Return the settings of a document; raise SessgitError that names the first key that is wrong."""
    try:
        return Config(**{name: _parse_table(name, table) for name, table in document.items()})
    except _WrongSettingError as error:
        raise SessgitError(f"{where}: {error}", FILE_HINT) from error


class _WrongSettingError(Exception):
    def __init__(self, key: str, fault: str) -> None:
        super().__init__(f"{key}: {fault}")


def _parse_table(name: str, table: object) -> Any:
    if name not in _TABLES:
        raise _WrongSettingError(name, "no such setting")
    if not isinstance(table, dict):
        raise _WrongSettingError(name, "a table is needed")
    if name == "prices":
        return {model: _parse_price(f"prices.{model}", price) for model, price in table.items()}
    return _TABLES[name](**{key: _parse_value(f"{name}.{key}", value) for key, value in table.items()})


def _parse_value(key: str, value: object) -> Any:
    if key not in _PARSERS:
        raise _WrongSettingError(key, "no such setting")
    return _PARSERS[key](key, value)


def _parse_price(key: str, price: object) -> Price:
    if not isinstance(price, dict):
        raise _WrongSettingError(key, "a table is needed, such as {input = 5, output = 25} for a price")
    kinds = [kind.name for kind in fields(Price)]
    for kind in dict.fromkeys((*kinds, *price)):
        fault = "no such setting" if kind not in kinds else "a value is needed" if kind not in price else ""
        if fault or type(price[kind]) not in (int, float) or not math.isfinite(price[kind]):
            raise _WrongSettingError(f"{key}.{kind}", fault or "a number is needed")
    return Price(**{kind: float(dollars) for kind, dollars in price.items()})


def _parse_granularity(key: str, value: object) -> Any:
    if value not in get_args(Granularity):
        raise _WrongSettingError(key, f"use {' or '.join(get_args(Granularity))}")
    return value


def _parse_bool(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongSettingError(key, "use true or false")
    return value


def _parse_span(key: str, value: object) -> str:
    try:
        span_seconds(str(value))
    except ValueError as error:
        raise _WrongSettingError(key, str(error)) from error
    return str(value)


def _parse_list(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _WrongSettingError(key, 'a list is needed, such as ["~/private/*"]')
    is_glob = key.startswith("record.")
    for number, item in enumerate(value):
        if not isinstance(item, str):
            raise _WrongSettingError(f"{key}.{number}", "text in quotes is needed")
        if is_glob and not globs.is_valid_glob(item):
            raise _WrongSettingError(key, f"“{item}” matches no path: start it with /, ~/ or *")
        if not is_glob and not (label_of(item) or globs.is_valid_glob(item)):
            raise _WrongSettingError(
                key, f"“{item}” selects nothing: start a path with /, ~/ or *, a label with label:"
            )
    return tuple(value)


def _parse_map(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _WrongSettingError(key, "a table of folders is needed")
    for folder in (folder for pair in value.items() for folder in pair):
        if not isinstance(folder, str) or not is_folder(folder):
            raise _WrongSettingError(key, f"“{folder}” is not an absolute path: start it with / or ~/")
    return value


FILE_HINT = "Correct the file, or delete it: all settings have defaults."
_LABEL_PREFIX = "label:"
_SPAN_PATTERN = re.compile(r"([1-9][0-9]{0,5})([hdw])")
_UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
_TABLES: Mapping[str, Any] = {
    "record": RecordConfig, "archive": ArchiveConfig, "undo": UndoConfig, "project": ProjectConfig, "sync": SyncConfig,
    "plugin": PluginConfig, "prices": Price,
}  # fmt: skip
_PARSERS: Mapping[str, Callable[[str, object], Any]] = {
    "record.granularity": _parse_granularity,
    "record.redact": _parse_bool,
    "record.fsync": _parse_bool,
    "record.exclude": _parse_list,
    "record.include": _parse_list,
    **dict.fromkeys(SPANS, _parse_span),
    "project.map": _parse_map,
    "sync.include": _parse_list,
    "plugin.answer": _parse_bool,
}
