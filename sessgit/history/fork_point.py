"""Finds the commit at which a fork leaves a session."""

from __future__ import annotations

from dataclasses import replace

from sessgit import agents
from sessgit.errors import NotFoundError, UsageError
from sessgit.history.resolve import ResolvedTarget, row_of
from sessgit.model.frozen import frozen
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store

PROMPT = "0"
"""The place of a turn's prompt among its cells."""


@frozen
class ForkPoint:
    """Where to fork: after turn `turn` of a session, at `commit`.

    For a fork at a cell, `cell` is its ordinal in the turn or its id, or `PROMPT`, and `base` the commit before the
    turn's first. `pad` is the last commit before the next turn, with the scratchpad as it was then.
    """

    session: str
    turn: int
    commit: str
    cell: str = ""
    base: str = ""
    pad: str = ""


def fork_point(context: Context, target: ResolvedTarget) -> ForkPoint:
    """Return the point of the target's turn, or of the last one; raises UsageError if the fork would be empty."""
    branch = target.branch
    number = target.end
    if not branch.state.turns:
        raise UsageError(
            f"{branch.short} has no turns yet, so there is nothing to fork",
            "A fork keeps at least turn 1.",
        )
    if not number:
        raise UsageError(
            f"a fork of {branch.short} before its first turn would be empty",
            "A fork keeps at least turn 1.",
        )
    row = row_of(context.index, branch, number)
    session = branch.name if layout.is_side_branch(branch.name) else target.session
    if not target.cell:
        return ForkPoint(session, number, row.commit, pad=last_commit_before_next(context, branch, number))
    parents = context.store.commit(row.commits[0]).parents
    if not parents:
        raise NotFoundError(f"nothing comes before turn {number} of {branch.name}")
    return ForkPoint(session, number, row.commit, _transcript_cell(context, branch, row, target.cell), parents[0])


def _transcript_cell(context: Context, branch: Branch, row: Row, name: str) -> str:
    """Return the cell of the transcript after which to cut a turn: the one of that name, or the last one before a cell
    that a program added outside it."""
    from sessgit.history import program_lines
    from sessgit.history.cells import cell_at
    from sessgit.history.views import read_turn

    if name == PROMPT or not program_lines.lines(context.store, branch.tip, row.prompt):
        return name
    place = cell_at(context, branch, row.turn, name).ordinal
    every = read_turn(context.store, branch.tip, row).cells
    body = agents.of(branch.state).parsed(context.store.lines(branch.tip, row.turn).body)
    own = {cell.id for cell in agents.of(branch.state).cells.describe(body).cells}
    kept = [cell.id for cell in every[:place] if cell.id in own]
    if not kept:
        raise UsageError(f"nothing of the model comes before cell {row.turn}.{place}", "Fork at a later cell.")
    return kept[-1]


def at_message(context: Context, target: ResolvedTarget, number: int) -> ResolvedTarget:
    """Return the target with the turn and the cell of a message, see `cells.message_places`; raises NotFoundError."""
    from sessgit.history.cells import message_places

    name = target.branch.short
    if target.turn is not None:
        raise UsageError("the address already names a turn", "Use either @TURN or --at-message N.")
    places = message_places(context, target.branch)
    if not 0 <= number < len(places):
        raise NotFoundError(
            f"{name} has no message {number}; it has {len(places)}, counted from 0",
            f"`sessgit cells {name} --json` has the number of each.",
        )
    turn, place = places[number]
    is_last = all(other != turn for other, _ in places[number + 1 : number + 2])
    return replace(target, turn=turn, cell="" if is_last else str(place))


def chain_is_closed(store: Store, commit: str, number: int) -> bool:
    """Return whether the parents of a turn's last line lead back to its first one."""
    agent = agents.of_commit(store, commit)
    return agent.writer.leads_back(agent.parsed(store.lines(commit, number).body))


def last_commit_before_next(context: Context, branch: Branch, number: int) -> str:
    """Return the last commit before the next turn, which has the edits in between."""
    if number == branch.state.turns:
        return branch.tip
    following = row_of(context.index, branch, number + 1).commits[0]
    return next(iter(context.store.commit(following).parents), following)
