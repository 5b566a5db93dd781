"""The parts of a state that only programs set: what shape they have, and whether what a program gives has it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from sessgit.errors import UsageError
from sessgit.model import canonical, unified_state
from sessgit.model.unified_state import Mode

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # pydantic takes that of the standard library only where it tells its keys at run time
    from typing_extensions import TypedDict

DOCUMENTED = ConfigDict(strict=True, allow_inf_nan=False, use_attribute_docstrings=True)

Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Cost = Annotated[float, Field(ge=0, le=1e12)]
Reason = Annotated[str, Field(max_length=unified_state.LONGEST_TEXT)]
Score = Annotated[float, Field(ge=-1e12, le=1e12)]
Depth = Annotated[int, Field(ge=1, le=unified_state.MOST_DEPTH)]


class Activation(TypedDict, total=False):
    """Whether the RLM mode of a program is active in the session, and why."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    rlm_active: bool
    """Whether the mode is active."""
    activation_mode: Mode
    """What activated it."""
    activation_reason: Reason
    """The reason, as text."""
    complexity_score: Score
    """The program's estimate of the task's complexity."""
    current_depth: Count
    """The current depth of recursion; 0 is outside of any."""
    max_depth: Depth
    """The greatest depth of recursion that is allowed."""


class Memory(TypedDict, total=False):
    """The working memory of a program."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    working_memory: dict[str, Any]
    """An object of any JSON, at most 100 levels deep. A program may set at most 65,536 bytes, as one line of UTF-8."""


class Budget(TypedDict, total=False):
    """The limits that a program set itself, and what it used, as it says."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    # pydantic passes no docstring of an attribute on to a subclass, but a description.
    max_recursive_calls: Annotated[Count, Field(description="The number of recursive calls that are allowed.")]
    total_recursive_calls: Annotated[Count, Field(description="The number of recursive calls so far.")]
    cost_usd: Annotated[Cost, Field(description="The cost so far in US dollars.")]


class Exported(TypedDict, total=False):
    """Where a program exported the session to."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    export_path: Annotated[str, Field(max_length=unified_state.LONGEST_PATH, description="The path of the export.")]


class Program(TypedDict, total=False):
    """The program that set these values."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    rlm_version: Annotated[
        str, Field(max_length=unified_state.LONGEST_VERSION, description="The version of the program.")
    ]


class Parts(TypedDict, total=False):
    """All parts that programs set, where they stand in a state."""

    __pydantic_config__ = DOCUMENTED  # type: ignore[misc]

    metadata: Program
    activation: Activation
    context: Memory
    budget: Budget
    trajectory: Exported


KEYS: Mapping[str, tuple[str, ...]] = {
    part: tuple(shape.__annotations__)
    for part, shape in (
        ("metadata", Program),
        ("activation", Activation),
        ("context", Memory),
        ("budget", Budget),
        ("trajectory", Exported),
    )
}
"""What can be set, by the part that it is in."""

_NOTHING_CHANGED = "Nothing was changed."


def program_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the parts of a state say, by paths such as `activation.rlm_active`; None for what shall not be there.

    Raises UsageError that names the first key which nobody can set, or whose value is of the wrong kind.
    """
    parts = {part: _check_part(part, said) for part, said in given.items()}
    said = {part: {key: value for key, value in keys.items() if value is not None} for part, keys in parts.items()}
    try:
        _adapter().validate_python(said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(_shown_value(step) for step in first["loc"])
        raise UsageError(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}", _NOTHING_CHANGED) from error
    found = unified_state.parse_state(said)
    paths = (f"{part}.{key}" for part, keys in parts.items() for key in keys)
    return {path: unified_state.value_at(found, path) for path in paths}


def _check_part(part: str, said: object) -> Mapping[str, Any]:
    """What is said of a part, with keys that can be set; of one that shall not be there None for each."""
    known = KEYS.get(part)
    if known is None:
        raise UsageError(f"a program sets no “{_shown_value(part)}” of a state", f"It sets {', '.join(KEYS)}.")
    if said is None:
        return dict.fromkeys(known)
    if not isinstance(said, Mapping):
        raise UsageError(f"{part} of a state is an object", f"Its keys are {', '.join(known)}.")
    for key in said:
        if key not in known:
            raise UsageError(
                f"a program sets no “{_shown_value(key)}” in {part} of a state", f"It sets {', '.join(known)}."
            )
    return said


@cache
def _adapter() -> TypeAdapter[Parts]:
    return TypeAdapter(Parts)


def _shown_value(value: object) -> str:
    return canonical.one_line(str(value), 40)
