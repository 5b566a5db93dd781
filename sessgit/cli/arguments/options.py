"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sessgit.cli.arguments import completion

PATHS = "sessgit.paths"
"""Where the paths behind `--` are kept for a command that takes an address too."""
_MOST = 1 << 31
"""More than there ever is of anything, and less than a database cannot count."""

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="SESSION[@TURN] (default: the current session).", show_default=False,
        autocompletion=completion.addresses,
    ),
]  # fmt: skip
AnyAddress = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="SESSION[@TURN[.CELL]] (default: the current session).", show_default=False,
        autocompletion=completion.addresses,
    ),
]  # fmt: skip
CellAddress = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="SESSION@TURN.CELL, or the cell's id.", show_default=False,
        autocompletion=completion.cells,
    ),
]  # fmt: skip
Addresses = Annotated[
    list[str] | None,
    typer.Argument(metavar="ADDRESS...", help="The conversations.", autocompletion=completion.addresses),
]
Everywhere = Annotated[bool, typer.Option("--all", help="All projects, with headless and empty conversations.")]
Project = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="Only the project at DIR.", show_default=False)
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="LABEL", help="Only with this label; may be repeated.")
]
Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="A folder of the project (default: this folder).", show_default=False)
]


def not_negative(value: int | None) -> int | None:
    """The number as an option takes it, or None where none was given."""
    if value is not None and value < 0:
        raise typer.BadParameter("must be 0 or more.")
    return value if value is None else min(value, _MOST)


Limit = Annotated[
    int | None,
    typer.Option("-n", "--limit", metavar="N", help="Show at most N.", show_default=False, callback=not_negative),
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- PATH...]", help="Files that a tool read or changed.", show_default=False),
]
Since = Annotated[
    str,
    typer.Option("--since", metavar="WHEN", help="Since then: 2d, 3h, yesterday, 2026-03-01.", show_default=False),
]
AtOp = Annotated[
    str,
    typer.Option(
        "--at-op", metavar="OP", help="Show the state after operation OP, an id from `sessgit ops`.",
        show_default=False, autocompletion=completion.operations,
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Remote = Annotated[
    str,
    typer.Argument(
        metavar="REMOTE", help="The remote (default: the only one).", show_default=False,
        autocompletion=completion.remotes,
    ),
]  # fmt: skip
Into = Annotated[
    str,
    typer.Option(
        "--into", metavar="OURS", help="The conversation to change (default: the current session).", show_default=False,
        autocompletion=completion.addresses,
    ),
]  # fmt: skip
New = Annotated[
    str | None,
    typer.Option(
        "--new", metavar="[NAME]", help="Create a new conversation instead of changing ours.", show_default=False
    ),
]


def with_value(args: list[str], option: str) -> list[str]:
    """The arguments, with an empty value for an option that can go without one."""
    out: list[str] = []
    for place, arg in enumerate(args):
        following = args[place + 1] if place + 1 < len(args) else "-"
        out += [arg, ""] if arg == option and following.startswith("-") else [arg]
    return out
