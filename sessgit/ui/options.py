"""The arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import complete

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="SESSION[@TURN]; the current session if left out.", show_default=False,
        autocompletion=complete.addresses,
    ),
]  # fmt: skip


def _not_negative(value: int | None) -> int | None:
    if value is not None and value < 0:
        raise typer.BadParameter("a number of 0 or more is needed.")
    return value


Limit = Annotated[
    int | None,
    typer.Option("-n", metavar="N", help="Show N at most.", show_default=False, callback=_not_negative),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
