"""The search behind `sessgit bisect`: what it finds, and of how few it asks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.replay.bisect import Verdict, find_boundary

SKIPS = st.lists(st.booleans(), max_size=40)


def searched(row: Sequence[Verdict]) -> tuple[tuple[int, int], list[int]]:
    """What is found in a row, and what was asked for that."""
    asked = list[int]()

    def ask(place: int, left: int) -> Verdict:
        assert 0 < left < len(row)
        asked.append(place)
        return row[place]

    return find_boundary(range(len(row)), ask), asked


def scanned(row: Sequence[Verdict]) -> tuple[int, int]:
    """The last good place before the first bad one, found by looking at all."""
    first = row.index("bad")
    return max(place for place in range(first) if row[place] == "good"), first


@given(SKIPS, SKIPS)
def test_it_finds_what_a_look_at_all_finds(before: list[bool], after: list[bool]) -> None:
    row: list[Verdict] = [
        "good", *("skip" if skipped else "good" for skipped in before),
        *("skip" if skipped else "bad" for skipped in after), "bad",
    ]  # fmt: skip
    found, asked = searched(row)
    assert found == scanned(row)
    assert len(asked) == len(set(asked))


@given(st.lists(st.sampled_from(["good", "bad", "skip"]), max_size=40))
def test_of_a_row_that_goes_to_and_fro_it_finds_one_change(middle: list[Verdict]) -> None:
    row: list[Verdict] = ["good", *middle, "bad"]
    (good, bad), asked = searched(row)
    assert (row[good], row[bad]) == ("good", "bad")
    assert set(row[good + 1 : bad]) <= {"skip"}
    assert set(range(good + 1, bad)) <= set(asked)


@given(st.integers(1, 3000), st.data())
def test_it_asks_a_logarithm_of_times(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count))
    _, asked = searched(["good"] * first + ["bad"] * (count + 1 - first))
    assert len(asked) <= (count - 1).bit_length()


@pytest.mark.parametrize("first", [1, 300, 512, 700, 999])
def test_out_of_a_clump_of_skips_it_jumps(first: int) -> None:
    """A hundred turns in the middle cannot be tested, and next to none of them is tried."""
    row: list[Verdict] = ["good"] * first + ["bad"] * (1000 - first)
    for place in range(450, 550):
        row[place] = "skip"
    (good, bad), asked = searched(row)
    if not 450 <= first <= 550:
        assert (good, bad) == (first - 1, first)
        assert sum(row[place] == "skip" for place in asked) <= 4
        assert len(asked) <= 16
    else:
        assert (good, bad) == (449, 550)


def test_what_is_asked_spreads() -> None:
    """The second half of a row that cannot be tested at all: the places lie far from each other."""
    _, asked = searched(["good", *["skip"] * 63, "bad"])
    assert sorted(asked) == list(range(1, 64))
    assert min(abs(a - b) for a, b in pairwise(asked[:8])) >= 7
