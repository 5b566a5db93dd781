"""Numbers and times as a person reads them."""

from __future__ import annotations

import pytest

from sessgit.formats import phrases
from sessgit.model import humanize


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"), (999, "999"), (1000, "1k"), (1499, "1k"), (99_500, "100k"), (999_499, "999k"), (999_500, "1.0M"),
        (1_234_567, "1.2M"), (9_949_999, "9.9M"), (12_345_678, "12M"),
    ],
)  # fmt: skip
def test_tokens(number: int, shown: str) -> None:
    assert humanize.format_tokens(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.9, ""), (1, "1 s"), (59.4, "59 s"), (59.6, "1 min"), (89, "1 min"), (3_569, "59 min"), (3_599, "1 h"),
        (3_660, "1 h 1 min"), (7_199, "2 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert phrases.format_duration(seconds) == shown
