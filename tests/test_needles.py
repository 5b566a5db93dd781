"""A value is found in every form, by who knows it and by who knows only its hashes; nothing else is touched."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.model.secrets import needles
from sessgit.model.secrets.needles import Hashed, Known

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
]
QUIET = st.text(alphabet='abc \\"\n\té{}[]:,0149/', max_size=12)
VALUE = st.sampled_from(VALUES) | st.text(alphabet='ab"\\\né1/', min_size=6, max_size=9)


def hashed(*values: str) -> Hashed:
    maker = Hashed(KEY, ())
    return Hashed(KEY, [one for value in values for one in maker.prints(value)])


def dump(value: object, **how: bool) -> bytes:
    return json.dumps(value, separators=(",", ":"), **how).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_value_goes_out_of_json_however_deep_it_is_nested(value: str, ascii_only: bool, depth: int) -> None:
    inside, clean = f"see {value}!", f"see {MARK}!"
    for _ in range(depth - 1):
        inside, clean = (json.dumps({"v": one}, ensure_ascii=ascii_only) for one in (inside, clean))
    line = dump({"a": inside, "b": [1, inside], inside: 2}, ensure_ascii=ascii_only)
    for finder in (Known([value]), hashed(value)):
        found, count = needles.clean_line(line, finder)
        assert (json.loads(found), count) == ({"a": clean, "b": [1, clean], clean: 2}, 3)
        assert not finder.holds(found)


@pytest.mark.parametrize("value", VALUES)
def test_a_value_goes_out_of_texts_urls_and_base64(value: str) -> None:
    data = value.encode()
    for finder in (Known([value]), hashed(value)):
        assert needles.clean_text(b"<" + data + b">\n", finder) == (b"<[redacted:purged]>\n", 1)
        for coded in (quote(value), quote(value, safe=""), quote_plus(value)):
            assert needles.clean_text(coded.encode(), finder) == (MARK.encode(), 1)
        for before in (b"", b"x", b"me:"):
            for coder in (base64.b64encode, base64.urlsafe_b64encode):
                coded = coder(before + data + b" and more")
                clean, count = needles.clean_text(coded, finder)
                assert count == 1
                assert len(clean) == len(coded)
                assert data not in base64.b64decode(clean.translate(bytes.maketrans(b"-_", b"+/")))


@pytest.mark.parametrize("value", [*VALUES, "k" * 90])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_value_goes_out_of_hex_and_of_code_that_is_broken_into_lines(value: str, end: str) -> None:
    data = b"before " * 5 + value.encode() + b" and after" * 3
    for finder in (Known([value]), hashed(value)):
        for coded in (data.hex(), data.hex().upper(), base64.b64encode(data).decode()):
            for width in (60, 76, len(coded)):
                text = end.join(coded[at : at + width] for at in range(0, len(coded), width))
                clean, count = needles.clean_text(f"see\n{text}\n".encode(), finder)
                assert (count, len(clean)) == (1, len(text) + 5)
                line, found = needles.clean_line(dump({"a": text}), finder)
                assert (found, json.loads(line)) == (1, {"a": clean.decode()[4:-1]})
                assert needles.clean_lines(f"see\n{text}\n".encode(), finder) == (clean, 1)
                assert needles.clean_text(clean, finder) == (clean, 0)


@pytest.mark.parametrize("value", [*VALUES, "k" * 90])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_value_goes_out_of_code_that_is_broken_into_lines_in_json(value: str, end: str, depth: int) -> None:
    """JSON in a string of a line, or in a string of that: the ends of lines stay where they were, as escapes."""
    data = b"before " * 5 + value.encode() + b" and after" * 3
    for finder in (Known([value]), hashed(value)):
        for coded in (data.hex(), base64.b64encode(data).decode()):
            for width in (60, 76):
                text = end.join(coded[at : at + width] for at in range(0, len(coded), width))
                inside = f"see\n{text}\n"
                for _ in range(depth):
                    inside = json.dumps({"v": inside})
                line, count = needles.clean_line(dump({"a": inside}), finder)
                again = json.loads(line)["a"]
                for _ in range(depth):
                    again = json.loads(again)["v"]
                lines = again.split(end)
                assert (count, list(map(len, lines))) == (1, list(map(len, f"see\n{text}\n".split(end))))
                whole = "".join(again.split())[3:]
                shown = bytes.fromhex(whole) if coded == data.hex() else base64.b64decode(whole)
                assert value.encode() not in shown
                assert shown.startswith(b"before " * 4)
                assert shown.endswith(b" and after" * 2)
                assert needles.clean_line(line, finder) == (line, 0)


def xxd(data: bytes, group: int, *, upper: bool = False, end: str = "\n") -> str:
    lines = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        digits = " ".join(part[n : n + group].hex() for n in range(0, len(part), group))
        shown = "".join(chr(one) if 32 <= one < 127 else "." for one in part)
        lines.append(f"{at:08x}: {(digits.upper() if upper else digits).ljust(32 + 16 // group - 1)}  {shown}")
    return end.join(lines)


def hexdump(data: bytes, *, marks: str = "||", wide: bool = True, end: str = "\n") -> str:
    lines = []
    for at in range(0, len(data), 16):
        pairs = [f"{one:02x}" for one in data[at : at + 16]]
        digits = "  ".join(" ".join(pairs[n : n + 8]) for n in (0, 8)) if wide else " ".join(pairs)
        shown = "".join(chr(one) if 32 <= one < 127 else "." for one in data[at : at + 16])
        lines.append(f"{at:08x}  {digits.ljust(48)}  {marks[0]}{shown}{marks[1]}")
    return end.join([*lines, f"{len(data):08x}"])


@pytest.mark.parametrize("value", [*VALUES, "k" * 90])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", [b"", b"before ", b"b" * 15])
def test_a_value_goes_out_of_hex_dumps(value: str, end: str, before: bytes) -> None:
    """Out of the digits, and out of the text beside them; all other bytes stay."""
    data = before + value.encode() + b" and after: (it)"
    printed = [
        *(xxd(data, group, end=end) for group in (1, 2, 4)), xxd(data, 2, upper=True, end=end),
        hexdump(data, end=end), hexdump(data, marks="><", wide=False, end=end),
    ]  # fmt: skip
    for finder in (Known([value]), hashed(value)):
        for shown in printed:
            text = f"$ xxd x{end}{shown}{end}done: 0"
            clean, count = needles.clean_text(text.encode(), finder)
            assert count >= 2
            left = clean.decode().split(end)
            assert (left[0], left[-1]) == ("$ xxd x", "done: 0")
            seen = b"".join(
                bytes.fromhex(line[9:].strip().split("  " if ":" in line[:9] else "|")[0].split(">")[0])
                for line in left[1:-1]
                if len(line) > 8
            )
            assert seen == before + b"\xaa" * len(value.encode()) + b" and after: (it)"
            assert not any(value[n : n + 4] in clean.decode() for n in range(len(value) - 3))
            assert needles.clean_lines(text.encode(), finder)[0] == clean
            line, found = needles.clean_line(dump({"a": text}), finder)
            assert (found, json.loads(line)) == (count, {"a": clean.decode()})
            assert needles.clean_line(line, finder) == (line, 0)


OCTAL = """\
0000000 062542 067546 062562 070040 060554 067151 062523 071143
0000020 072145 033461 021040 021161 056040 020170 067141 020144
0000046"""
WORDS = """\
0000000 6562 6f66 6572 7020 616c 6e69 6553 7263
0000010 7465 3731 2220 2271 5c20 2078 6e61 2064
0000026"""
LONG_WORDS = """\
00000000: 6f666562 70206572 6e69616c 72636553  before plainSecr
00000010: 37317465     2220                    et17 \""""
PAIRS = """\
000000  62  65  66  6f  72  65  20  70  6c  61  69  6e  53  65  63  72  >before plainSecr<
         b   e   f   o   r   e       p   l   a   i   n   S   e   c   r
000010  65  74  31  37  20  22  71  22  0a                              >et17 "q".<
         e   t   1   7       "   q   "  \\n
000019"""
BYTES = """\
    12\t0000000 142 145 146 157 162 145 040 160 154 141 151 156 123 145 143 162
    13\t0000020 145 164 061 067 040 042 161 042 040 134 170 040 141 156 144 040"""


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        (
            OCTAL,
            """\
0000000 062542 067546 062562 AAAAAA AAAAAA AAAAAA AAAAAA AAAAAA
0000020 AAAAAA AAAAAA 021040 021161 056040 020170 067141 020144
0000046""",
        ),
        (
            WORDS,
            """\
0000000 6562 6f66 6572 AA20 AAAA AAAA AAAA AAAA
0000010 AAAA AAAA 2220 2271 5c20 2078 6e61 2064
0000026""",
        ),
        (
            LONG_WORDS,
            """\
00000000: 6f666562 AA206572 AAAAAAAA AAAAAAAA  before AAAAAAAAA
00000010: AAAAAAAA     2220                    AAAA \"""",
        ),
        (
            PAIRS,
            """\
000000  62  65  66  6f  72  65  20  AA  AA  AA  AA  AA  AA  AA  AA  AA  >before AAAAAAAAA<
         b   e   f   o   r   e       A   A   A   A   A   A   A   A   A
000010  AA  AA  AA  AA  20  22  71  22  0a                              >AAAA "q".<
         A   A   A   A       "   q   "  \\n
000019""",
        ),
        (
            BYTES,
            """\
    12\t0000000 142 145 146 157 162 145 040 AAA AAA AAA AAA AAA AAA AAA AAA AAA
    13\t0000020 AAA AAA AAA AAA 040 042 161 042 040 134 170 040 141 156 144 040""",
        ),
    ],
    ids=["octal", "words", "long words", "pairs", "bytes"],
)
@pytest.mark.parametrize("depth", range(4))
def test_a_value_goes_out_of_words_octal_and_characters_also_in_json_in_json(shown: str, left: str, depth: int) -> None:
    """As `od`, `hexdump` without -C and `xxd -e` print them, on a machine whose words begin with their last byte."""
    for finder in (Known(["plainSecret17"]), hashed("plainSecret17")):
        text, expected = shown, left
        for _ in range(depth):
            text, expected = (json.dumps({"out": one, "code": 0}) for one in (text, expected))
        assert needles.clean_text(text.encode(), finder)[0] == expected.encode()
        assert needles.clean_line(dump({"a": text}), finder)[0] == dump({"a": expected})
        assert needles.clean_text(expected.encode(), finder) == (expected.encode(), 0)


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("before", ["", "    ", "{n:6d}\u2192", "{n}\t  "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_value_goes_out_of_code_in_lines_that_begin_with_something_else(before: str, depth: int, end: str) -> None:
    coded = base64.b64encode(b"before plainSecret17 and after it this").decode()
    rows = [coded[:24], coded[24:48], coded[48:]]
    shown, left = (
        end.join(["$ cat x", *(before.format(n=n) + row for n, row in enumerate(found, 9))])
        for found in (rows, ["YmVmb3JlIHAAAAAAAAAAAAAA", "AAcgYW5kIGFmdGVyIGl0IHRo", rows[2]])
    )
    for _ in range(depth):
        shown, left = (json.dumps({"out": [one]}) for one in (shown, left))
    for finder in (Known(["plainSecret17"]), hashed("plainSecret17")):
        assert needles.clean_line(dump({"a": shown}), finder) == (dump({"a": left}, ensure_ascii=False), 1)


def test_of_two_values_in_one_dump_the_second_one_goes_later_as_well() -> None:
    shown = hexdump(b"one: plainSecret17 two: otherSecret18").encode()
    first = needles.clean_text(shown, Known(["plainSecret17"]))[0]
    both = needles.clean_text(shown, Known(["plainSecret17", "otherSecret18"]))[0]
    assert needles.clean_text(first, Known(["otherSecret18"])) == (both, 4)
    assert (
        both.decode()
        == """\
00000000  6f 6e 65 3a 20 AA AA AA  AA AA AA AA AA AA AA AA  |one: AAAAAAAAAAA|
00000010  AA AA 20 74 77 6f 3a 20  AA AA AA AA AA AA AA AA  |AA two: AAAAAAAA|
00000020  AA AA AA AA AA                                    |AAAAA|
00000025"""
    )


@pytest.mark.parametrize(
    "text",
    [
        b" " * 90 + b"x\n",
        b"aa " * 90,
        b"6562 6f66\n0000010 ",
        b"|" * 90,
        b"\\n\\",
        b'"\\u00',
        b"A" * 30 + b"\n" + b" " * 90,
    ],
)
def test_what_only_looks_like_a_dump_takes_linear_time(text: bytes) -> None:
    begun = time.process_time()
    needles.clean_text(b"0000000 6562 6f66\n0000010 " + text * (300_000 // len(text)), hashed("plainSecret17"))
    assert time.process_time() - begun < 2


def test_a_value_is_seen_through_escapes_that_nobody_needs() -> None:
    line = b'{"a":"x \\u0070lainSecret17 y","b":"path\\/to"}'
    assert needles.clean_line(line, Known(["plainSecret17"])) == (b'{"a":"x [redacted:purged] y","b":"path\\/to"}', 1)
    assert needles.clean_line(line, hashed("plainSecret17"))[1] == 1
    assert needles.clean_line(b'{"b":"path\\/to"}', Known(["path/to"])) == (b'{"b":"[redacted:purged]"}', 1)


def test_a_number_that_is_the_value_becomes_nothing() -> None:
    line = b'{"card": 4111111111111111, "n": 17, "s": "a", "t": [-4111111111111111.5e3]}'
    assert needles.clean_line(line, Known(["4111111111111111"])) == (b'{"card": 0, "n": 17, "s": "a", "t": [0]}', 2)


def test_what_does_not_hold_it_is_the_same_object() -> None:
    line = dump({"a": "nothing", "b": 4711})
    for finder in (Known(["something else"]), hashed("something else")):
        assert needles.clean_line(line, finder)[0] is line
        assert needles.clean_text(line, finder)[0] is line
        assert needles.clean_lines(line, finder)[0] is line


def test_hashes_tell_nothing_but_lengths_and_a_few_bits() -> None:
    prints = Hashed(KEY, ()).prints("plainSecret17")
    assert all(len(one.tail) == 4 and len(set(one.tail)) <= 32 and len(one.hash) == 32 for one in prints)
    assert Hashed(b"another key", prints).spans(b"plainSecret17") == []


def test_what_was_cut_off_from_a_title() -> None:
    value = "plainSecret17"
    assert needles.cut_short("see plainSec…", [value]) == f"see {MARK}…"
    assert needles.cut_short("see pla…", [value]) == "see pla…"
    line = dump({"lastPrompt": "x" * 180 + "plainSecre"}, ensure_ascii=False)
    assert needles.beginnings(line, [value]) == {"plainSecre"}
    assert needles.beginnings(dump({"a": "plainSecret17", "b": "plainSecrets of others"}), [value]) == set()


@given(st.lists(VALUE, min_size=1, max_size=2), st.lists(QUIET | VALUE, max_size=4), st.booleans())
def test_who_knows_it_and_who_does_not_find_the_same(values: list[str], parts: list[str], ascii_only: bool) -> None:
    known, unknown = Known(values), hashed(*values)
    text = "".join(parts)
    for data in (text.encode(), dump({"a": text, "b": [text], text: 1}, ensure_ascii=ascii_only)):
        assert known.spans(data) == unknown.spans(data)
        assert needles.clean_line(data, known) == needles.clean_line(data, unknown)


@given(VALUE, st.lists(QUIET, max_size=3))
def test_a_line_stays_json_and_loses_the_value(value: str, parts: list[str]) -> None:
    text = value.join(["", *parts, ""])
    finder = Known([value])
    clean, count = needles.clean_line(dump({"a": text, "n": 1.50}, ensure_ascii=False), finder)
    assert count
    assert value not in json.loads(clean)["a"]
    assert needles.clean_line(clean, finder)[1] == 0 or MARK in value


def test_hostile_texts_take_linear_time() -> None:
    finder = hashed("plainSecret17", "a" * 40)
    begun = time.process_time()
    needles.clean_line(b'{"a":"%s"}' % (b"xplainSecret1" * 80_000), finder)
    assert time.process_time() - begun < 3
