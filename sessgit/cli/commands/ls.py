"""`sessgit ls`: the conversations of this project."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sessgit import agents
from sessgit.cli import frame, render, text
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
from sessgit.cli.text import Column
from sessgit.history import ls, turn_log
from sessgit.history.ls import HiddenCounts, ListEntry, SessionFilter, SessionListing, count_hidden, matching_sessions
from sessgit.store import layout
from sessgit.store.index import Branch

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
        lambda: {"sessions": _as_json(cli, listing)},
        _full(cli, listing, folded=limit is None),
        _damaged(cli),
    )


def _damaged(cli: Invocation) -> Iterator[str]:
    damaged = cli.index.damaged
    for name, damage in list(damaged.items())[:1]:
        others = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        yield f"{cli.ident(name)} cannot be read: {damage}{others}. {damage.hint}".rstrip()


_LEAST = 12
"""Columns that titles have at least."""
_COLUMNS = (
    Column("yellow"), Column(least=_LEAST), Column(right=True), Column("dim", right=True, optional=True),
    Column(right=True, optional=True), Column("green"), Column("dim", least=22, optional=True),
)  # fmt: skip


def _full(cli: Invocation, listing: SessionListing, *, folded: bool) -> Iterator[str]:
    """Yield the whole page, with a heading above each project if it is about all of them; `folded` says that no limit
    was given."""
    rows = [_row(cli, entry, listing.query) for entry in listing.entries]
    lines = list(text.table(cli, _COLUMNS, rows, indent=2))
    if listing.query.folder is not None or listing.query.order is not None:
        yield from lines
    else:  # a fork stays with its family
        projects: dict[str, list[str]] = {}
        project = ""
        for entry, line in zip(listing.entries, lines, strict=True):
            project = project if entry.depth else entry.branch.state.project
            projects.setdefault(project, []).append(line)
        for name, members in projects.items():
            yield project_heading(cli, name)
            yield from members
    for line in _footer(cli, listing, folded=folded):
        yield from text.paragraph(cli, line, "dim")


def _as_json(cli: Invocation, listing: SessionListing) -> list[dict[str, Any]]:
    """Return what `ls --json` prints."""
    return [
        {
            **turn_log.session_json(entry.branch, cli.prices),
            "merged_into": list(entry.merged),
            "missing_turns": entry.elsewhere,
        }
        for entry in listing.entries
    ]


def moved_lines(cli: Invocation, branches: Sequence[Branch], notes: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each conversation that a command moved, with a note about some of them."""
    rows = [
        (
            cli.ident(branch.name),
            text.title(branch.state),
            text.counted(branch.state.turns, "turn"),
            text.ago(cli, branch.state.updated),
            f"({notes[branch.name]})" if branch.name in notes else "",
        )
        for branch in branches
    ]
    columns = (Column("yellow"), Column(least=_LEAST), Column(right=True), Column("dim", right=True), Column())
    return text.table(cli, columns, rows)


def project_heading(cli: Invocation, project: str) -> str:
    """Return the line above the conversations of a project."""
    return cli.paint("bold", text.cut_start(text.clean(cli.short(project)), cli.width) or "(unknown project)")


def nothing_here(cli: Invocation, hidden: HiddenCounts, command: str) -> str:
    """Return the sentence for a project that has no conversation to show: what else there is, and how to see it."""
    counts = {"headless": hidden.headless, "without turns": hidden.empty, "in other projects": hidden.elsewhere}
    phrases = [f"{count:,} {what}" for what, count in counts.items() if count]
    option = "--headless" if command.startswith("ls") and hidden.headless and len(phrases) == 1 else "--all"
    kind = "archived conversations" if command.endswith("--only-archived") else "conversations"
    return f"No {kind} here; {text.listed(phrases)}: sessgit {command} {option}"


def _row(cli: Invocation, entry: ListEntry, query: SessionFilter) -> tuple[str, ...]:
    state = entry.branch.state
    return (
        cli.ident(entry.branch.name),
        (("  " * (entry.depth - 1) + "└ " if entry.depth else "") + text.title(state)).ljust(_LEAST),
        text.counted(state.turns, "turn"),
        text.ago(cli, entry.accessed or state.updated),
        text.money(turn_log.session_cost(state, cli.prices)),
        "● live" if state.agent_id in query.live else "",
        ", ".join(_notes(cli, entry, query)),
    )


def _notes(cli: Invocation, entry: ListEntry, query: SessionFilter) -> Iterator[str]:
    if query.archived == "also" and entry.branch.archived:
        yield "archived"
    if entry.left is not None:
        at = text.clean(entry.left.at)
        is_below_parent = entry.depth and not layout.is_side_branch(entry.left.branch)
        yield f"from turn {at}" if is_below_parent else f"from {text.fork_place(cli, entry.left)}"
    elif above := entry.branch.state.unified.metadata.parent:
        yield "child" if entry.depth else f"child of {text.clean(cli.ident(above), 80)}"
    if role := entry.branch.state.unified.metadata.role:
        yield text.clean(role)
    if entry.merged:
        yield "merged"
    if entry.elsewhere:
        yield text.counted(entry.elsewhere, "unmerged turn")
    if entry.forks:
        yield f"forked {text.times(entry.forks)}"
    if entry.children:
        yield text.counted(entry.children, "child", "children")
    yield from map(text.label, entry.branch.state.labels)


def _footer(cli: Invocation, listing: SessionListing, *, folded: bool) -> Iterator[str]:
    shown, matching, query = len(listing.entries), listing.matching, listing.query
    command = {"": "ls", "also": "ls --archived", "only": "ls --only-archived"}[query.archived]
    total = text.counted(listing.total, "archived conversation" if query.archived == "only" else "conversation")
    if shown < matching:
        more = " More: --limit N" if folded and listing.offset + shown < matching else ""
        if query.order is None and not listing.offset and not query.reverse:
            yield f"Showing the {shown:,} most recent of {matching:,}.{more}"
        else:
            yield f"Showing {shown:,} of {text.counted(matching, 'conversation')}.{more}"
    elif query.narrowed:
        headless = len(matching_sessions(cli.index, replace(query, headless=True))) - matching
        verb = "matches" if matching == 1 else "match"
        sentence = f"{matching:,} of {text.counted(listing.total, 'conversation')} {verb}."
        sentence += f" {headless:,} more with --headless." if headless else ""
        yield sentence if query.folder is None or not listing.total else f"{sentence} All projects: --all"
    elif matching == listing.total:
        yield f"{total}."
    elif not matching and query.folder is not None:
        yield nothing_here(cli, count_hidden(cli.index, query.folder, query.archived), command)
    else:
        verb = "is" if matching == 1 else "are"
        yield f"{matching:,} of {total} {verb} in this project. All projects: sessgit {command} --all"
