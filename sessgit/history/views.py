"""Sessions and turns as they are shown: computed on reading, with the keys that programs rely on.

The keys of `session_json` and `turn_json` are a contract: they are only ever added to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.errors import DamageError, NotFoundError
from sessgit.model import canonical, prices
from sessgit.model.config import Price
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Gist, Tokens, Turn
from sessgit.model.progress import Progress, no_progress
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store

Prices = Mapping[str, Price]


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as its commits tell it and as its lines say."""

    row: Row
    told: Turn


def read_turn(store: Store, tip: str, row: Row) -> TurnView:
    """The turn with what its lines say, as the branch with the tip `tip` holds it."""
    return TurnView(row, agents.of_turn(store, row).cells.describe(body_of(store, tip, row)))


def body_of(store: Store, tip: str, row: Row) -> list[Line]:
    """The lines of the turn from its prompt on, one at least; raises DamageError where there is none."""

    try:
        stored = store.lines(tip, row.turn)
    except NotFoundError:  # somebody recorded it after the tip was asked for
        stored = store.lines(row.commit, row.turn)
    body = agents.of_turn(store, row).lines.parsed(stored.body)
    if not body:
        raise DamageError(
            f"turn {row.turn} of {row.branch} has no lines", f"`sessgit repair {row.branch}` repairs what it can."
        )
    return body


def turn_gists(
    store: Store, index: Index, branch: Branch, rows: Sequence[Row], progress: Progress = no_progress
) -> list[Gist]:
    """The gist of each turn, out of the index, or out of the turn's lines where the index does not know it yet.

    `progress` is told how many of the turns that must be read have been, and how many those are.
    """
    known = index.gists([row.commit for row in rows])
    unknown = [row for row in rows if row.commit not in known]
    new: dict[str, Gist] = {}
    for done, row in enumerate(unknown):
        progress(done, len(unknown))
        new[row.commit] = read_turn(store, branch.tip, row).told.gist
    if new:
        index.remember(new)
    every = {**known, **new}
    return [every[row.commit] for row in rows]


def session_cost(state: Session, overrides: Prices) -> float | None:
    """US dollars for all that the session used, or None where the price of a model is not known; as a program said,
    where that is more."""
    found, said = prices.token_cost(state.tokens, overrides), state.unified.budget.cost_usd
    return found if said is None else max(found or 0.0, said)


def total_tokens(state: Session) -> Tokens:
    """The tokens of all models together."""
    return sum(state.tokens.values(), Tokens())


def session_json(branch: Branch, overrides: Prices) -> dict[str, Any]:
    """The session as `ls --json` and `log --json` give it; times are RFC 3339 in UTC or null."""
    state = branch.state
    price = session_cost(state, overrides)
    return {
        "id": branch.name,
        "agent_id": state.agent_id,
        "name": state.name,
        "title": state.title,
        "first_prompt": state.first_prompt,
        "agent": state.agent,
        "project": state.project,
        "git_branch": state.git_branch,
        "created": state.created or None,
        "updated": state.updated or None,
        "turns": state.turns,
        "messages": state.messages,
        "state": state.state,
        "stage": state.stage,
        "labels": list(state.labels),
        "description": state.description,
        "headless": state.is_headless,
        "archived": branch.archived,
        "parent": state.origin.session if state.origin else None,
        "fork_turn": state.origin.turn if state.origin else None,
        "tokens": total_tokens(state).as_json(),
        "cost_usd": None if price is None else round(price, 6),
    }


def turn_json(view: TurnView, overrides: Prices) -> dict[str, Any]:
    """The turn as `log --json` and `diff --json` give it."""
    row, told = view.row, view.told
    price = prices.token_cost(told.tokens, overrides)
    return {
        "turn": row.turn,
        "branch": row.branch,
        "commit": row.commit,
        "commits": list(row.commits),
        "event": row.message.get("Event"),
        "time": told.time or canonical.rfc3339(row.time),
        "prompt": told.prompt,
        "prompt_uuid": row.prompt,
        "answer": told.answer,
        "model": told.model or None,
        "tools": told.tools,
        "cells": [cell.as_json() for cell in told.cells],
        "files": list(told.files),
        "tokens": told.total.as_json(),
        "cost_usd": None if price is None else round(price, 6),
    }
