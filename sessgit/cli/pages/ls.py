"""The list of conversations: a line for each, forks under the conversations they left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.history import views
from sessgit.history.ls import HiddenCounts, ListEntry, SessionFilter, SessionListing, count_hidden, matching_sessions
from sessgit.store import layout
from sessgit.store.index import Branch

_LEAST = 12
"""Columns that titles have at least."""
_COLUMNS = (
    Column("yellow"), Column(least=_LEAST), Column(right=True), Column("dim", right=True, optional=True),
    Column(right=True, optional=True), Column("green"), Column("dim", least=22, optional=True),
)  # fmt: skip


def full(cli: Invocation, listing: SessionListing, *, folded: bool) -> Iterator[str]:
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


def as_json(cli: Invocation, listing: SessionListing) -> list[dict[str, Any]]:
    """Return what `ls --json` prints."""
    return [
        {
            **views.session_json(entry.branch, cli.prices),
            "merged_into": list(entry.merged),
            "missing_turns": entry.elsewhere,
        }
        for entry in listing.entries
    ]


def short(cli: Invocation, branches: Sequence[Branch], notes: Mapping[str, str]) -> Iterator[str]:
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
    others = " and ".join(filter(None, [", ".join(phrases[:-1]), phrases[-1]]))
    option = "--headless" if command.startswith("ls") and hidden.headless and len(phrases) == 1 else "--all"
    kind = "archived conversations" if command.endswith("--only-archived") else "conversations"
    return f"No {kind} here; {others}: sessgit {command} {option}"


def _row(cli: Invocation, entry: ListEntry, query: SessionFilter) -> tuple[str, ...]:
    state = entry.branch.state
    return (
        cli.ident(entry.branch.name),
        (("  " * (entry.depth - 1) + "└ " if entry.depth else "") + text.title(state)).ljust(_LEAST),
        text.counted(state.turns, "turn"),
        text.ago(cli, entry.accessed or state.updated),
        text.money(views.session_cost(state, cli.prices)),
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
