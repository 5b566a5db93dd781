"""The settings of a store, with their defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from sessgit.model import globs

Granularity = Literal["turn", "cell"]


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
    prices: dict[str, Price] = field(default_factory=dict)


def plain(document: Mapping[str, Any]) -> Config | None:
    """The settings of a document in which all is as it should be; None where `schema` must say what is wrong.

    It spares a command that finds a settings file the loading of pydantic, which takes as long as all the rest.
    """
    record, prices = document.get("record", {}), document.get("prices", {})
    if not document.keys() <= {"record", "prices"} or not isinstance(record, dict) or not isinstance(prices, dict):
        return None
    if not all(key in _RECORD and _RECORD[key](value) for key, value in record.items()):
        return None
    if not all(_is_price(price) for price in prices.values()):
        return None
    kept: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    return Config(RecordConfig(**kept), {model: _price(given) for model, given in prices.items()})


def _price(given: Mapping[str, float]) -> Price:
    return Price(**{kind: float(dollars) for kind, dollars in given.items()})


def _is_globs(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(glob, str) and globs.is_whole(glob) for glob in value)


def _is_price(value: object) -> bool:
    kinds = {f.name for f in fields(Price)}
    return isinstance(value, dict) and value.keys() == kinds and all(type(v) in (int, float) for v in value.values())


_RECORD: Mapping[str, Callable[[object], bool]] = {
    "granularity": lambda value: value in get_args(Granularity),
    "redact": lambda value: isinstance(value, bool),
    "fsync": lambda value: isinstance(value, bool),
    "exclude": _is_globs,
    "include": _is_globs,
}
