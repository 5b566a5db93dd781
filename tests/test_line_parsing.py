"""A line is read as the standard library's `json` reads it, and a member of it like all of it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessgit.agents.line import member_reader, parse
from sessgit.model import json_strings

KEYS = ("uuid", "type", "n")
members = member_reader(*KEYS)

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=3),
    max_leaves=8,
)
_documents = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), _values, min_size=1, max_size=5) | _values
_ODD = (
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"-0.0", b"01", b"1.", b"\\ud800", b"\\u0075", b"\xed\xa0\x80", b"\xff"),
    *(b"\x00", b"\t", b"\xef\xbb\xbf", b"[" * 3, b"{}", b'"', b"\\", b",", b":", b" ", b"9" * 30, b"null", b'"n":1,'),
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line of JSON as one writer or another spells it, and often with something in it that is none."""
    ascii_only, blanks = draw(st.booleans()), draw(st.booleans())
    text = json.dumps(draw(_documents), ensure_ascii=ascii_only, separators=None if blanks else (",", ":"))
    line = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(line)))
        line[at : at + draw(st.integers(0, 2))] = draw(st.sampled_from(_ODD))
    return bytes(line)


def reference(raw: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def spelled(value: object) -> str:
    """The value so that 1, 1.0 and True differ, as do 0.0 and -0.0, and NaN equals itself."""
    return repr(value)


@given(lines())
@example(b'{"uuid":"a","uuid":"b","n":{"uuid":"c"}}')
@example(b'{"\\u0075uid":"a","type":"\\ud83d\\ude00","n":-0}')
@example(b'{"type":"\\ud800","n":NaN}')
@example(b'{"text":"\xff","uuid":"a"}')
@example(b'{"text":"\xed\xa0\x80","uuid":"a"}')
@example(b'{"uuid":"a"} ')
@example(b'\xef\xbb\xbf{"uuid":"a"}')
@example(b'{"n":%s}' % (b"9" * 5000))
def test_a_line_is_read_as_json_reads_it(raw: bytes) -> None:
    expected = reference(raw)
    assert spelled(parse(raw)) == spelled(expected)
    assert spelled(members(raw)) == spelled(None if expected is None else tuple(map(expected.get, KEYS)))


@pytest.mark.parametrize("raw", [b'{"n":' + b"[" * 100_000, b"{" * 100_000, b'{"n":' * 100_000])
def test_a_line_too_deep_is_not_read(raw: bytes) -> None:
    assert parse(raw) is None and members(raw) is None


def test_a_line_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b'{"uuid":"a","type":"b"}'
    monkeypatch.setattr(json_strings, "LONGEST_LINE", len(raw))
    assert parse(raw) == {"uuid": "a", "type": "b"} and members(raw) == ("a", "b", None)
    assert parse(raw + b" ") is None and members(raw + b" ") is None


def test_numbers_keep_all_their_digits() -> None:
    big = 2**200 + 1
    assert parse(b'{"n":%d}' % big) == {"n": big} and members(b'{"n":%d}' % big) == (None, None, big)
    assert math.copysign(1, (parse(b'{"n":-0.0}') or {})["n"]) == -1
