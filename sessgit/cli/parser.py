"""How a command parses its arguments: typer loads pydantic for that, which takes 90 ms at every start.

What is not a word, a number, a path, one of several words, or a list of words is left to typer.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand


class Light:
    """A mixin for commands and groups that parses simple values without pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            descriptor = getattr(param, "type_descriptor", None)
            if hasattr(param, "_runtime_param") and descriptor is not None and _is_simple(descriptor.annotation):
                param._runtime_param = _Reader()
        return params


class Command(Light, TyperCommand):
    """A command whose options may lack a value, if their metavar is in brackets, and that may take paths after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names = {name: param for param in self.params for name in param.opts if name.startswith("-")}
        if "--path" in names and "--" in args:  # else a path without an address before it would be taken for one
            place = args.index("--")
            args = args[:place] + [word for path in args[place + 1 :] for word in ("--path", path)]
        words: list[str] = []
        for word, following in pairwise([*args, "-"]):
            words.append(word)
            metavar = getattr(names.get(word), "metavar", None) or ""
            if metavar[:1] + metavar[-1:] == "[]" and following.startswith("-"):
                words.append("")
        return list(super().parse_args(ctx, words))


class _Reader:
    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None or kind in (str, bool):
            return value
        if kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                raise typer.BadParameter(f"{value!r} is not a number.", ctx=ctx, param=param) from None
        if kind is Path:
            return Path(value)
        if get_origin(kind) is Literal:
            words = get_args(kind)
            if value in words:
                return value
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(words)}.", ctx=ctx, param=param)
        return list(value)


def _is_simple(kind: Any) -> bool:
    return kind in (str, int, float, bool, Path, list[str]) or get_origin(kind) is Literal
