"""The list of conversations: a line for each, forks under those they left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history import views
from sessgit.history.ls import HiddenCounts, ListEntry, SessionListing, count_hidden, matching_sessions
from sessgit.history.resolve import session_title
from sessgit.model import canonical
from sessgit.store import layout

_NOTES = 22
_ENOUGH = 48
"""So much of a title is enough where notes need the room."""
_LEAST = 12
"""Where a title has fewer columns, other columns are left out."""
_TITLE = 16
"""A title has so many columns at least before there is room for notes."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """The columns of a line, as they are shown."""

    ident: str
    called: str
    turns: str
    ago: str
    cost: str
    live: str
    notes: str


def full(here: Invocation, listing: SessionListing, *, by_project: bool, folded: bool = False) -> Iterator[str]:
    """The whole page, under a line for each project where there are several; `folded` says that nobody asked for so
    few."""
    paint = Paint(here.colour)
    rows = [_cells(here, entry, listing) for entry in listing.entries]
    lines = list(_table(here, paint, rows)) if rows else []
    if by_project and listing.wanted.order is None:
        yield from _under_projects(here, paint, listing.entries, lines)
    else:
        yield from lines
    for told in _footer(here, listing, by_project=by_project, folded=folded):
        yield from (paint("dim", line) for line in text.wrap(told, here.width))


def as_json(here: Invocation, listing: SessionListing) -> list[dict[str, Any]]:
    """Return what `ls --json` prints."""
    return [
        {
            **views.session_json(entry.branch, here.settings.prices),
            "merged_into": list(entry.merged),
            "missing_turns": entry.elsewhere,
        }
        for entry in listing.entries
    ]


def _under_projects(here: Invocation, paint: Paint, entries: list[ListEntry], lines: list[str]) -> Iterator[str]:
    """Families keep their order; a project stands where its family that was written last does."""
    projects: dict[str, list[str]] = {}
    project = ""
    for entry, line in zip(entries, lines, strict=True):
        project = project if entry.depth else entry.branch.state.project
        projects.setdefault(project, []).append(line)
    for name, members in projects.items():
        yield paint("bold", text.end(text.clean(here.short(name)), here.width) or "(unknown project)")
        yield from members


def _cells(here: Invocation, entry: ListEntry, listing: SessionListing) -> _Cells:
    state = entry.branch.state
    branch = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    return _Cells(
        here.ident(entry.branch.name),
        branch + text.clean(session_title(state), 200),
        text.counted(state.turns, "turn"),
        text.ago(canonical.seconds(state.updated), here.now),
        text.money(views.session_cost(state, here.settings.prices)),
        "● live" if state.agent_id in listing.wanted.live else "",
        _notes(here, entry),
    )


def _notes(here: Invocation, entry: ListEntry) -> str:
    left, notes = entry.left, list[str]()
    if left is not None:
        at, under = text.clean(left.at), entry.depth and not layout.is_side_branch(left.branch)
        notes.append(f"from turn {at}" if under else f"from {text.clean(here.ident(left.branch), 80)}@{at}")
    if entry.merged:
        notes.append("merged")
    if entry.elsewhere:
        notes.append(f"{text.counted(entry.elsewhere, 'unmerged turn')}")
    if entry.forks:
        notes.append(f"forked {text.times(entry.forks)}")
    notes += [text.clean(label) for label in entry.branch.state.labels]
    return ", ".join(notes)


def _table(here: Invocation, paint: Paint, rows: list[_Cells]) -> Iterator[str]:
    """The rows in columns; the title takes what the others leave, and notes go where there is room for them."""

    def widest(column: str) -> int:
        return max(text.width(getattr(row, column)) for row in rows)

    ident, turns, ago, cost, live = (widest(name) for name in ("ident", "turns", "ago", "cost", "live"))
    fixed = 2 + ident + 2 + sum(2 + columns for columns in (turns, ago, cost, live) if columns)
    cost = cost if here.width - fixed >= _LEAST else 0
    fixed = 2 + ident + 2 + sum(2 + columns for columns in (turns, ago, cost, live) if columns)
    ago = ago if here.width - fixed >= _LEAST else 0
    fixed = 2 + ident + 2 + sum(2 + columns for columns in (turns, ago, cost, live) if columns)
    titles = min(widest("called"), _ENOUGH)
    notes = min(widest("notes"), max(_NOTES, here.width - fixed - titles - 2))
    if here.width - fixed - notes - 2 < _TITLE:
        notes = 0
    room = max(_LEAST, min(widest("called"), here.width - fixed - (notes + 2 if notes else 0)))
    for row in rows:
        line = f"  {paint('yellow', row.ident.ljust(ident))}  {text.fit(row.called, room)}  {row.turns.rjust(turns)}"
        line += f"  {paint('dim', row.ago.rjust(ago))}" if ago else ""
        line += f"  {row.cost.rjust(cost)}" if cost else ""
        line += f"  {paint('green', text.fit(row.live, live))}" if live else ""
        yield line + (f"  {paint('dim', text.cut(row.notes, notes))}" if notes else "")


def none_here(here: Invocation, hidden: HiddenCounts, command: str) -> Iterator[str]:
    """That a project has no conversation to show, and what else there is."""
    found = [(hidden.headless, "headless"), (hidden.empty, "without turns"), (hidden.elsewhere, "in other projects")]
    found = [(count, what) for count, what in found if count]
    *first, last = [f"{count:,} {what}" for count, what in found]
    there = f"{', '.join(first)} and {last}" if first else last
    option = "--headless" if command == "ls" and hidden.headless and len(found) == 1 else "--all"
    yield from text.fold([f"No conversations here; {there}:", f"sessgit {command} {option}"], here.width, " ")


def _footer(here: Invocation, listing: SessionListing, *, by_project: bool, folded: bool) -> list[str]:
    shown, found, wanted = len(listing.entries), listing.found, listing.wanted
    total = text.counted(listing.total, "archived conversation" if wanted.archived else "conversation")
    if shown < found:
        which = " most recent" if wanted.order is None and not listing.offset and not wanted.reverse else ""
        more = " More: --limit N" if folded and listing.offset + shown < found else ""
        return [
            f"Showing the {shown:,}{which} of {found:,}.{more}"
            if which
            else f"Showing {shown:,} of {text.counted(found, 'conversation')}.{more}"
        ]
    if wanted.narrowed:
        headless = len(matching_sessions(here.index, replace(wanted, headless=True))) - found
        told = f"{found:,} of {text.counted(listing.total, 'conversation')} {'matches' if found == 1 else 'match'}."
        told += f" {headless:,} more with --headless." if headless else ""
        return [told if by_project or not listing.total else f"{told} All projects: --all"]
    if found == listing.total:
        return [f"{total}."]
    if not found and not by_project and wanted.folder is not None:
        return list(none_here(here, count_hidden(here.index, wanted.folder, archived=wanted.archived), "ls"))
    return [f"{found:,} of {total} {'is' if found == 1 else 'are'} in this project. All projects: sessgit ls --all"]
