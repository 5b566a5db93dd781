"""Commands that read their own arguments: typer of today loads pydantic for that, at 90 ms a start.

What is not a word, a number, a path, one of several words, or a list of words is left to typer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer


class _Reader:
    """A value as it was typed, or what it spells."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None or kind in (str, bool):
            return value
        if kind in (int, float):
            return _number(kind, value, param, ctx)
        if kind is Path:
            return Path(value)
        if get_origin(kind) is Literal:
            return _one_of(value, get_args(kind), param, ctx)
        return list(value)


def _number(kind: type[float], value: Any, param: Any, ctx: Any) -> float:
    try:
        return kind(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is not a number.", ctx=ctx, param=param) from None


def _one_of(value: Any, words: tuple[Any, ...], param: Any, ctx: Any) -> Any:
    if value in words:
        return value
    raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(str, words))}.", ctx=ctx, param=param)


class Light:
    """Mixed into a command or a group of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            descriptor = getattr(param, "type_descriptor", None)
            if hasattr(param, "_runtime_param") and descriptor is not None and _is_simple(descriptor.annotation):
                param._runtime_param = _Reader()
        return params


def _is_simple(kind: Any) -> bool:
    if kind in (str, int, float, bool, Path):
        return True
    return (get_origin(kind) is list and get_args(kind) == (str,)) or get_origin(kind) is Literal
