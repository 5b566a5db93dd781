"""What two conversations have in common, and what each did on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.model.conversation.turn import Gist, Tokens, add_by_model
from sessgit.model.merging import compare
from sessgit.model.merging.compare import Edit
from sessgit.ops.reading.views import Prices, gists, read_turn, turn_json
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.indexed.rows import Branch, Row
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a diff: a branch, the turns that only it has, what these amount to, and its last answer."""

    branch: Branch
    only: list[Row]
    gists: list[Gist]
    last_answer: str = ""

    @property
    def files(self) -> list[str]:
        """The files that its own turns read or changed, in order of first use."""
        return list(dict.fromkeys(path for gist in self.gists for path in gist.files))

    @property
    def by_model(self) -> dict[str, Tokens]:
        """The tokens of its own turns by model."""
        out: dict[str, Tokens] = {}
        for gist in self.gists:
            out = add_by_model(out, dict(gist.tokens))
        return out

    @property
    def tokens(self) -> Tokens:
        """The tokens of all models together."""
        return sum(self.by_model.values(), Tokens())


@dataclass(frozen=True, slots=True)
class Partial:
    """A turn that both have, one of them only its beginning: how many cells each has of it."""

    turn: int
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Diff:
    """`edits` turn a into b, turn by turn; `base` is the last turn that both have from a common ancestor, if any."""

    a: Side
    b: Side
    edits: list[Edit]
    base: Row | None
    partial: Partial | None

    @property
    def shared(self) -> int:
        """How many whole turns both have."""
        return sum(edit.side == "both" for edit in self.edits) - (self.partial is not None)


def diff(store: Store, index: Index, a: tuple[Branch, int | None], b: tuple[Branch, int | None]) -> Diff:
    """Compares two branches, each up to a turn if one is given."""
    rows = [_up_to(index.turns(branch.name), turn) for branch, turn in (a, b)]
    keys = [[row.prompt for row in side] for side in rows]
    shared = compare.common(*keys)
    if shared:
        edits = compare.diff(*keys)
        own = [side[shared:] for side in rows]
        partial = _partial(store, (a[0], rows[0][shared - 1]), (b[0], rows[1][shared - 1]))
        if partial:
            own = [[side[shared - 1], *turns] for side, turns in zip(rows, own, strict=True)]
        base = rows[0][shared - 1 - bool(partial)] if shared > bool(partial) else None
    else:
        titles = [[row.title for row in side] for side in rows]
        edits = compare.diff_unrelated(*titles)
        own = [_unmatched(side, edits, name) for side, name in zip(rows, ("a", "b"), strict=True)]
        base, partial = None, None
    sides = [_side(store, index, branch, turns) for (branch, _), turns in zip((a, b), own, strict=True)]
    return Diff(sides[0], sides[1], edits, base, partial)


def _side(store: Store, index: Index, branch: Branch, own: list[Row]) -> Side:
    last = read_turn(store, branch.tip, own[-1]).told.answer if own else ""
    return Side(branch, own, gists(store, index, branch, own), last)


def as_json(store: Store, found: Diff, overrides: Prices) -> dict[str, Any]:
    """The value of `sessgit.diff/v1`."""
    return {
        "a": found.a.branch.name,
        "b": found.b.branch.name,
        "base": None if found.base is None else {"turn": found.base.turn, "commit": found.base.commit},
        "shared_turns": found.shared,
        "partial": None
        if found.partial is None
        else {"turn": found.partial.turn, "cells": {"a": found.partial.a, "b": found.partial.b}},
        "only_a": _turns(store, found.a, overrides),
        "only_b": _turns(store, found.b, overrides),
        "files": {"a": found.a.files, "b": found.b.files},
        "tokens": {"a": found.a.tokens.as_json(), "b": found.b.tokens.as_json()},
    }


def _turns(store: Store, side: Side, overrides: Prices) -> list[dict[str, Any]]:
    return [turn_json(read_turn(store, side.branch.tip, row), overrides) for row in side.only]


def _up_to(rows: list[Row], turn: int | None) -> list[Row]:
    return rows if turn is None else rows[:turn]


def _unmatched(rows: Sequence[Row], edits: Sequence[Edit], side: str) -> list[Row]:
    own = [edit for edit in edits if edit.side in ("both", side)]
    return [row for row, edit in zip(rows, own, strict=True) if edit.side == side]


def _partial(store: Store, a: tuple[Branch, Row], b: tuple[Branch, Row]) -> Partial | None:
    """The last turn that both have, if one of them has only its beginning; equal tree ids are the fast path."""
    if a[1].commit == b[1].commit:
        return None
    path = layout.turn(a[1].turn)
    entries = [store.repo.entry(store.tree(branch.tip), path) for branch, _ in (a, b)]
    if entries[0] == entries[1]:
        return None
    counts = [len(store.cells(branch.tip, row.turn)) for branch, row in (a, b)]
    return Partial(a[1].turn, *counts) if counts[0] != counts[1] else None
