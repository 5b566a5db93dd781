"""The only importer of pydantic: what comes from outside, validated into the values of `model`."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sessgit.errors import SessgitError
from sessgit.model.config import Config, Price, RecordConfig

for _value in (Config, Price, RecordConfig):
    # pydantic looks for its rules here on a plain dataclass; a key that is not known is a mistake of the user.
    type.__setattr__(_value, "__pydantic_config__", ConfigDict(extra="forbid"))
_CONFIG = TypeAdapter(Config)


def config(document: dict[str, Any], where: str) -> Config:
    """The settings that a document says; raises SessgitError that names the first key that is wrong."""
    try:
        return _CONFIG.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        what = "no such setting" if first["type"] == "unexpected_keyword_argument" else first["msg"].lower()
        raise SessgitError(
            f"{where}: {key}: {what}", "Correct the file, or delete it: all settings have defaults."
        ) from error
