"""The settings, validated into the values of `model.config`."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sessgit.errors import SessgitError
from sessgit.model import globs
from sessgit.model.config import (
    SPANS,
    ArchiveConfig,
    Config,
    Price,
    ProjectConfig,
    RecordConfig,
    SyncConfig,
    UndoConfig,
    can_match,
    is_folder,
    span_seconds,
)

for _value in (Config, Price, RecordConfig, ArchiveConfig, UndoConfig, ProjectConfig, SyncConfig):
    # pydantic looks for its rules here on a plain dataclass; a key that is not known is a mistake of the user.
    type.__setattr__(_value, "__pydantic_config__", ConfigDict(extra="forbid", allow_inf_nan=False))
_CONFIG_ADAPTER = TypeAdapter(Config)

_MESSAGES = {
    "unexpected_keyword_argument": "no such setting",
    "tuple_type": 'a list is needed, such as ["~/private/*"]',
    "dataclass_type": "a table is needed, such as {input = 5, output = 25} for a price",
    "missing": "a value is needed",
}
_FILE_HINT = "Correct the file, or delete it: all settings have defaults."


def validate_config(document: dict[str, Any], where: str) -> Config:
    """The settings that a document says; raises SessgitError that names the first key that is wrong."""
    try:
        found = _CONFIG_ADAPTER.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if key in SPANS:  # a number without its unit
            raise SessgitError(f"{where}: {key}: {_span_fault(str(first['input']))}", _FILE_HINT) from error
        raise SessgitError(
            f"{where}: {key}: {_MESSAGES.get(first['type'], first['msg'].lower())}", _FILE_HINT
        ) from error
    for key, values in (("exclude", found.record.exclude), ("include", found.record.include)):
        for glob in values:
            if not globs.is_valid_glob(glob):
                raise SessgitError(
                    f"{where}: record.{key}: “{glob}” matches no path: start it with /, ~/ or *", _FILE_HINT
                )
    for key, span in zip(SPANS, (found.archive.after, found.undo.keep), strict=True):
        if fault := _span_fault(span):
            raise SessgitError(f"{where}: {key}: {fault}", _FILE_HINT)
    for item in found.sync.include:
        if not can_match(item):
            raise SessgitError(
                f"{where}: sync.include: “{item}” selects nothing: start a path with /, ~/ or *, a label with label:",
                _FILE_HINT,
            )
    for folder in (one for pair in found.project.map.items() for one in pair):
        if not is_folder(folder):
            raise SessgitError(
                f"{where}: project.map: “{folder}” is not an absolute path: start it with / or ~/", _FILE_HINT
            )
    return found


def _span_fault(span: str) -> str:
    """What is wrong with a time span, or ``""``."""
    try:
        span_seconds(span)
    except ValueError as error:
        return str(error)
    return ""
