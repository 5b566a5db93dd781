"""The list of conversations: a line for each, forks under those they left."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.agents.claude import home
from sessgit.model import canonical
from sessgit.ops import views
from sessgit.ops.ls import Entry, Listing
from sessgit.ops.resolve import title
from sessgit.ui import text
from sessgit.ui.context import Context
from sessgit.ui.render import Paint

_NOTES = 22


def full(here: Context, listing: Listing, limit: int | None, *, by_project: bool) -> Iterator[str]:
    """The whole page, under a line for each project where there are several."""
    paint = Paint(here.colour)
    entries = listing.entries[:limit]
    live = {client.agent_id for client in home.live_clients(here.config)} if entries else set[str]()
    rows = [_cells(here, entry, entry.branch.state.agent_id in live) for entry in entries]
    lines = list(_table(here, paint, rows)) if rows else []
    if not by_project:
        yield from lines
    else:
        yield from _under_projects(here, paint, entries, lines)
    yield paint("dim", _footer(listing, len(entries)))


def _under_projects(here: Context, paint: Paint, entries: list[Entry], lines: list[str]) -> Iterator[str]:
    """Families keep their order; a project stands where its family that was written last does."""
    projects: dict[str, list[str]] = {}
    project = ""
    for entry, line in zip(entries, lines, strict=True):
        project = project if entry.depth else entry.branch.state.project
        projects.setdefault(project, []).append(line)
    for name, members in projects.items():
        yield paint("bold", text.clean(here.short(name)) or "(no project known)")
        yield from members


def _cells(here: Context, entry: Entry, live: bool) -> tuple[str, str, str, str, str, str, str]:
    state = entry.branch.state
    branch = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    return (
        here.ident(entry.branch.name),
        branch + text.clean(title(state), 200),
        text.counted(state.turns, "turn"),
        text.ago(canonical.seconds(state.updated), here.now),
        text.money(views.cost(state, here.settings.prices)),
        "● live" if live else "",
        _notes(here, entry),
    )


def _notes(here: Context, entry: Entry) -> str:
    origin, notes = entry.branch.state.origin, []
    if origin is not None:
        at = f"turn {origin.cell or origin.turn}"
        notes.append(f"from {at}" if entry.depth else f"from {here.ident(origin.session)}@{origin.cell or origin.turn}")
    if entry.forks:
        notes.append(f"forked {text.times(entry.forks)}")
    return ", ".join(notes)


def _table(here: Context, paint: Paint, rows: list[tuple[str, str, str, str, str, str, str]]) -> Iterator[str]:
    """The rows in columns; the title takes what the others leave, and notes go where there is room for them."""
    widths = [max(text.width(row[n]) for row in rows) for n in range(7)]
    fixed = 2 + widths[0] + 2 + sum(2 + w for w in widths[2:6] if w)
    notes = min(widths[6], _NOTES)
    if here.width - fixed - notes - 2 < 16:
        notes = 0
    room = max(12, min(widths[1], here.width - fixed - (notes + 2 if notes else 0)))
    for ident, called, turns, ago, cost, live, note in rows:
        line = f"  {paint('yellow', ident.ljust(widths[0]))}  {text.fit(called, room)}  {turns.rjust(widths[2])}"
        line += f"  {paint('dim', ago.rjust(widths[3]))}" if widths[3] else ""
        line += f"  {cost.rjust(widths[4])}" if widths[4] else ""
        line += f"  {paint('green', text.fit(live, widths[5]))}" if widths[5] else ""
        yield line + (f"  {paint('dim', text.cut(note, notes))}" if notes else "")


def _footer(listing: Listing, shown: int) -> str:
    whole = f"{shown} of {text.counted(listing.total, 'conversation')}"
    if shown == listing.total:
        return f"{text.counted(shown, 'conversation')}."
    if shown < len(listing.entries):
        return f"{whole}, the ones written last."
    if not shown:
        return f"No conversation here, {listing.total} in other projects or headless: sessgit ls --all"
    return f"{whole} here. All projects: sessgit ls --all"
