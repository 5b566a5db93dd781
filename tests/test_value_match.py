"""A value is found and replaced in every form that a purge promises, by its keyed hashes; nothing else is touched."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessgit.redact import value_match, views
from sessgit.redact.value_match import ValueMatcher, clean_lines, clean_text

KEY = b"k" * 32
MARK = "[redacted:purged]"
VALUES = [
    "plainSecret17",
    'with "quotes" in',
    "back\\slash",
    "two\nlines here",
    "Grüße an 東京",
    "a b/c+d&e=f@g",
    "4111111111111111",
    "six-by",
]
QUIET = st.text(alphabet='abc \\"\n\té{}[]:,0149/', max_size=12)
VALUE = st.sampled_from(VALUES) | st.text(alphabet='ab"\\\né1/', min_size=6, max_size=9)


def matcher(*values: str) -> ValueMatcher:
    return ValueMatcher(KEY).extended_with(values)


def dump(value: object, **how: bool) -> bytes:
    return json.dumps(value, separators=(",", ":"), **how).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3, 12])
def test_a_value_is_replaced_in_json_however_deep_it_is_nested(value: str, ascii_only: bool, depth: int) -> None:
    inside, clean = f"see {value}!", f"see {MARK}!"
    for _ in range(depth - 1):
        inside, clean = (json.dumps([one], ensure_ascii=ascii_only) for one in (inside, clean))
    line = dump({"a": inside, "b": [1, inside], inside: 2}, ensure_ascii=ascii_only)
    found, count = clean_lines(line, matcher(value))
    assert (json.loads(found), count) == ({"a": clean, "b": [1, clean], clean: 2}, 3)
    assert not matcher(value).holds(found)


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_replaced_in_texts_urls_and_base64(value: str) -> None:
    data, known = value.encode(), matcher(value)
    assert clean_text(b"<" + data + b">\n", known) == (b"<[redacted:purged]>\n", 1)
    for coded in (quote(value), quote(value, safe=""), quote_plus(value), "".join(f"%{one:02x}" for one in data)):
        assert clean_text(coded.encode(), known) == (MARK.encode(), 1)
    for before in (b"", b"x", b"me:"):
        for coder in (base64.b64encode, base64.urlsafe_b64encode):
            code = coder(before + data + b" and more")
            clean, count = clean_text(code, known)
            assert count == 1
            assert len(clean) == len(code)
            assert data not in base64.b64decode(clean.translate(bytes.maketrans(b"-_", b"+/")))


def test_values_next_to_each_other_are_counted_one_by_one() -> None:
    assert clean_text(b"<plainSecret17plainSecret17two words>", matcher("plainSecret17", "two words")) == (
        b"<" + 3 * MARK.encode() + b">",
        3,
    )
    assert clean_text(b"<aba-aba-aba>", matcher("aba-aba")) == (b"<" + MARK.encode() + b">", 1)


# Base64 and hex that is broken into lines

SHORT_LAST_LINES = [("base64", 58, 76), ("base64", 49, 64), ("hex", 31, 60), ("base64", 46, 60), ("hex", 33, 64)]


@pytest.mark.parametrize(("code", "size", "width"), SHORT_LAST_LINES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_value_whose_last_line_of_code_is_very_short(code: str, size: int, width: int, end: str) -> None:
    """The last line has a few characters, each of which only the value decides."""
    value = "".join(chr(0x61 + n * 7 % 26) for n in range(size))
    whole = value.encode().hex() if code == "hex" else base64.b64encode(value.encode()).decode()
    text = end.join(whole[at : at + width] for at in range(0, len(whole), width)) + end
    assert 0 < len(whole) % width <= 4
    for clean in (clean_text(text.encode(), matcher(value))[0], clean_lines(text.encode(), matcher(value))[0]):
        assert set(clean) - set(b"A=\r\n") <= set(whole.rstrip("=")[-1:].encode())
        assert len(clean) == len(text)
    line = clean_lines(dump({"a": text}), matcher(value))[0]
    assert json.loads(line)["a"].encode() == clean


@st.composite
def coded(draw: st.DrawFn) -> tuple[str, str, str]:
    """A value, how it is coded, and a text that holds it so: at any place in the code, broken into lines anywhere."""
    letters = st.characters(min_codepoint=0x20, max_codepoint=0x17F)
    value = draw(st.text(alphabet=letters, min_size=1, max_size=200).filter(lambda one: len(one.encode()) >= 6))
    before, after = draw(st.binary(max_size=90)), draw(st.binary(max_size=90))
    whole = before + value.encode() + after
    code = draw(st.sampled_from(("base64", "base64url", "hex", "HEX")))
    text = {
        "base64": base64.b64encode(whole).decode(),
        "base64url": base64.urlsafe_b64encode(whole).decode(),
        "hex": whole.hex(),
        "HEX": whole.hex().upper(),
    }[code]
    width = draw(st.integers(1, 90) | st.sampled_from((60, 64, 76)))
    rows = [text[at : at + width] for at in range(0, len(text), width)]
    first = draw(st.sampled_from(("", "  ", "\t", " " * 44, "{n:6d}\u2192", "{n}\t")))
    end = draw(st.sampled_from(("\n", "\r\n")))
    return (
        value,
        code,
        end.join(first.format(n=n) + row for n, row in enumerate(rows, 8)) + draw(st.sampled_from(("", end))),
    )


def decoded(code: str, text: str) -> bytes:
    """What the code says, read by none of our own code."""
    joined = "".join(re.sub(r"(?m)^ *\d+[\u2192\t]", "", text).split())
    if code in ("hex", "HEX"):
        return bytes.fromhex(joined)
    return base64.b64decode(joined.replace("-", "+").replace("_", "/"))


@settings(max_examples=400)
@given(coded(), st.integers(0, 4), st.booleans())
def test_no_code_that_is_called_clean_holds_the_value(sample: tuple[str, str, str], depth: int, escaped: bool) -> None:
    value, code, inside = sample
    known = matcher(value)
    for _ in range(depth):
        inside = json.dumps({"v": inside}, ensure_ascii=escaped)
    for clean in (clean_text(inside.encode(), known)[0].decode(), json.loads(clean_lines(dump([inside]), known)[0])[0]):
        assert not known.holds(clean.encode())
        left = clean
        for _ in range(depth):
            left = json.loads(left)["v"]
        assert value.encode() not in decoded(code, left)
        assert [len(row) for row in left.splitlines()] == [len(row) for row in sample[2].splitlines()]


TOOLS = [*(["base64", "-w", f"{n}"] for n in (0, 1, 7, 64, 76)), *(["xxd", "-p", "-c", f"{n}"] for n in (1, 7, 30, 60))]


@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_replaced_in_what_tools_print(tool: list[str], value: str) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"no {tool[0]} on this machine")
    code = "hex" if tool[0] == "xxd" else "base64"
    for before in ("", "b" * 15, "before: "):
        data = f"{before}{value} and after it".encode()
        shown = subprocess.run(tool, input=data, capture_output=True, check=True).stdout
        clean, count = clean_text(shown, matcher(value))
        assert count == 1
        left = decoded(code, clean.decode())
        assert value.encode() not in left
        assert left.startswith(before.encode()[:-2])
        assert left.endswith(b"nd after it")


def test_a_value_is_replaced_in_base64_in_a_url() -> None:
    code = base64.b64encode(b"??>>??>>plainSecret17>>??").decode()
    clean, count = clean_text(f"https://example.org/?x={quote(code, safe='')}&y=1".encode(), matcher("plainSecret17"))
    assert count == 1
    assert clean.startswith(b"https://example.org/?x=Pz8%2BPj8")
    assert clean.endswith(b"&y=1")
    assert not matcher("plainSecret17").holds(clean)


# JSON stays JSON


def test_a_value_is_seen_through_escapes_that_are_not_necessary() -> None:
    line = b'{"a":"x \\u0070lainSecret17 y","b":"path\\/to"}'
    assert clean_lines(line, matcher("plainSecret17")) == (b'{"a":"x [redacted:purged] y","b":"path\\/to"}', 1)
    assert clean_lines(b'{"b":"path\\/to"}', matcher("path/to")) == (b'{"b":"[redacted:purged]"}', 1)


def test_a_number_that_has_the_value_becomes_0() -> None:
    line = b'{"card": 4111111111111111, "n": 17, "s": "a", "t": [-4111111111111111.5e3]}'
    assert clean_lines(line, matcher("4111111111111111")) == (b'{"card": 0, "n": 17, "s": "a", "t": [0]}', 2)


def test_digits_of_an_escape_are_no_number() -> None:
    line = b'{"a":"\\u1234567 plainSecret17"}'
    assert clean_lines(line, matcher("234567", "plainSecret17")) == (
        '{"a":"\u1234567 [redacted:purged]"}'.encode(),
        1,
    )


def test_lines_that_are_no_json_are_one_text() -> None:
    code = base64.b64encode(b"plainSecret17").decode()
    text = f'{{"a":"b"}}\n{code[:7]}\n{code[7:]}\n["plainSecret17"]\n'.encode()
    clean = f'{{"a":"b"}}\nAAAAAAA\nAAAAAAAAAA{code[17:]}\n["[redacted:purged]"]\n'.encode()
    assert clean_lines(text, matcher("plainSecret17")) == (clean, 2)


def test_data_without_a_value_is_returned_as_the_same_object() -> None:
    line = dump({"a": "nothing", "b": 4711})
    assert clean_lines(line, matcher("something else"))[0] is line
    assert clean_text(line, matcher("something else"))[0] is line


@example("111111", [""])  # twice in a row, and once more across the two
@given(VALUE, st.lists(QUIET, max_size=3))
def test_a_line_stays_json_and_loses_the_value(value: str, parts: list[str]) -> None:
    text = value.join(["", *parts, ""])
    clean, count = clean_lines(dump({"a": text, "n": 1.50}, ensure_ascii=False), matcher(value))
    assert count
    assert value not in json.loads(clean)["a"]
    assert clean_lines(clean, matcher(value))[1] == 0 or MARK in value


@given(st.text(alphabet='\\u/"0041ndéD83dDE00\n', max_size=40))
def test_a_level_is_what_json_reads(text: str) -> None:
    try:
        wanted = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return
    plain = wanted.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
    assert views.unescape(text.encode()).decode("utf-8", "surrogatepass") == plain
    (first, second) = (*views.decoded_levels(text.encode()), None)[:2]
    if second is not None:
        assert second.place(0, len(second.data)) == (0, len(first.data))
        changed = [first.data[slice(*second.place(at, at + 1))] for at in range(len(second.data))]
        assert all(one == bytes((byte,)) or one[:1] == b"\\" for one, byte in zip(changed, second.data, strict=True))


# Fingerprints


def test_fingerprints_show_only_lengths_and_a_few_bits() -> None:
    fingerprints = ValueMatcher(KEY).fingerprints("plainSecret17")
    assert all(len(one.tail) == 4 and len(set(one.tail)) <= 32 and len(one.hash) == 32 for one in fingerprints)
    assert not ValueMatcher(b"another key", fingerprints).holds(b"plainSecret17")


def test_what_was_purged_before_is_found_in_every_form_that_its_list_has() -> None:
    """Lists of earlier versions have more forms, and short tails of long ones."""
    long = "-----BEGIN\n" + "k" * 200 + "\n-----"
    for value in ("plainSecret17", long):
        few = [one for one in ValueMatcher(KEY).fingerprints(value) if not one.is_code]
        short = [value_match.Fingerprint(one.length, one.tail[-4:], one.hash) for one in few]
        known = ValueMatcher(KEY, short)
        assert clean_lines(dump({"a": json.dumps([value])}), known)[0] == dump({"a": json.dumps([MARK])})


def test_the_end_that_a_title_lost_is_taken_out_with_its_beginning() -> None:
    value = "plainSecret17"
    assert value_match.cut_short("see plainSec…", [value]) == f"see {MARK}…"
    assert value_match.cut_short("see pla…", [value]) == "see pla…"
    line = dump({"lastPrompt": "x" * 180 + "plainSecre"}, ensure_ascii=False)
    assert value_match.unfinished_beginnings(line, [value]) == {"plainSecre"}
    assert (
        value_match.unfinished_beginnings(dump({"a": "plainSecret17", "b": "plainSecrets of others"}), [value]) == set()
    )


# Time


@pytest.mark.parametrize(
    "piece",
    [
        b"xplainSecret1",
        b"-",
        b"\\",
        b"\\u005c",
        b"u005c",
        b"%41",
        b"\n",
        b" \n",
        b"1\t\n",
        b"1-\n",
        b"cGxhaW5TZWNyZXQxN",
        b'"a",',
        b'\\"',
    ],
)
def test_hostile_texts_take_linear_time(piece: bytes) -> None:
    """The values are such that a text without them has many of their ends."""
    count = 300_000
    known = matcher("plainSecret17", "a" * 40, "x\n" * 900 + "-" * 30, 'k"' * 90)
    text = b"\\" + piece * (count // len(piece))
    begun = time.process_time()
    for data in (text, b'{"a":"%s","b":"plainSecret17"}' % text, b'["plainSecret17",%s"b"]' % text):
        clean_lines(data, known)
    assert time.process_time() - begun < 12 * count / 1_000_000
