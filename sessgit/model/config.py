"""The settings of a store, with their defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from sessgit.model import globs

Granularity = Literal["turn", "cell"]
SPANS = ("archive.after", "undo.keep")
"""The settings that are time spans."""


@dataclass(frozen=True, slots=True)
class RecordConfig:
    """What is recorded and how: a commit for each turn or for each cell, redacted, flushed to the disk.

    A project is recorded where it fits a glob of `include`, or where there is none, and fits none of `exclude`.
    """

    granularity: Granularity = "turn"
    redact: bool = True
    fsync: bool = True
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """How long after its last turn a session is archived by itself, as `90d`; ``""`` is never."""

    after: str = ""


@dataclass(frozen=True, slots=True)
class UndoConfig:
    """How long what an operation took away is kept, as `90d`; ``""`` is for ever."""

    keep: str = "90d"


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """`map` says by folder of another machine which folder here stands for it, and for all below it."""

    map: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SyncConfig:
    """What `push` and `sync` send where nobody says more: globs of projects, and labels as `label:keep`."""

    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True, slots=True)
class Config:
    """`prices` override the built-in table by model name."""

    record: RecordConfig = field(default_factory=RecordConfig)
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    undo: UndoConfig = field(default_factory=UndoConfig)
    project: ProjectConfig = field(default_factory=ProjectConfig)
    sync: SyncConfig = field(default_factory=SyncConfig)
    prices: dict[str, Price] = field(default_factory=dict)


def span_seconds(span: str) -> float:
    """How long a span is: `90d`, `12w`, `48h`; infinite for ``""``. Raises ValueError where it is none."""
    if not span:
        return math.inf
    found = _SPAN_PATTERN.fullmatch(span)
    if not found:
        raise ValueError(f"“{span}” is not a time span: use a number and a unit, such as 30d, 12w or 48h")
    return int(found[1]) * _UNIT_SECONDS[found[2]]


def is_folder(path: str) -> bool:
    """Whether a path is whole: absolute, or from the home on."""
    return (path == "~" or path.startswith(("/", "~/"))) and "\0" not in path


def label_of(item: str) -> str:
    """The label that an item of `sync.include` names, or ``""`` where it is a glob."""
    return item.removeprefix(_LABEL_PREFIX) if item.startswith(_LABEL_PREFIX) else ""


def can_match(item: str) -> bool:
    """Whether an item of `sync.include` can choose anything."""
    return bool(label_of(item)) or globs.is_valid_glob(item)


def config_without_validation(document: Mapping[str, Any]) -> Config | None:
    """The settings of a document in which all is as it should be; None where `schema` must say what is wrong.

    It spares a command that finds a settings file the loading of pydantic, which takes as long as all the rest.
    """
    if not document.keys() <= _TABLES.keys() or not all(isinstance(table, dict) for table in document.values()):
        return None
    for name, table in document.items():
        checks = _TABLES[name]
        if not all(
            (checks.get(key) or _is_never_valid)(value) if checks else _is_price(value) for key, value in table.items()
        ):
            return None
    record, archive, undo, project, sync, prices = (
        document.get(name, {}) for name in ("record", "archive", "undo", "project", "sync", "prices")
    )
    kept: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    return Config(
        RecordConfig(**kept),
        ArchiveConfig(**archive),
        UndoConfig(**undo),
        ProjectConfig(**project),
        SyncConfig(**{key: tuple(value) for key, value in sync.items()}),
        {model: _make_price(given) for model, given in prices.items()},
    )


def _is_never_valid(value: object) -> bool:
    return False


def _is_span(value: object) -> bool:
    try:
        return isinstance(value, str) and span_seconds(value) > 0
    except ValueError:
        return False


def _make_price(given: Mapping[str, float]) -> Price:
    return Price(**{kind: float(dollars) for kind, dollars in given.items()})


def _is_globs(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(glob, str) and globs.is_valid_glob(glob) for glob in value)


def _is_choice(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and can_match(item) for item in value)


def _is_map(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(right, str) and is_folder(left) and is_folder(right) for left, right in value.items()
    )


def _is_price(value: object) -> bool:
    kinds = {f.name for f in fields(Price)}
    if not isinstance(value, dict) or value.keys() != kinds:
        return False
    return all(type(dollars) in (int, float) and abs(dollars) < math.inf for dollars in value.values())


_LABEL_PREFIX = "label:"
_SPAN_PATTERN = re.compile(r"([1-9][0-9]{0,5})([hdw])")
_UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
_RECORD: Mapping[str, Callable[[object], bool]] = {
    "granularity": lambda value: value in get_args(Granularity),
    "redact": lambda value: isinstance(value, bool),
    "fsync": lambda value: isinstance(value, bool),
    "exclude": _is_globs,
    "include": _is_globs,
}
_TABLES: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    "record": _RECORD,
    "archive": {"after": _is_span},
    "undo": {"keep": _is_span},
    "project": {"map": _is_map},
    "sync": {"include": _is_choice},
    "prices": {},
}
"""What the values of each table must be, by key; of `prices` any key is a model."""
