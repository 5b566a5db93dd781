"""The arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import complete

PATHS = "sessgit.paths"
"""Where the paths behind `--` are kept for a command that takes an address too."""

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="SESSION[@TURN]; the current session if left out.", show_default=False,
        autocompletion=complete.addresses,
    ),
]  # fmt: skip


def not_negative(value: int | None) -> int | None:
    if value is not None and value < 0:
        raise typer.BadParameter("a number of 0 or more is needed.")
    return value


Limit = Annotated[
    int | None,
    typer.Option("-n", "--limit", metavar="N", help="Show N at most.", show_default=False, callback=not_negative),
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- PATH...]", help="Files that a tool read or changed.", show_default=False),
]
Since = Annotated[
    str,
    typer.Option("--since", metavar="WHEN", help="From then on: 2d, 3h, yesterday, 2026-03-01.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
