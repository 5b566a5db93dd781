"""Commit messages and the extents in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Extent, Message, parse_tools


def test_a_message() -> None:
    message = Message(
        "turn 7: Write it", (("Session", "a41f"), ("Model", ""), ("Extent", "0+9/1"), ("Extent", "20+5/2"))
    )
    text = "turn 7: Write it\n\nSession: a41f\nExtent: 0+9/1\nExtent: 20+5/2\n"
    assert messages.format_message(message) == text
    found = messages.parse_message(text)
    assert found == Message("turn 7: Write it", (("Session", "a41f"), ("Extent", "0+9/1"), ("Extent", "20+5/2")))
    assert (found.get("Extent"), found.get("Model"), found.all("Session")) == ("20+5/2", "", ["a41f"])
    assert found.extents == [Extent(0, 9), Extent(20, 5, 2)]


@pytest.mark.parametrize(
    ("subject", "written"),
    [
        ("", "(empty)"),
        (" \n\t", "(empty)"),
        ("\n\nsecond line", "second line"),
        ("bell\x07 and\x1b[0m", "bell  and [0m"),
        ("x" * 72, "x" * 72),
        ("x" * 73, "x" * 71 + "…"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\ud800", "(empty)"),
    ],
)
def test_subjects(subject: str, written: str) -> None:
    assert messages.format_message(Message(subject)) == f"{written}\n\n"


def test_no_value_breaks_out_of_its_line() -> None:
    text = messages.format_message(
        Message("x", (("Model", "a\nTurn: 9"), ("Tools", "b\u2028Turn: 9"), ("Prompt", "\rTurn: 9")))
    )
    assert messages.parse_message(text).get("Turn") == ""


@pytest.mark.parametrize("value", ["", " ", "\u00a0\t", "\n\u202e"])
def test_a_value_in_which_nothing_can_be_seen_is_none(value: str) -> None:
    message = Message("x", (("Model", value), ("Turn", "9")))
    assert messages.format_message(message) == "x\n\nTurn: 9\n"


def test_lines_that_are_no_trailers_are_passed_over() -> None:
    assert messages.parse_message("subject\nTurn: 3\n\nno trailer\nlower: x\nTurn : 4\nA-1: b\n").trailers == (
        ("Turn", "3"),
        ("A-1", "b"),
    )
    assert messages.parse_message("") == Message("")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("7", 7),
        ("0", 0),
        ("", None),
        ("-7", None),
        ("7x", None),
        ("٧", None),
        ("1" * 15, int("1" * 15)),
        ("1" * 16, None),
    ],
)
def test_numbers(value: str, number: int | None) -> None:
    assert Message("", (("Turn", value),)).number("Turn") == number


@pytest.mark.parametrize("text", ["", "1", "1+2", "1+2/", "-1+2/3", "1+2/3 ", "1+2/3/4", "9" * 16 + "+1/1", "1+1/1\n"])
def test_what_is_no_extent(text: str) -> None:
    assert Extent.parse(text) is None


@given(st.builds(Extent, *[st.integers(0, 10**9 - 1)] * 3))
def test_an_extent_comes_back(extent: Extent) -> None:
    assert Extent.parse(str(extent)) == extent


def test_neighbours_become_one() -> None:
    lines = [Extent(10, 5), Extent(15, 5), Extent(0, 10), Extent(10, 1), Extent(30, 1)]
    assert messages.join_extents(lines) == [Extent(10, 10, 2), Extent(0, 11, 2), Extent(30, 1)]
    assert messages.join_extents([]) == []


@given(st.lists(st.builds(Extent, st.integers(0, 30), st.integers(1, 5), st.just(1))))
def test_joined_extents_say_the_same(extents: list[Extent]) -> None:
    def places(found: list[Extent]) -> list[int]:
        return [place for extent in found for place in range(extent.offset, extent.end)]

    joined = messages.join_extents(extents)
    assert places(joined) == places(extents)
    assert sum(extent.lines for extent in joined) == len(extents)


def test_tools() -> None:
    value = messages.tools_value({"Bash": 1, "Edit": 2, "a,b\nc": 1})
    assert value == "Edit 2, Bash 1, a b 1"
    assert parse_tools(value) == {"Edit": 2, "Bash": 1, "a b": 1}
    assert parse_tools("") == {}
    assert len(messages.tools_value({f"T{n}": 1 for n in range(30)}).split(", ")) == 12


@given(st.text(), st.lists(st.tuples(st.from_regex(r"\A[A-Z][A-Za-z0-9-]{0,9}\Z"), st.text(min_size=1)), max_size=4))
def test_what_is_written_is_read(subject: str, trailers: list[tuple[str, str]]) -> None:
    text = messages.format_message(Message(subject, tuple(trailers)))
    once = messages.parse_message(text)
    assert [key for key, _ in once.trailers] == [key for key, value in trailers if canonical.one_line(value, 500)]
    assert messages.format_message(once) == text
    text.encode()


@given(st.lists(st.tuples(st.sampled_from(["Event", "Origin", "Tokens-In", "In"]), st.text()), max_size=6), st.text())
def test_one_trailer_is_what_parsing_the_message_finds(trailers: list[tuple[str, str]], subject: str) -> None:
    text = messages.format_message(Message(subject, tuple(trailers)))
    parsed = messages.parse_message(text)
    for key in ("Event", "Origin", "Tokens-In", "In", "Model"):
        assert messages.trailer(text, key) == parsed.get(key)
