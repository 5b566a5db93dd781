"""`sessgit log`: the turns of a conversation."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import typer

from sessgit.cli import at_operation, frame, render
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation


@frame.command("log", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    ctx: typer.Context,
    address: options.Address = "",
    limit: options.Limit = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Oldest first.")] = False,
    oneline: Annotated[
        bool, typer.Option("--oneline", help="Print one line per turn: its address and its prompt.")
    ] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Draw all conversations of this family.")] = False,
    rewound: Annotated[
        bool, typer.Option("--rewound", help="Also show turns left behind by rewinds and turns of other versions.")
    ] = False,
    cells: Annotated[bool, typer.Option("--cells", help="Show the cells of each turn, for fork --at N.C.")] = False,
    said: Annotated[bool, typer.Option("-p", "--said", help="Also print the text of each turn.")] = False,
    since: options.Since = "",
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="Only turns that used this tool.", show_default=False)
    ] = "",
    at_op: options.AtOp = "",
    everything: Annotated[bool, typer.Option("--all", hidden=True)] = False,
) -> Answer:
    """Show the turns of a conversation, newest first.

    After each prompt come the tools that were used and the number of new tokens (without those read from the cache).
    Forks, rewinds and compactions appear between the turns where they happened. @N shows turns up to N. With -- PATH,
    only turns in which a tool read or changed PATH: a file, a folder or a glob.

    With --at-op, shows the conversation as it was after that operation, even if it was deleted since.
    """
    from sessgit.cli.arguments import choices
    from sessgit.cli.pages import log as page
    from sessgit.errors import UsageError
    from sessgit.history import log as logs

    if everything:
        raise UsageError(
            "log shows one conversation.",
            "`sessgit ls --all` lists all conversations, `sessgit tree --all` draws them.",
        )
    asof = at_operation.read(here, at_op)
    found = at_operation.target(here, asof, address)
    paths = ctx.meta.get(options.PATHS, [])
    only = logs.TurnFilter(choices.since(here, since), tool, choices.touching(here, paths) if paths else None)
    if graph and (only.narrows or reverse):
        raise UsageError("--graph draws all turns, newest first.", "To select or reverse turns, leave out --graph.")
    if found.cell:
        raise UsageError(
            "log shows whole turns.", f"`sessgit show {here.ident(found.branch.name)}@{found.turn}.{found.cell}`"
        )
    log = logs.branch_log(here.index, found.branch, found.turn, limit, only, lambda: here.store)

    def document() -> dict[str, object]:
        return page.as_json(here, log, rewound=rewound) | {"at_op": at_operation.as_json(asof)}

    headline = at_operation.headline(here, asof)
    if graph:
        lines = page.graph(here, logs.session_family(here.index, found.branch), limit, rewound=rewound)
    elif oneline:
        remarks = map(render.plain, () if here.json else headline)  # programs that read addresses find nothing else
        return Answer(document, page.oneline(here, log, reverse=reverse), remarks)
    else:
        lines = page.full(here, log, page.Wanted(reverse, rewound, cells, said, limit))
    return Answer(document, chain(headline, lines))
