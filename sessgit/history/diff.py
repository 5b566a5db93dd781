"""Compares two conversations: the turns that they share, and what each did on its own.

A diff is a list of edits that turns the one into the other. The laws, which tests hold it to: `patch(a, diff(a, b)) ==
b`, `diff(a, a)` changes nothing, and `diff(b, a)` is `diff(a, b)` with its sides swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sessgit import agents
from sessgit.errors import DamageError, NotFoundError, UnreadableError
from sessgit.history.turn_log import Prices, read_turn, sum_tokens, turn_gists, turn_json
from sessgit.model import ids
from sessgit.model.conversation.turn import Gist, Tokens
from sessgit.model.frozen import frozen
from sessgit.model.ids import common_prefix_length
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.agents import Agent
    from sessgit.agents.line import Line
    from sessgit.agents.values import Relation
    from sessgit.store.index import Row


def merge_base(store: Store, ours: str, theirs: str) -> str:
    """Return the merge base of two commits, ``""`` if they have none; of several the one with the most turns."""
    return newest_commit(store, store.repo.merge_bases(ours, theirs))


def newest_commit(store: Store, commits: Iterable[str]) -> str:
    """Return the commit with the most turns, ``""`` if there is none."""
    return max(commits, key=lambda commit: (store.state(commit).turns, commit), default="")


class LineComparison:
    """Compares turns of two branches, each given with its tip and its turns.

    What a commit of both branches records is the same in both, except for the last of these turns: a copy may have been
    cut short there. Other turns are the same if their folders have the same id, or else by their lines.
    """

    def __init__(self, store: Store, a: tuple[str, Sequence[Row]], b: tuple[str, Sequence[Row]]) -> None:
        self._store = store
        self._tips = a[0], b[0]
        commits = (row.commit for row in a[1]), (row.commit for row in b[1])
        self._recorded_once = common_prefix_length(*commits) - 1
        self._relations: dict[tuple[int, int], Relation] = {}

    def relation(self, a: Row, b: Row) -> Relation:
        """Return how two turns with the same prompt uuid are related; a turn that cannot be read is like no other."""
        if a.turn == b.turn <= self._recorded_once:
            return "same"
        numbers = a.turn, b.turn
        if numbers not in self._relations:
            self._relations[numbers] = self._compare(a, b)
        return self._relations[numbers]

    def differences(self, a: Row, b: Row) -> tuple[str, ...]:
        """Return which of `prompt`, `answer` and `calls` differ; `lines` if a turn cannot be read."""
        bodies = self.bodies(a, b)
        return ("lines",) if bodies is None else agents.of_turn(self._store, a).differences(*bodies)

    def bodies(self, a: Row, b: Row) -> tuple[list[Line], list[Line]] | None:
        """Return the lines of both from their prompts on, or None if one of them cannot be read."""
        from sessgit.history.turn_log import body_of

        try:
            return body_of(self._store, self._tips[0], a), body_of(self._store, self._tips[1], b)
        except (DamageError, NotFoundError, UnreadableError):
            return None

    def _compare(self, a: Row, b: Row) -> Relation:
        pairs = zip(self._tips, (a, b), strict=True)
        folders = [self._store.entry(tip, layout.turn_folder(row.turn)) for tip, row in pairs]
        if folders[0] is not None and folders[0] == folders[1]:
            return "same"
        bodies = self.bodies(a, b)
        if bodies is None:
            return "different"
        agent = agents.of_turn(self._store, a)
        return body_relation(agent, self._store, *bodies, *(self._store.state(tip).rules for tip in self._tips))


def is_same_turn(store: Store, a: Row, b: Row) -> bool:
    """Return whether two turns with the same prompt uuid are one turn, of which one side may have only a part."""
    return a.commit == b.commit or LineComparison(store, (a.commit, ()), (b.commit, ())).relation(a, b) != "different"


def body_relation(
    agent: Agent,
    store: Store,
    a: Sequence[Line],
    b: Sequence[Line],
    a_rules: Mapping[str, int],
    b_rules: Mapping[str, int],
) -> Relation:
    """Return how two bodies are related that were recorded by these rules. What only one side's rules redact is no
    difference."""
    relation = agent.content.relation(a, b)
    if relation != "different" or a_rules.get("redact") == b_rules.get("redact"):
        return relation
    return agent.content.relation(_redact_lines(agent, store, a, b_rules), _redact_lines(agent, store, b, a_rules))


def _redact_lines(agent: Agent, store: Store, lines: Sequence[Line], rules: Mapping[str, int]) -> list[Line]:
    from sessgit.store import secret_filter

    clean = secret_filter.line_cleaner(store.paths, rules, agent.protected_keys)
    return agent.parsed(clean(line.raw)[0] for line in lines)


# Edits

Turn = TypeVar("Turn")
Same = Callable[[Turn, Turn], bool]
"""Whether two corresponding turns are the same."""


@frozen
class Edit(Generic[Turn]):
    """A turn of a, and the corresponding turn of b; None on the side that has no such turn."""

    a: Turn | None
    b: Turn | None
    same: bool = False
    """Whether both sides have the turn, and it is the same."""

    @property
    def changed(self) -> bool:
        """Return whether both sides have a turn there, and the two differ."""
        return self.a is not None and self.b is not None and not self.same


def diff(a: Sequence[Turn], b: Sequence[Turn], key: Callable[[Turn], Hashable], same: Same[Turn]) -> list[Edit[Turn]]:
    """Return the edits for two conversations that have a common ancestor.

    Turns correspond up to the first ones that have another key; then come those of each side.
    """
    together = ids.common_prefix_length(map(key, a), map(key, b))
    return _edits(a, b, [(0, 0, together), (len(a), len(b), 0)], same)


def diff_unrelated(
    a: Sequence[Turn], b: Sequence[Turn], key: Callable[[Turn], str], same: Same[Turn]
) -> list[Edit[Turn]]:
    """Return the edits for two conversations without a common ancestor: turns with the same key, in order, stand for
    each other."""
    keys = list(map(key, a)), list(map(key, b))
    if (len(a), *keys[0]) > (len(b), *keys[1]):  # the matcher finds something else the other way round
        blocks = [(i, j, size) for j, i, size in _matching_blocks(keys[1], keys[0])]
    else:
        blocks = _matching_blocks(*keys)
    return _edits(a, b, blocks, same)


def _edits(
    a: Sequence[Turn], b: Sequence[Turn], blocks: Iterable[tuple[int, int, int]], same: Same[Turn]
) -> list[Edit[Turn]]:
    """Return the edits for two conversations whose turns correspond in these blocks alone."""
    edits: list[Edit[Turn]] = []
    start, other = 0, 0
    for i, j, size in blocks:
        edits += [*(Edit(one, None) for one in a[start:i]), *(Edit(None, one) for one in b[other:j])]
        start, other = i + size, j + size
        edits += [Edit(left, right, same(left, right)) for left, right in zip(a[i:start], b[j:other], strict=True)]
    return edits


def _matching_blocks(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return where the same keys are in both, and how many; the last one is empty and at both ends."""
    return [
        (block.a, block.b, block.size) for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    ]


# Two conversations


@frozen
class DiffSide:
    """One side of a diff: a branch, the turns that only it has, their gists, and its last answer."""

    branch: Branch
    own_rows: list[Row]
    gists: list[Gist]
    last_answer: str = ""

    @property
    def files(self) -> list[str]:
        """The files that its own turns read or changed, in order of first use."""
        return list(dict.fromkeys(path for gist in self.gists for path in gist.files))

    @property
    def tokens_by_model(self) -> dict[str, Tokens]:
        """The tokens of its own turns by model."""
        return sum_tokens(self.gists)

    @property
    def tokens(self) -> Tokens:
        """The tokens of its own turns, of all models together."""
        return sum(self.tokens_by_model.values(), Tokens())


@frozen
class PartialTurn:
    """A turn of which one side has only the beginning, and the number of cells that each has."""

    turn: int
    a: int
    b: int


@frozen
class ChangedTurn:
    """A turn of a and the turn of b with the same prompt, and what differs: some of `prompt`, `answer` and `calls`, or
    else `lines`."""

    a: int
    b: int
    differs: tuple[str, ...]


@frozen
class ConversationDiff:
    """`edits` turn a into b, turn by turn; `base` is the last turn up to which both are the same, if they have a common
    ancestor. A turn that is cut short or changed is among the own turns of each side."""

    a: DiffSide
    b: DiffSide
    edits: list[Edit[Row]]
    base: Row | None
    partial: PartialTurn | None
    changed: list[ChangedTurn]

    @property
    def shared(self) -> int:
        """The number of whole turns that both have."""
        return sum(edit.same for edit in self.edits)


def diff_branches(context: Context, a: tuple[Branch, int | None], b: tuple[Branch, int | None]) -> ConversationDiff:
    """Compare two branches, each up to a turn if one is given."""
    left, right = (context.index.turns(branch.name)[:turn] for branch, turn in (a, b))
    turns = LineComparison(context.store, (a[0].tip, left), (b[0].tip, right))

    together = ids.common_prefix_length((row.prompt for row in left), (row.prompt for row in right))
    related = any(turns.relation(*pair) != "different" for pair in zip(left[:together], right, strict=False))
    if related:
        edits = diff(left, right, lambda row: row.prompt, lambda *pair: turns.relation(*pair) == "same")
        same = next((n for n, edit in enumerate(edits) if not edit.same), len(edits))
    else:
        edits = diff_unrelated(left, right, lambda row: row.title, lambda *pair: not turns.differences(*pair))
        same = 0
    cut = edits[together - 1] if related else None
    partial = None
    if cut is not None and cut.a and cut.b and turns.relation(cut.a, cut.b) == "part":
        sides = (a[0].tip, cut.a.turn), (b[0].tip, cut.b.turn)
        counts = [len(context.store.cells(*side)) for side in sides]
        partial = PartialTurn(cut.a.turn, *counts) if counts[0] != counts[1] else None  # one has only the beginning
    changed = [
        ChangedTurn(one.turn, other.turn, turns.differences(one, other) or ("lines",))
        for one, other in ((edit.a, edit.b) for edit in edits if edit.changed and not (partial and edit is cut))
        if one is not None and other is not None
    ]
    mine = _diff_side(context, a[0], [edit.a for edit in edits if edit.a is not None and not edit.same])
    theirs = _diff_side(context, b[0], [edit.b for edit in edits if edit.b is not None and not edit.same])
    return ConversationDiff(mine, theirs, edits, left[same - 1] if same else None, partial, changed)


def _diff_side(context: Context, branch: Branch, own: list[Row]) -> DiffSide:
    last = read_turn(context.store, branch.tip, own[-1]).answer if own else ""
    return DiffSide(branch, own, turn_gists(context, branch, own), last)


def diff_json(store: Store, found: ConversationDiff, overrides: Prices) -> dict[str, Any]:
    """Return what `diff --json` prints."""
    return {
        "a": found.a.branch.name,
        "b": found.b.branch.name,
        "base": None if found.base is None else {"turn": found.base.turn, "commit": found.base.commit},
        "shared_turns": found.shared,
        "partial": None
        if found.partial is None
        else {"turn": found.partial.turn, "cells": {"a": found.partial.a, "b": found.partial.b}},
        "changed": [{"a": one.a, "b": one.b, "differs": list(one.differs)} for one in found.changed],
        "only_a": _turns_json(store, found.a, overrides),
        "only_b": _turns_json(store, found.b, overrides),
        "files": {"a": found.a.files, "b": found.b.files},
        "tokens": {"a": found.a.tokens.as_json(), "b": found.b.tokens.as_json()},
    }


def _turns_json(store: Store, side: DiffSide, overrides: Prices) -> list[dict[str, Any]]:
    return [turn_json(row, read_turn(store, side.branch.tip, row), overrides) for row in side.own_rows]
