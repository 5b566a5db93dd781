"""What a program may set of a state, validated; the only importer of pydantic."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, NotRequired, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.model.conversation import session as sessions

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # pydantic takes that of the standard library only where it tells its keys at run time
    from typing_extensions import TypedDict

_NOTHING_CHANGED = "Nothing was changed."


def program_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the parts of a state say, by paths such as `activation.rlm_active`; None for what shall not be
    there.

    Raises UsageError that names the first key which cannot be set, or whose value is of the wrong kind.
    """
    parts = {part: _check_part(part, document) for part, document in values.items()}
    document = {part: {key: value for key, value in keys.items() if value is not None} for part, keys in parts.items()}
    try:
        _adapter().validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(_shown_value(step) for step in first["loc"])
        raise UsageError(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}", _NOTHING_CHANGED) from error
    state = sessions.parse_state(document)
    paths = (f"{part}.{key}" for part, keys in parts.items() for key in keys)
    return {path: sessions.value_at(state, path) for path in paths}


def _check_part(part: str, part_value: object) -> Mapping[str, Any]:
    """Return what is said of a part, with keys that can be set; of one that shall not be there None for each."""
    known = sessions.KEYS.get(part)
    if known is None:
        raise UsageError(f"a program sets no “{_shown_value(part)}” of a state", f"It sets {', '.join(sessions.KEYS)}.")
    if part_value is None:
        return dict.fromkeys(known)
    if not isinstance(part_value, Mapping):
        raise UsageError(f"{part} of a state is an object", f"Its keys are {', '.join(known)}.")
    for key in part_value:
        if key not in known:
            raise UsageError(
                f"a program sets no “{_shown_value(key)}” in {part} of a state", f"It sets {', '.join(known)}."
            )
    return part_value


@cache
def _adapter() -> TypeAdapter[Any]:
    """Return the validator of an object with some of the parts, each with some of its keys."""
    return TypeAdapter(_object_type({part: _object_type(_key_types(kind)) for part, kind in sessions.PARTS.items()}))


def _object_type(keys: Mapping[str, Any]) -> Any:
    """Return the type of a JSON object with these keys, each of which may be missing, and types."""
    make: Any = TypedDict  # a checker wants to read the keys
    kind = make("Part", {key: NotRequired[kind] for key, kind in keys.items()})
    kind.__pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False)
    return kind


def _key_types(part: type) -> dict[str, Any]:
    """Return the type of each field of a part where it is not None."""
    return {key: get_args(kind)[0] for key, kind in get_type_hints(part, include_extras=True).items()}


def _shown_value(value: object) -> str:
    return canonical.one_line(str(value), 40)
