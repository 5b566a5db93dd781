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
        metavar="ADDRESS", help="SESSION[@TURN]; the current session if left out.", show_default=False,
        autocompletion=completion.addresses,
    ),
]  # fmt: skip
AnyAddress = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="SESSION[@TURN[.CELL]]; the current session if left out.", show_default=False,
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
Everywhere = Annotated[
    bool, typer.Option("--all", help="Those of every project, also headless ones and those without a turn.")
]
Project = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="Those of the project at DIR.", show_default=False)
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="LABEL", help="Those with this label; may be repeated.")
]
Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="A folder of the project; this one if left out.", show_default=False)
]


def not_negative(value: int | None) -> int | None:
    """The number as an option takes it, or None where none was given."""
    if value is not None and value < 0:
        raise typer.BadParameter("a number of 0 or more is needed.")
    return value if value is None else min(value, _MOST)


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
AtOp = Annotated[
    str,
    typer.Option(
        "--at-op", metavar="OP", help="As it was when an operation had been done: an id that sessgit ops shows.",
        show_default=False, autocompletion=completion.operations,
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Remote = Annotated[
    str,
    typer.Argument(
        metavar="REMOTE", help="Which one, where there are several.", show_default=False,
        autocompletion=completion.remotes,
    ),
]  # fmt: skip
Into = Annotated[
    str,
    typer.Option(
        "--into", metavar="OURS", help="Where to bring it; the current session if left out.", show_default=False,
        autocompletion=completion.addresses,
    ),
]  # fmt: skip
New = Annotated[
    str | None,
    typer.Option("--new", metavar="[NAME]", help="Make a new conversation, leave ours alone.", show_default=False),
]


def with_value(args: list[str], option: str) -> list[str]:
    """The arguments, with an empty value for an option that can go without one."""
    out: list[str] = []
    for place, arg in enumerate(args):
        following = args[place + 1] if place + 1 < len(args) else "-"
        out += [arg, ""] if arg == option and following.startswith("-") else [arg]
    return out
