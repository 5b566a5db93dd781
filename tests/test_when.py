"""Moments as a person names them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.cli.frame import parse_time
from sessgit.errors import UsageError

NOW = datetime(2026, 3, 10, 13, 30, tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def in_utc() -> None:
    time.tzset()


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four hours behind, and five before 2 o'clock of 8 March 2026."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
        time.tzset()
        yield
    time.tzset()


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", "2026-03-10T13:00Z"),
        ("3h", "2026-03-10T10:30Z"),
        ("2d", "2026-03-08T13:30Z"),
        ("1w", "2026-03-03T13:30Z"),
        ("0d", "2026-03-10T13:30Z"),
        ("2 days ago", "2026-03-08T13:30Z"),
        ("2.weeks.ago", "2026-02-24T13:30Z"),
        ("1 hour", "2026-03-10T12:30Z"),
        ("today", "2026-03-10T00:00Z"),
        ("Yesterday", "2026-03-09T00:00Z"),
        ("2026-03-01", "2026-03-01T00:00Z"),
        ("20260301", "2026-03-01T00:00Z"),
        ("2026-03-01T10:00", "2026-03-01T10:00Z"),
        ("2026-03-01 10:00:30", "2026-03-01T10:00:30Z"),
        ("2026-03-01T10:00:00.250Z", "2026-03-01T10:00:00.250Z"),
        ("2026-03-01T10:00:00+02:00", "2026-03-01T08:00Z"),
        (" 2d ", "2026-03-08T13:30Z"),
    ],
)
def test_moments(text: str, expected: str) -> None:
    assert parse_time(text, NOW) == at(expected)


def test_days_begin_at_midnight_of_the_clock_on_the_wall(new_york: None) -> None:
    assert parse_time("today", NOW) == at("2026-03-10T04:00Z")
    assert parse_time("2026-03-08", NOW) == at("2026-03-08T05:00Z")
    assert parse_time("2026-03-09", NOW) == at("2026-03-09T04:00Z")
    assert parse_time("2026-03-01T10:00", NOW) == at("2026-03-01T15:00Z")
    assert parse_time("2026-03-01T10:00Z", NOW) == at("2026-03-01T10:00Z")


def test_yesterday_is_the_day_before_also_where_a_day_has_23_hours(new_york: None) -> None:
    early = at("2026-03-09T04:30Z")  # half past midnight, after the short Sunday
    assert parse_time("yesterday", early) == at("2026-03-08T05:00Z")


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "2",
        "d",
        "-2d",
        "2x",
        "tomorrow",
        "2026-13-01",
        "2026-02-30",
        "٢d",
        "2d\n3h",
        "9" * 40 + "d",
        "2026-03-01T25:00",
    ],
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_time(text, NOW)
    assert str(refused.value) == f"“{text}” is not a time"
    assert refused.value.hint == "Use 2d, 3h, 1w, today, yesterday, 2026-03-01 or 2026-03-01T10:00."


@given(st.text(max_size=20))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert isinstance(parse_time(text, NOW), float) == bool(text)


@given(st.integers(0, 10_000), st.sampled_from("mhdw"))
def test_more_is_earlier(number: int, unit: str) -> None:
    more, less = parse_time(f"{number + 1}{unit}", NOW), parse_time(f"{number}{unit}", NOW)
    assert 0 <= more < less <= NOW or more == less == 0
