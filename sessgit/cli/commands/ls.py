"""`sessgit ls`: the conversations of this project."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

from sessgit import agents
from sessgit.cli import frame, render
from sessgit.cli.frame import (
    AGENT,
    EVERYWHERE,
    LABELS,
    LIMIT,
    PATHS,
    PROJECT,
    SINCE,
    Answer,
    at_least_0,
    option,
    parse_time,
)
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import ls as page
from sessgit.history import ls

_LISTED = 200
"""The most conversations that are listed on a terminal without a limit."""


@frame.command("ls", needs="conversations", reads=True)
def run(
    cli: Invocation,
    paths: list[str] = PATHS,
    everything: bool = EVERYWHERE,
    project: Path | None = PROJECT,
    label: list[str] = LABELS,
    agent: str = AGENT,
    state: ls.State | None = option(
        "--state", "Only in this state; live means open in a client. Imported ones may have failed or been aborted."
    ),
    stage: Literal["gathering", "shaping", "critiquing", "synthesized"] | None = option(
        "--stage", "Only at this stage."
    ),
    since: str = SINCE,
    forks_of: str = option("--forks-of ADDRESS", "Only forks of this conversation, and forks of those."),
    children: str = option("--children ADDRESS", "Only children of this conversation, and theirs."),
    search: str = option("--search TEXT", "Only those that contain TEXT."),
    archived: bool = option("--archived", "Also list archived conversations."),
    only_archived: bool = option("--only-archived", "List only archived conversations."),
    headless: bool = option("--headless", "Also list headless conversations, run by programs."),
    order: Literal["updated", "created", "accessed", "turns", "tokens", "cost", "name"] | None = option(
        "--order", "Sort like this, and do not group forks."
    ),
    reverse: bool = option("--reverse", "Reverse the order."),
    limit: int | None = LIMIT,
    offset: int = option("--offset N", "Skip the first N.", callback=at_least_0),
) -> Answer:
    """List the conversations of this project.

    Forks are listed under the conversation they were forked from, children under their parent; ● marks conversations
    that are open in a client. PATH, a file, a folder or a glob, selects those in which a tool read or changed it.
    --order accessed sorts by the time of the last turn or the last change of the transcript.
    """
    from sessgit.cli import operands

    among = list[Collection[str]]()
    if search:
        from sessgit.history.search import sessions_with

        sessions, behind = sessions_with(cli.index, search, render.progress(cli, "Searching"))
        if behind:
            render.tell(f"({behind})")
        among.append(set(sessions))
    if paths:
        among.append(operands.sessions_with_files(cli, paths))
    query = ls.SessionFilter(
        folder=None if everything else cli.folder(project),
        labels=tuple(label),
        agent=agents.check_name(agent),
        state=state,
        stage=stage or "",
        since=parse_time(since, cli.now),
        among=tuple(among),
        forks_of=operands.target(cli, forks_of).session if forks_of else "",
        children_of=operands.target(cli, children).session if children else "",
        archived="only" if only_archived else "also" if archived else "",
        headless=headless or everything,
        empty=everything or bool(children),
        live=agents.open_sessions(cli.env.homes),
        order=order,
        reverse=reverse,
    )
    most = limit if limit is not None or cli.json else _LISTED
    listing = ls.list_sessions(cli.index, query, most, offset, cli.prices)
    return Answer(
        lambda: {"sessions": page.as_json(cli, listing)},
        page.full(cli, listing, folded=limit is None),
        _damaged(cli),
    )


def _damaged(cli: Invocation) -> Iterator[str]:
    damaged = cli.index.damaged
    for name, damage in list(damaged.items())[:1]:
        others = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        yield f"{cli.ident(name)} cannot be read: {damage}{others}. {damage.hint}".rstrip()
