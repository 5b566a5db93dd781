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
from sessgit.ui.pages.log import short
from sessgit.ui.render import Paint

_NOTES = 22


def full(here: Context, listing: Listing, limit: int | None) -> Iterator[str]:
    """The whole page."""
    paint = Paint(here.colour)
    entries = listing.entries[:limit]
    if entries:
        live = {client.agent_id for client in home.live_clients(here.config)}
        cells = [_cells(here, entry, entry.branch.state.agent_id in live) for entry in entries]
        yield from _table(here, paint, cells)
    yield paint("dim", _footer(listing, len(entries)))


def _cells(here: Context, entry: Entry, live: bool) -> tuple[str, str, str, str, str, str, str]:
    state = entry.branch.state
    branch = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    return (
        short(entry.branch.name),
        branch + text.clean(title(state), 200),
        text.counted(state.turns, "turn"),
        text.ago(canonical.seconds(state.updated), here.now),
        text.money(views.cost(state, here.settings.prices)),
        "● live" if live else "",
        _notes(entry),
    )


def _notes(entry: Entry) -> str:
    origin, notes = entry.branch.state.origin, []
    if origin is not None:
        at = f"turn {origin.cell or origin.turn}"
        notes.append(f"from {at}" if entry.depth else f"from {short(origin.session)}@{origin.cell or origin.turn}")
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
        line = f"  {paint('yellow', ident)}  {text.fit(called, room)}  {turns.rjust(widths[2])}"
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
        return f"No conversation here, {listing.total} in other projects: sessgit ls --all"
    return f"{whole} here. All projects: sessgit ls --all"
