"""Ids and names that two machines arrive at alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.model import ids


@pytest.mark.parametrize("name", ["a", "0", "3b241101-e2bb-4255-8caf-4136c566a962", "a-", "x" * 64])
def test_an_id_that_can_be_a_ref_is_kept(name: str) -> None:
    assert ids.session_id(name) == name


@pytest.mark.parametrize("name", ["", "-a", "A", "a.b", "a/b", "a b", "x" * 65, "ä", "a\n", "a.lock", "\ud800"])
def test_any_other_becomes_a_uuid(name: str) -> None:
    found = ids.session_id(name)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", found)


def test_they_stay_what_they_were() -> None:
    """What is recorded is found by these names: a later version must arrive at the same ones."""
    assert ids.session_id("A") == "d4d914d0-47f0-5973-8c02-62310dfc497d"
    assert ids.line_id(b'{"type":"user"}', 7) == "00567df0-b9ce-529d-928a-38e9727f5b6a"
    assert ids.cell_id("p", "toolu_1") == "cell_z8ftp5m1"
    assert ids.rewound_name("a41f", "9c02d7e1-0000-4000-8000-000000000000") == "a41f.r-9c02d7e1"
    assert ids.rewound_name("a41f", "no uuid") == "a41f.r-e4f934b1"
    assert ids.other_name("a41f", "9c02d7e1-0000-4000-8000-000000000000") == "a41f.m-9c02d7e1"


def test_what_a_branch_can_be_called() -> None:
    for name in ("a41f", "a41f.r-9c02d7e1", "a41f.m-9c02d7e1"):
        assert ids.is_branch(name), name
    for name in ("", "-a", "A41F", "a/b", "a41f.", "a41f.x-9c02d7e1", "a41f.m-9c02d7e", "a41f.m-9C02D7E1", "a41f\n"):
        assert not ids.is_branch(name), name


@given(st.text(), st.text())
def test_shapes(a: str, b: str) -> None:
    assert ids.SESSION_ID.fullmatch(ids.session_id(a))
    assert re.fullmatch("cell_[a-z0-9]{8}", ids.cell_id(a, b))
    assert re.fullmatch(r"[0-9a-f]{8}", ids.short_id(a))
    assert ids.is_branch(ids.other_name(ids.session_id(a), b)) and ids.is_branch(ids.rewound_name(ids.session_id(a), b))


@given(st.text(), st.text())
def test_no_two_ids_meet(a: str, b: str) -> None:
    assert (ids.session_id(a) == ids.session_id(b)) == (a == b)


def test_a_place_tells_equal_lines_apart() -> None:
    assert ids.line_id(b"x", 0) != ids.line_id(b"x", 1) != ids.line_id(b"y", 1)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([], "abcd"),
        (["", "b", "abx"], "abcd"),
        (["abcdx"], "abcde"),
        (["abcd", "abcdefx"], "abcdefg"),
        (["abcdefghij"], "abcdefgh"),
    ],
)
def test_as_much_of_an_id_as_tells_it_from_others(others: list[str], told: str) -> None:
    assert ids.shortest_unique("abcdefgh", others, 4) == told
