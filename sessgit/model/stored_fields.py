"""Stored documents as dataclasses: the fields of one are its keys, and their types say which values it can have.

`read` takes a value of the wrong type for a missing one, `load` refuses the document; `to_json` is the way back. The
JSON Schemas of `docs/schemas` are made of the same dataclasses.
"""

from __future__ import annotations

import base64
import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sessgit.model import canonical

T = TypeVar("T")


class Rule:
    """What a value must fulfil besides its type, in pydantic's words: `ge`, `le`, `lt`, `max_length`, `pattern`; or
    it is `printable`, or `json`.

    `shown` is what the JSON Schema says of it besides, which no reader checks; `what` is what messages call such a
    value.
    """

    def __init__(self, shown: Mapping[str, Any] | None = None, *, what: str = "", **limits: Any) -> None:
        self.shown, self.what, self.limits = shown or {}, what, limits

    def check(self, value: Any) -> None:
        """Raise ValueError if the value exceeds a limit."""
        for name, limit in self.limits.items():
            if not _LIMIT_CHECKS[name](value, limit):
                raise ValueError(f"{_shown(value)} is not {self.what or f'{name} {limit}'}")

    def typed(self, hint: Any, value: Any) -> Any:
        """Return a JSON value as one of a type, see `typed`."""
        try:
            return typed(hint, value)
        except TypeError as error:
            raise ValueError(f"{_shown(value)} is not {self.what}" if self.what else str(error)) from error

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(source), **self.limits}

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(core), **self.shown}


_LIMIT_CHECKS: Mapping[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "le": operator.le,
    "lt": operator.lt,
    "max_length": lambda text, most: len(text) <= most,
    "pattern": lambda text, pattern: re.fullmatch(pattern, text) is not None,
    "printable": lambda text, _: canonical.is_printable(text),
    "json": lambda value, _: bool(json_line(value)),
}

MOST_DEPTH = 3
MAX_COUNT = 1 << 53
"""Every count that is read is lower."""
MAX_COST = 1e12

Time = Annotated[str, Rule({"format": "date-time"})]
TimeOrNull = Annotated[str, Rule({"format": "date-time", "type": ["string", "null"]})]
"""RFC 3339; empty for null."""
State = Literal["active", "ended", "interrupted", "archived"]
Mode = Literal["complexity", "manual", "always", "never"]
CellType = Literal["repl", "tool", "llm_call", "map_reduce", "verification"]
Labels = tuple[str, ...]
Count = Annotated[int, Rule(what="a count", ge=0, lt=MAX_COUNT)]
Size = Annotated[int, Rule(ge=0)]
Number = Annotated[int, Rule(ge=1)]
Depth = Annotated[int, Rule(ge=1, le=MOST_DEPTH)]
Seconds = Annotated[float, Rule(ge=0)]
Rate = Annotated[float, Rule(what="a number from 0 to 1", ge=0, le=1)]
Score = Annotated[float, Rule(ge=-MAX_COST, le=MAX_COST)]
Cost = Annotated[float, Rule(what="a cost in US dollars", ge=0, le=MAX_COST)]
CellId = Annotated[str, Rule({"pattern": "^cell_[a-z0-9]{8}$"})]
EntryId = Annotated[str, Rule({"pattern": "^[0-9a-f]{8}$"})]
Hash = Annotated[str, Rule({"pattern": "^[0-9a-f]{64}$"})]

OPTIONAL = {"optional": True}
"""The metadata of a field that is stored only if it is not empty."""


def string(value: object, key: str) -> str:
    """Return the string that a JSON object has at a key, or an empty one."""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""


def read(cls: Callable[..., T], document: Mapping[str, Any]) -> T:
    """Return the dataclass of a JSON object; a value of the wrong type counts as missing."""
    return cls(**{name: read_field(cls, name, document.get(name)) for name in _fields(cls)})


def read_field(cls: Any, name: str, value: object) -> Any:
    """Return a JSON value as that of a dataclass's field; the field's default, or an empty value of its type, if it is
    of the wrong type."""
    hint = _hints(cls)[name]
    try:
        return value if type(value) is hint else typed(hint, value)
    except (ValueError, TypeError, OverflowError):
        field = _fields(cls)[name]
        if field.default_factory is not MISSING:
            return field.default_factory()
        return getattr(hint, "__origin__", hint)() if field.default is MISSING else field.default


def load(cls: Callable[..., T], document: Mapping[str, Any]) -> T:
    """Return the dataclass of a JSON object; keys that it lacks are passed over. Raises ValueError, TypeError or
    OverflowError if a value is of the wrong type, or one without a default is missing."""
    hints = _hints(cls)
    return cls(**{key: typed(hints[key], value) for key, value in _checked(dict, document).items() if key in hints})


def check_fields(value: Any) -> None:
    """Raise ValueError that names the first field of a dataclass, or of those in it, whose value is not of its type."""
    for name, hint in _hints(value.__class__).items():
        try:
            typed(hint, getattr(value, name))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from error


def to_json(value: Any) -> Any:
    """Return a value as `json` writes it: a dataclass as an object, bytes in base64."""
    if value is None or isinstance(value, str | int | float):  # most are
        return value
    if is_dataclass(value):
        every = [(field, getattr(value, field.name)) for field in fields(value)]
        return {f.name: to_json(one) for f, one in every if one or f.metadata != OPTIONAL}
    if isinstance(value, Mapping):
        return {key: to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def json_line(value: Any) -> str:
    """Return the value in JSON on one line; raises ValueError if it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be written as JSON: {error}") from error


def dumps(document: Any) -> bytes:
    """Return a dataclass as the bytes of its file."""
    return json.dumps(to_json(document)).encode()


def typed(hint: Any, value: Any) -> Any:
    """Return a JSON value as one of a type, or a dataclass whose fields are of theirs. Raises ValueError, TypeError or
    OverflowError if it is none."""
    kind, args = _origin_and_args(hint)
    if hint is Any:
        return value
    if kind is Annotated:
        value = args[1].typed(args[0], value)
        for rule in args[1:]:
            rule.check(value)
        return value
    if NoneType in args:
        return None if value is None else typed(args[0], value)
    if kind is Literal and value not in args:
        raise ValueError(f"{_shown(value)} is none of {', '.join(map(str, args))}")
    if kind is Literal:
        return value
    if kind in (list, tuple) and (kind is list or args[1:] == (...,)):
        return kind(typed(args[0], item) for item in _checked((list, tuple), value))
    if kind is UnionType or is_dataclass(value):
        check_fields(_checked(args or kind, value))
        return value
    if issubclass(kind, tuple):
        types = args or list(_hints(kind).values())
        return (tuple if args else kind._make)(
            [typed(*pair) for pair in zip(types, _checked(list, value), strict=True)]
        )
    if issubclass(kind, Mapping):
        return {typed(args[0], key): typed(args[1], item) for key, item in _checked(Mapping, value).items()}
    if is_dataclass(kind):
        return load(hint, value)
    if kind is bytes:
        return base64.b64decode(_checked(str, value))
    return float(_checked((int, float), value)) if kind is float else _checked(kind, value)


@cache
def _origin_and_args(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(hint) or hint, get_args(hint)


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


@cache
def _fields(cls: Any) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(cls)}


def _checked(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise TypeError(f"{_shown(value)} is not {_NAMES.get(kind) or ' or '.join(one.__name__ for one in kinds)}")
    return value


_NAMES: Mapping[Any, str] = {
    str: "a text", bool: "true or false", int: "a whole number", (int, float): "a number", dict: "an object",
    Mapping: "an object", list: "a list", (list, tuple): "a list",
}  # fmt: skip


def _shown(value: object) -> str:
    """Return a value as messages have it."""
    is_plain = isinstance(value, str) and canonical.is_printable(value)
    return canonical.one_line(f"“{value}”" if is_plain else repr(value), 60)
