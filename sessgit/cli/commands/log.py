"""`sessgit log`: the turns of a conversation."""

from __future__ import annotations

import os
from itertools import chain

from sessgit.cli import at_operation, frame, operands, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import ADDRESS, AT_OP, LIMIT, SINCE, option, parse_time
from sessgit.cli.pages import log as page
from sessgit.errors import UsageError
from sessgit.history import log as logs


@frame.command(
    "log",
    reads=True,
    excludes={"--commit": "ADDRESS -n --limit --reverse --oneline --graph --rewound -p --said --since --tool --at-op"},
)
def run(
    here: Invocation,
    address: str = ADDRESS,
    limit: int | None = LIMIT,
    reverse: bool = option("--reverse", "Oldest first."),
    oneline: bool = option("--oneline", "Print one line per turn: its address and its prompt."),
    graph: bool = option("--graph", "Draw all conversations of this family."),
    rewound: bool = option("--rewound", "Also show turns left behind by rewinds and turns of other versions."),
    said: bool = option("-p, --said", "Also print the text of each turn."),
    since: str = SINCE,
    commit: str = option("--commit SHA", "The turns, of all conversations, that led to a commit of the project."),
    tool: str = option("--tool NAME", "Only turns that used this tool."),
    at_op: str = AT_OP,
    paths: list[str] = option("--path PATH", ""),
    everything: bool = option("--all", ""),
) -> Answer:
    """Show the turns of a conversation, newest first.

    After each prompt come the tools that were used and the number of new tokens (without those read from the cache).
    Forks, rewinds and compactions appear between the turns where they happened. @N shows turns up to N. With -- PATH,
    only turns in which a tool read or changed PATH: a file, a folder or a glob.

    With --commit, shows the turns that wrote lines of a commit of the project at this folder, as `sessgit blame` knows
    them, the oldest first. With --at-op, shows the conversation as it was after that operation, even if it was deleted
    since.
    """
    if commit:
        from sessgit.cli.pages import blame as commit_page
        from sessgit.history import blame

        with render.progress(here, "Reading", unit="turns") as progress:
            oid, turns = blame.commit_turns(here.context, here.cwd, commit, os.environ, progress)
        return Answer(lambda: commit_page.commit_json(here, oid, turns), commit_page.commit_lines(here, oid, turns))
    if everything:
        hint = "`sessgit ls --all` lists all conversations, `sessgit tree --all` draws them."
        raise UsageError("log shows one conversation.", hint)
    asof = at_operation.read(here, at_op)
    target = at_operation.target(here, asof, address)
    commits = None
    if paths:
        commits = operands.commits(here, paths)
    selection = logs.TurnFilter(parse_time(since, here.now), tool, commits)
    if graph and (selection.narrows or reverse):
        raise UsageError("--graph draws all turns, newest first.", "To select or reverse turns, leave out --graph.")
    operands.check_no_cell(here, target, "log")
    log = logs.branch_log(here.index, target.branch, target.turn, limit, selection)

    def document() -> dict[str, object]:
        return page.as_json(here, log, rewound=rewound) | {"at_op": at_operation.as_json(asof)}

    headline = at_operation.headline(here, asof)
    if graph:
        lines = page.graph(
            here, [branch for branch, _ in logs.session_family(here.index, target.branch)], limit, rewound=rewound
        )
    elif oneline:
        remarks = () if here.json else headline  # standard output has addresses only
        return Answer(document, page.oneline(here, log, reverse=reverse), remarks)
    else:
        lines = page.full(here, log, page.LogOptions(reverse, rewound, said, limit))
    return Answer(document, chain(headline, lines))
