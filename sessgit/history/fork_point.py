"""From an address to the point at which a fork leaves."""

from __future__ import annotations

from dataclasses import dataclass

from sessgit import agents
from sessgit.errors import NotFoundError, UsageError
from sessgit.history.resolve import ResolvedTarget, row_of
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """Where to fork: after turn `turn` of a session, which `commit` holds.

    For a fork at a cell, `cell` is its ordinal in the turn or its id, and `base` the commit before the turn's first.
    `pad` is the last commit before the next turn: what a person put on the scratchpad by then.
    """

    session: str
    turn: int
    commit: str
    cell: str = ""
    base: str = ""
    pad: str = ""


def fork_point(store: Store, index: Index, found: ResolvedTarget) -> ForkPoint:
    """The turn that was named, or the last one; raises UsageError where nothing would be in the fork."""
    branch = found.branch
    number = branch.state.turns if found.turn is None else found.turn
    if not number:
        raise UsageError(
            f"a fork of {layout.short_name(branch.name)} before its first turn would be empty",
            "A fork keeps at least turn 1.",
        )
    row = row_of(index, branch, number)
    session = branch.name if layout.is_side_branch(branch.name) else found.session
    if not found.cell:
        return ForkPoint(session, number, row.commit, pad=last_commit_before_next(store, index, branch, number))
    parents = store.commit(row.commits[0]).parents
    if not parents:
        raise NotFoundError(f"nothing comes before turn {number} of {branch.name}")
    return ForkPoint(session, number, row.commit, found.cell, parents[0])


def chain_is_closed(store: Store, commit: str, number: int) -> bool:
    """Whether the client finds its way from the last line of a turn back to the first one."""
    agent = agents.of_commit(store, commit)
    return agent.writer.leads_back(agent.lines.parsed(store.lines(commit, number).body))


def last_commit_before_next(store: Store, index: Index, branch: Branch, number: int) -> str:
    """The last commit before the turn after this one: edits that came between are part of it."""
    if number == branch.state.turns:
        return branch.tip
    following = row_of(index, branch, number + 1).commits[0]
    return next(iter(store.commit(following).parents), following)
