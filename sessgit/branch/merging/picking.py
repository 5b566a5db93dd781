"""Single turns as they are chosen to be brought into a session."""

from __future__ import annotations

from collections.abc import Sequence

from sessgit.errors import NotFoundError, UsageError
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.same_lines import is_same_turn
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store


def picked_turn(index: Index, one: ResolvedTarget) -> Row:
    """The turn that an address names; raises UsageError where it names no whole turn, NotFoundError where none is."""
    name, short = one.branch.name, layout.short_name(one.branch.name)
    if one.turn is None or one.turn == 0 or one.cell:
        raise UsageError(f"{short} does not name a turn", f"Name one: {short}@{one.turn or one.state.turns}.")
    row = index.turn(name, one.turn)
    if row is None:
        raise NotFoundError(f"{name} has no turn {one.turn} in the store", "`sessgit restore --verify` checks it.")
    return row


def check_picks(store: Store, index: Index, ours: Branch, rows: Sequence[Row]) -> None:
    """Raises UsageError where a turn is named twice or stands in ours already."""
    turns = index.turns(ours.name)
    brought, held = {row.message.get("Origin") for row in turns}, {row.prompt: row for row in turns}
    seen = dict[str, Row]()
    for row in rows:
        if row.prompt in seen and is_same_turn(store, seen[row.prompt], row):
            raise UsageError(
                f"turn {row.turn} of {layout.short_name(row.branch)} is named twice", "Name each turn once."
            )
        if turn_address(row) in brought or (row.prompt in held and is_same_turn(store, held[row.prompt], row)):
            own, name = layout.short_name(ours.name), layout.short_name(row.branch)
            hint = f"`sessgit diff {own} {name}` shows what is not."
            if row.branch == ours.name:
                hint = (
                    f"Name another conversation with `--into`, or continue from that turn: `sessgit fork "
                    f"{name} --at {row.turn}`"
                )
            raise UsageError(f"turn {row.turn} of {name} is already in {own}", hint)
        seen[row.prompt] = row


def picks_summary(rows: Sequence[Row]) -> str:
    """`77be01d3@2, e90c55aa@2`: the turns that were picked."""
    return ", ".join(f"{layout.short_name(row.branch)}@{row.turn}" for row in rows)


def turn_address(row: Row) -> str:
    """The address of a turn, whole."""
    return f"{row.branch}@{row.turn}"
