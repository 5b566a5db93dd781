"""Conversations that a command put somewhere else: a line for each, as short as in a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.resolve import session_title
from sessgit.model import canonical
from sessgit.store.sqlite.rows import Branch

_TITLE = 12
"""A title has so many columns at least."""


def lines(here: Invocation, branches: Sequence[Branch], notes: Mapping[str, str]) -> Iterator[str]:
    """The id, what it is called, its turns, when it was written last, and a note; all columns fit."""
    paint = Paint(here.colour)
    rows = [
        (
            here.ident(branch.name),
            text.clean(session_title(branch.state), 200),
            text.counted(branch.state.turns, "turn"),
            text.ago(canonical.seconds(branch.state.updated), here.now),
            f"({notes[branch.name]})" if branch.name in notes else "",
        )
        for branch in branches
    ]
    ident, called, turns, ago, note = (max((text.width(row[n]) for row in rows), default=0) for n in range(5))
    room = here.width - ident - turns - ago - (note + 2 if note else 0) - 6
    room = min(called, max(_TITLE, room))
    for row in rows:
        line = f"{paint('yellow', row[0].ljust(ident))}  {text.fit(row[1], room)}  {row[2].rjust(turns)}"
        yield f"{line}  {paint('dim', row[3].rjust(ago))}" + (f"  {row[4]}" if row[4] else "")
