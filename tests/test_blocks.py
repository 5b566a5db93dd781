"""The blocks of pages: whatever the texts, lines fit the terminal and columns stand below each other."""

from __future__ import annotations

from pathlib import Path

from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st

from sessgit.cli import text
from sessgit.cli.invocation import Invocation, Paint, Terminal
from sessgit.cli.text import Column
from sessgit.environment import Environment

WORDS = st.text(st.sampled_from("ab 語é,."), max_size=30).map(str.strip)


def terminal(width: int, *, colour: bool = False) -> Invocation:
    nowhere = Path("/nowhere")
    env = Environment(nowhere, claude_homes(nowhere), nowhere, "", off=False)
    return Invocation(env, "/", Terminal(True, True, colour, width, 24, ""))


@given(WORDS, st.integers(0, 40))
def test_a_cut_text_fits_and_keeps_its_style(words: str, columns: int) -> None:
    painted = Paint(True)("bold", words)
    assert text.width(text.cut(words, columns)) <= columns
    assert text.without_colours(text.cut(painted, columns)) == text.cut(words, columns)
    assert text.cut(painted, columns).startswith("\033[1m") == bool(words)
    assert text.width(text.fit(painted, columns)) == columns


@given(WORDS, WORDS, WORDS, st.integers(0, 20))
def test_a_spread_line_is_as_wide_as_the_page(start: str, middle: str, end: str, more: int) -> None:
    columns = text.width(start) + text.width(end) + 2 + more
    line = text.spread(start, middle, end, columns)
    assert text.width(line) == columns
    assert line.startswith(start)
    assert line.endswith(end)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=6), st.integers(40, 90), st.booleans())
def test_the_columns_of_a_table_fit_and_align(rows: list[tuple[str, str, str]], width: int, colour: bool) -> None:
    columns = (Column("yellow", least=1), Column(is_path=True, least=6), Column("dim", right=True, optional=True))
    lines = list(text.table(terminal(width, colour=colour), columns, rows, indent=2))
    assert len({text.width(line) for line in lines}) == 1
    assert all(text.width(line) <= width for line in lines)


def test_the_widest_columns_are_cut_and_optional_ones_left_out() -> None:
    columns = (Column(), Column(least=12), Column(optional=True))
    assert text.fit_widths(columns, [10, 30, 8], 52) == [10, 30, 8]
    assert text.fit_widths(columns, [10, 30, 8], 45) == [10, 23, 8]
    assert text.fit_widths(columns, [10, 30, 8], 33) == [10, 21, 0]
    assert text.fit_widths(columns, [10, 30, 8], 20) == [10, 8, 0]
    assert text.fit_widths((Column(least=4), Column(least=8)), [20, 30], 32) == [15, 15]
    assert text.fit_widths((Column(), Column(least=1)), [0, 3], 2) == [0, 2]


def test_a_field_folds_between_its_parts_and_wraps_long_ones() -> None:
    assert list(text.field(terminal(40), "Size  ", ["3 turns", "", "14 messages", "20 cells of several kinds"])) == [
        "Size  3 turns  ·  14 messages",
        "      20 cells of several kinds",
    ]
    assert list(text.field(terminal(20), "Why  ", ["a reason of many words"], between=" ")) == [
        "Why  a reason of",
        "     many words",
    ]
    assert not list(text.field(terminal(40), "None", ["", ""]))


def test_lists_say_how_many_more_there_are() -> None:
    assert text.some(["a", "b", "c"], 3) == ["a", "b", "c"]
    assert text.some(["a", "b", "c"], 1) == ["a", "and 2 more"]
    assert text.numbers("turn", [4], 2) == "turn 4"
    assert text.numbers("turn", [4, 5, 6], 2) == "turns 4, 5 and 1 more"


def test_a_heading_folds_between_facts_below_its_title() -> None:
    assert list(text.heading(terminal(40), "a41f", "parser", "~/code/calc", "claude", "12 turns")) == [
        "a41f  parser  ·  ~/code/calc  ·  claude",
        "      12 turns",
    ]
    assert list(text.heading(terminal(40), "a41f@2", "", "14:02")) == ["a41f@2  ·  14:02"]


def test_a_text_that_was_cut_is_not_measured_character_by_character() -> None:
    before = text._columns.cache_info()
    assert text.width(text.fit("prompt of a long turn", 9)) == 9
    assert text._columns.cache_info() == before
