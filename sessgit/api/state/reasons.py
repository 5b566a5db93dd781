"""Reasons that a program gives: steps of reasoning, and decisions with the evidence for them."""

from __future__ import annotations

from sessgit import agents
from sessgit.api import validation
from sessgit.api.writer import Writer
from sessgit.history.views import body_of
from sessgit.model import canonical
from sessgit.model.program_input import GivenTurn, Reason
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store


def record_reason(held: Writer, reason: Reason) -> None:
    """Adds the reason to the open turn; outside of one it is a turn of its own. Raises UsageError."""
    validation.check_reason(reason)
    held.note(GivenTurn(f"{reason.kind}: {canonical.one_line(reason.text, 100)}", (reason,)))


def branch_reasons(store: Store, index: Index, branch: Branch) -> list[tuple[int, Reason]]:
    """All reasons of a branch, each with the number of its turn."""
    found = list[tuple[int, Reason]]()
    for row in index.turns(branch.name):
        every = map(agents.of(branch.state).programs.reason, body_of(store, branch.tip, row))
        found += [(row.turn, reason) for reason in every if reason is not None]
    return found
