"""The laws of comparing two conversations turn by turn, related or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.model.merging import compare
from sessgit.model.merging.compare import Edit

Differ = Callable[[Sequence[str], Sequence[str]], list[Edit]]

KEYS = st.lists(st.sampled_from("abcd"), max_size=7)
EITHER = pytest.mark.parametrize("diff", [compare.diff, compare.diff_unrelated])


def swapped(edits: list[Edit]) -> list[Edit]:
    """The edits the other way round; what only the first conversation has stands first between two that both have."""
    back = {"both": "both", "a": "b", "b": "a"}
    found = [Edit(back[edit.side], edit.key) for edit in edits]  # type: ignore[arg-type]
    runs = (list(run) for _, run in groupby(found, key=lambda edit: edit.side == "both"))
    return [edit for run in runs for edit in sorted(run, key=lambda edit: edit.side)]


@EITHER
@given(KEYS, KEYS)
def test_the_edits_turn_the_one_into_the_other(diff: Differ, a: list[str], b: list[str]) -> None:
    assert compare.patch(a, diff(a, b)) == b


@EITHER
@given(KEYS)
def test_nothing_differs_from_itself(diff: Differ, a: list[str]) -> None:
    assert diff(a, a) == [Edit("both", key) for key in a]


@EITHER
@given(KEYS, KEYS)
def test_the_other_way_round_the_sides_are_swapped(diff: Differ, a: list[str], b: list[str]) -> None:
    assert diff(b, a) == swapped(diff(a, b))


def test_turns_are_shared_up_to_the_first_that_differs() -> None:
    assert compare.diff(["one", "two", "three"], ["one", "deux", "three"]) == [
        Edit("both", "one"), Edit("a", "two"), Edit("a", "three"), Edit("b", "deux"), Edit("b", "three"),
    ]  # fmt: skip


def test_edits_for_another_conversation_are_refused() -> None:
    edits = compare.diff(["one", "two"], ["one"])
    with pytest.raises(ValueError, match="another conversation"):
        compare.patch(["one"], edits)
