"""The laws of comparing two conversations turn by turn, related or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import eq, itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.history import diff
from sessgit.history.diff import Edit

Turn = tuple[str, str]
"""A prompt and what came of it."""
Differ = Callable[[Sequence[Turn], Sequence[Turn]], list[Edit[Turn]]]


def related(a: Sequence[Turn], b: Sequence[Turn]) -> list[Edit[Turn]]:
    return diff.diff(a, b, itemgetter(0), eq)


def unrelated(a: Sequence[Turn], b: Sequence[Turn]) -> list[Edit[Turn]]:
    return diff.diff_unrelated(a, b, itemgetter(0), eq)


TURNS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy")), max_size=7)
EITHER = pytest.mark.parametrize("diff", [related, unrelated])


def swapped(edits: list[Edit[Turn]]) -> list[Edit[Turn]]:
    """The edits the other way round; what only the first conversation has stands first between two that stand for each
    other."""
    found = [Edit(edit.b, edit.a, edit.same) for edit in edits]
    runs = (list(run) for _, run in groupby(found, key=lambda edit: edit.same or edit.changed))
    return [edit for run in runs for edit in _ordered(run)]


def _ordered(run: list[Edit[Turn]]) -> list[Edit[Turn]]:
    is_pair = run[0].same or run[0].changed
    return run if is_pair else sorted(run, key=lambda edit: edit.a is None)


@EITHER
@given(TURNS, TURNS)
def test_the_edits_turn_the_one_into_the_other(diff: Differ, a: list[Turn], b: list[Turn]) -> None:
    edits = diff(a, b)
    assert [edit.a for edit in edits if edit.a is not None] == a
    made = (edit.a if edit.same else edit.b for edit in edits)
    assert [turn for turn in made if turn is not None] == b


@EITHER
@given(TURNS)
def test_nothing_differs_from_itself(diff: Differ, a: list[Turn]) -> None:
    assert diff(a, a) == [Edit(turn, turn, same=True) for turn in a]


@EITHER
@given(TURNS, TURNS)
def test_the_other_way_round_the_sides_are_swapped(diff: Differ, a: list[Turn], b: list[Turn]) -> None:
    assert diff(b, a) == swapped(diff(a, b))


@EITHER
@given(TURNS, TURNS)
def test_turns_that_are_the_same_have_the_same_content(diff: Differ, a: list[Turn], b: list[Turn]) -> None:
    for edit in diff(a, b):
        assert edit.same == (edit.a == edit.b)
        assert not edit.changed or (edit.a and edit.b and edit.a[0] == edit.b[0])


def test_turns_stand_for_each_other_up_to_the_first_other_prompt() -> None:
    a, b = [("one", "1"), ("two", "2"), ("three", "3")], [("one", "I"), ("deux", "2"), ("three", "3")]
    assert related(a, b) == [
        Edit(a[0], b[0]), Edit(a[1], None), Edit(a[2], None), Edit(None, b[1]), Edit(None, b[2]),
    ]  # fmt: skip
    assert unrelated(a, b) == [Edit(a[0], b[0]), Edit(a[1], None), Edit(None, b[1]), Edit(a[2], b[2], same=True)]
