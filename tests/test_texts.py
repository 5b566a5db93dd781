"""The laws of cutting long strings out of lines."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import param

from sessgit.model import json_strings

LONG = "naïve ünïcode\n" * 300


def label(index: int, key: str) -> tuple[str, str]:
    return ("Read", "/p/parser.py") if index else ("user", "")


def line(value: object, *, escaped: bool = False) -> bytes:
    text = json.dumps(value, ensure_ascii=escaped, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def blob_id(text: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()[:8]


def referenced_names(lines: Sequence[bytes]) -> list[str]:
    """Return the names of the texts that the lines refer to."""
    return [name.decode() for line in lines for name in re.findall(rb'\{"\$text":"([^"]+)"\}', line)]


def test_a_long_string_becomes_a_file() -> None:
    lines = [line({"type": "user", "content": LONG}), line({"n": 1, "file": {"content": "short", "text": LONG + "!"}})]
    first, second = LONG.encode(), (LONG + "!").encode()
    names = (f"{blob_id(first)}-user-content", f"{blob_id(second)}-Read-parser.py")
    stored, files = json_strings.cut_long_strings(lines, label)
    assert stored == [
        b'{"type":"user","content":{"$text":"%s"}}' % names[0].encode(),
        b'{"n":1,"file":{"content":"short","text":{"$text":"%s"}}}' % names[1].encode(),
    ]
    assert files == {names[0]: first, names[1]: second}
    assert json_strings.fill_long_strings(stored, files) == lines
    assert referenced_names(stored) == list(names)


def test_the_same_text_is_one_file() -> None:
    lines = [line({"a": {"content": LONG}, "b": {"content": LONG}})]
    stored, files = json_strings.cut_long_strings(lines, label)
    assert len(files) == 1
    assert json_strings.fill_long_strings(stored, files) == lines


@pytest.mark.parametrize(("size", "is_cut"), [(4095, False), (4096, True)])
def test_the_limit_counts_raw_bytes_with_the_quotes(size: int, is_cut: bool) -> None:
    for text in ("x" * (size - 2), '"' * ((size - 2) // 2) + "x" * (size % 2)):
        token = json.dumps(text)
        assert len(token) == size
        assert bool(json_strings.cut_long_strings([line({"type": "user", "text": text})], label)[1]) is is_cut


@pytest.mark.parametrize(
    ("tool", "path", "key", "name"),
    [
        param("Bash", "", "stdout", "Bash-stdout", id="no file"),
        param("Read", "/a/b/c.py", "x", "Read-c.py", id="file"),
        param("Read", "C:\\a\\b c.py", "x", "Read-b_c.py", id="windows"),
        param("mcp__server__a_very_long_tool_name", "", "x", "mcp__server__a_very_long-x", id="24 of the tool"),
        param("W", "/d/" + "y" * 50 + ".py", "x", f"W-{'y' * 37}.py", id="the last 40 of the file"),
        param("W", "/d/", "k" * 50, f"W-{'k' * 40}", id="a folder"),
        param("naïve/../x", "/ä.py", "x", "na_ve_.._x-_.py", id="unsafe"),
        param("", "", "", "-", id="nothing"),
    ],
)
def test_names(tool: str, path: str, key: str, name: str) -> None:
    (found,) = json_strings.cut_long_strings([line({key: LONG})], lambda *_: (tool, path))[1]
    assert found == f"{blob_id(LONG.encode())}-{name}"
    assert referenced_names([b'{"x":{"$text":"%s"}}' % found.encode()]) == [found]


@pytest.mark.parametrize(
    "raw",
    [
        param(b'{"a":"' + b"x" * 5000 + b'","b":{"$text":"f00-x-y"}}', id="a marker already exists"),
        param(b'{"a":"' + b"\\/" * 3000 + b'"}', id="an escape that is written otherwise"),
        param(b'{"a":"' + b"\\u00e9" * 1000 + b'"}', id="an escape where none is needed"),
        param(b'{"a":"\\ud800' + b"x" * 5000 + b'"}', id="a lone surrogate"),
        param(b'{"a":"' + b"x" * 5000 + b"\xff" + b'"}', id="no UTF-8"),
        param(b'{"a":"' + b"x" * 5000, id="torn"),
        param(b'{"a":"x","b":1}{"c":"' + b"x" * 5000 + b'"}', id="two objects on a line"),
        param(b'{"' + b"k" * 5000 + b'":1}', id="a long key"),
        param(b"[" * 100_000, id="deep"),
    ],
)
def test_what_would_not_come_back_stays(raw: bytes) -> None:
    assert json_strings.cut_long_strings([raw], label) == ([raw], {})


def test_an_escape_that_is_the_only_way_to_write_a_character_is_cut_out_with_its_text() -> None:
    text = "\x1b[31mred\x1b[0m\n" * 400
    raw = line({"stdout": text})
    assert rb"\u001b" in raw
    stored, files = json_strings.cut_long_strings([raw], lambda *_: ("Bash", ""))
    name = f"{blob_id(text.encode())}-Bash-stdout"
    assert (stored, files) == ([b'{"stdout":{"$text":"%s"}}' % name.encode()], {name: text.encode()})
    assert json_strings.fill_long_strings(stored, files) == [raw]


def test_a_marker_in_one_line_keeps_the_whole_turn_uncut() -> None:
    lines = [line({"content": LONG}), b'{"see":"the marker {"$text":"..."} is ours"}']
    assert json_strings.cut_long_strings(lines, label) == (lines, {})


def test_two_texts_of_one_name_both_come_back() -> None:
    """Names hold 8 digits of a hash: two texts may meet."""
    one, two = _colliding_names()
    lines = [line({"a": one}), line({"a": two})]
    stored, files = json_strings.cut_long_strings(lines, lambda *_: ("t", "f"))
    assert json_strings.fill_long_strings(stored, files) == lines


def _colliding_names() -> tuple[str, str]:
    seen: dict[bytes, str] = {}
    base = hashlib.sha1(b"blob 4100\0" + b"x" * 4090)
    for number in range(10**6):
        own = base.copy()
        own.update(b"%010d" % number)
        text = "x" * 4090 + f"{number:010d}"
        if (other := seen.setdefault(own.digest()[:4], text)) != text:
            return other, text
    raise AssertionError("a million texts without two that meet")


def test_filling_leaves_unknown_markers() -> None:
    lines = [b'{"a":{"$text":"0-x-y"}}']
    assert json_strings.fill_long_strings(lines, {}) == lines
    assert json_strings.fill_long_strings(lines, {"0-x-z": b"x"}) == lines


_TEXT = st.text(st.characters(), max_size=40).map(lambda text: text * 120) | st.text()
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("$text"), inner, max_size=3)
    ),
    max_leaves=6,
)
_LINE = st.builds(lambda value, escaped: line({"v": value}, escaped=escaped), _VALUE, st.booleans()) | st.binary()


@given(st.lists(_LINE, max_size=4))
def test_what_is_cut_comes_back(lines: list[bytes]) -> None:
    stored, files = json_strings.cut_long_strings(lines, label)
    assert json_strings.fill_long_strings(stored, files) == lines
    assert sorted(set(referenced_names(stored)) & files.keys()) == sorted(files)
    assert json_strings.cut_long_strings(lines, label) == (stored, files)


def _numbered(first: int, count: int, form: str = "{:>6}→", rest: str = "") -> str:
    return (
        "\n".join(f"{form.format(n)}line {n} of a file, as long as lines are" for n in range(first, first + count))
        + rest
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        param(_numbered(1, 200), ".wa1.200", id="an arrow"),
        param(_numbered(1, 200, "{:>6}\t"), ".wt1.200", id="a tab"),
        param(_numbered(940, 200, "{}\t"), ".nt940.200", id="no padding"),
        param(_numbered(1, 200, "{}→"), ".na1.200", id="no padding, an arrow"),
        param(_numbered(99_900, 200), ".wa99900.200", id="grown beyond the padding"),
        param(
            _numbered(1, 200, rest="\n\n<system-reminder>Well.</system-reminder>\n"), ".wa1.200", id="a reminder behind"
        ),
        param(_numbered(1, 150) + "\n" + _numbered(1, 50), ".wa1.150", id="begun again"),
        param(_numbered(1, 200, "{:>4}→"), "", id="another width"),
        param(_numbered(1, 2) + "\n" + "x" * 5000, "", id="two lines"),
        param("1 " * 3000, "", id="just digits"),
        param(_numbered(999_800, 200), ".na999800.200", id="six digits to the end"),
        param(_numbered(999_801, 200), "", id="a seventh digit at the end"),
        param("\n" + _numbered(1, 200), "", id="an empty line before"),
        param(_numbered(7, 200, "0{}\t"), "", id="a leading zero"),
    ],
)
def test_numbers_of_lines_are_in_the_name(text: str, told: str) -> None:
    raw = json.dumps({"content": text}, ensure_ascii=False, separators=(",", ":")).encode()
    stored, files = json_strings.cut_long_strings([raw], lambda *_: ("Read", "/p/a.py"))
    ((name, data),) = files.items()
    assert name == f"{json_strings.text_digest(data)}{told}-Read-a.py"
    assert (data.decode() == text) is not told
    assert json_strings.fill_long_strings(stored, files) == [raw]


def test_a_file_and_what_is_shown_of_it_are_one_blob() -> None:
    plain = "\n".join(f"line {n} of a file, as long as lines are" for n in range(1, 201))
    data = {"content": _numbered(1, 200), "file": {"content": plain}}
    _, files = json_strings.cut_long_strings([line(data)], lambda *_: ("Read", "/p/a.py"))
    assert len(files) == 2
    assert set(files.values()) == {plain.encode()}


@given(
    st.integers(0, 1_200_000), st.integers(0, 12), st.sampled_from(["{:>6}→", "{:>6}\t", "{}→", "{}\t", "{:>5}\t"]),
    st.lists(st.text(st.sampled_from("a1 \t→\r\x85\u2028")), max_size=12), st.text(max_size=9),
)  # fmt: skip
def test_numbered_texts_come_back(first: int, skipped: int, form: str, shown: list[str], rest: str) -> None:
    numbered = "\n".join(f"{form.format(n + (n > first + skipped))}{text}" for n, text in enumerate(shown, start=first))
    raw = json.dumps({"x": numbered + rest + "\n" + "y" * 5000}).encode()
    stored, files = json_strings.cut_long_strings([raw], lambda *_: ("Read", "a"))
    assert json_strings.fill_long_strings(stored, files) == [raw]


@pytest.mark.parametrize("numbers", [".wa1.999999", ".wa0.0", ".nt5.3", ".xx1.1", ".wa1", ".wa1.2.3"])
def test_whatever_a_name_says_of_numbers_is_no_error(numbers: str) -> None:
    assert json_strings.full_text(f"01234567{numbers}-Read-a", b"a\nb").endswith(b"b")


@given(
    st.sampled_from(["", ".wa", ".wt", ".na", ".nt"]), st.integers(0, 1_200), st.integers(0, 12),
    st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from('\\"\t\x00')), max_size=12),
)  # fmt: skip
def test_a_text_is_the_same_in_a_line_and_alone(kind: str, first: int, count: int, lines: list[str]) -> None:
    name = f"01234567{kind}{f'{first}.{count}' if kind else ''}-Read-a"
    text = "\n".join(lines).encode()
    (filled,) = json_strings.fill_long_strings([b'{"x":{"$text":"%s"}}' % name.encode()], {name: text})
    assert filled == line({"x": json_strings.full_text(name, text).decode()})


def test_a_text_that_is_named_twice_in_a_line_is_filled_in_twice() -> None:
    marker = b'{"$text":"01234567-a-b"}'
    assert json_strings.fill_long_strings([b"[%b,%b]" % (marker, marker), marker, b"$"], {"01234567-a-b": b'"'}) == [
        b'["\\"","\\""]', b'"\\""', b"$",
    ]  # fmt: skip
