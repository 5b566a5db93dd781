"""The shapes of the parts of a state, derived from their dataclasses, and what a program may set of them."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, NotRequired, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from sessgit.errors import UsageError
from sessgit.model import canonical, unified_state

if sys.version_info >= (3, 12):
    from typing import TypedDict, is_typeddict
else:  # pydantic takes that of the standard library only where it tells its keys at run time
    from typing_extensions import TypedDict, is_typeddict

DOCUMENTED = ConfigDict(strict=True, allow_inf_nan=False, use_attribute_docstrings=True)


def shape(name: str, doc: str, keys: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    """Return the type of a JSON object with these keys, some of which may be missing, and types."""
    every = {key: NotRequired[kind] for key, kind in (optional or {}).items()} | dict(keys)
    make: Any = TypedDict  # a checker wants to read the keys
    kind = make(name, every)
    kind.__doc__, kind.__pydantic_config__ = doc, DOCUMENTED
    return kind


def describe_keys(module: Mapping[str, Any]) -> None:
    """Make the docstring after each key of a module's shapes its description."""
    for kind in module.values():
        if is_typeddict(kind):
            kind.__pydantic_config__ = DOCUMENTED


def described(cls: type, keys: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return by key the type of each field of a dataclass, with its docstring as description."""
    body: Any = ast.parse(inspect.getsource(cls)).body[0]
    docs = {
        ast.unparse(field.target): inspect.cleandoc(ast.literal_eval(doc.value))
        for field, doc in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr)
    }
    names = {name: name for name in docs} if keys is None else keys
    kinds = get_type_hints(cls, include_extras=True)
    return {key: Annotated[kinds[name], Field(description=docs[name])] for key, name in names.items()}


def optional_keys(cls: type) -> dict[str, Any]:
    """Return the same of a dataclass whose fields are missing where they are None."""
    kinds = described(cls).items()
    return {key: Annotated[get_args(kind.__origin__)[0], *kind.__metadata__] for key, kind in kinds}


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
    state = unified_state.parse_state(document)
    paths = (f"{part}.{key}" for part, keys in parts.items() for key in keys)
    return {path: unified_state.value_at(state, path) for path in paths}


def _check_part(part: str, part_value: object) -> Mapping[str, Any]:
    """Return what is said of a part, with keys that can be set; of one that shall not be there None for each."""
    known = unified_state.KEYS.get(part)
    if known is None:
        raise UsageError(
            f"a program sets no “{_shown_value(part)}” of a state", f"It sets {', '.join(unified_state.KEYS)}."
        )
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
    parts = {part: shape(part, "", {}, optional_keys(kind)) for part, kind in unified_state.PARTS.items()}
    return TypeAdapter(shape("Parts", "", {}, parts))


def _shown_value(value: object) -> str:
    return canonical.one_line(str(value), 40)
