"""A value is found in bytes that are spelled one by one and in dumps without offsets, and in JSON however deep."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time

import pytest
from test_needles import KEY, MARK, VALUES, dump, hashed

from sessgit.model.secrets import hiding, levels, needles, sieve
from sessgit.model.secrets.needles import Known

VALUE = "plainSecret17"
DATA = b'before plainSecret17 and "after" it'
BEFORE, GONE, AFTER = b"before ", b"plainSecret17", b' and "after" it'


def spelled(one: str, between: str, gone: str) -> tuple[str, str]:
    """The data as numbers, and the same without the value."""
    numbers = [one.format(byte) for byte in DATA]
    left = [one.format(byte) for byte in BEFORE] + [gone] * len(GONE) + [one.format(byte) for byte in AFTER]
    return between.join(numbers), between.join(left)


SPELLED = {
    "c": spelled("0x{:02x}", ", ", "0xAA"),
    "c in lines": spelled("0x{:02X}", ",\n  ", "0xAA"),
    "python": spelled("\\x{:02x}", "", "\\xAA"),
    "strings": spelled("\\x{:02x}", '" "', "\\xAA"),
    "octal": spelled("\\{:03o}", "", "\\AAA"),
    "url": spelled("%{:02X}", "", "%AA"),
    "html": spelled("&#x{:x};", "", "&#xAA;"),
    "html decimal": spelled("&#{};", "", "&#0;"),
    "pairs": spelled("{:02x}", " ", "AA"),
    "colons": spelled("{:02X}", ":", "AA"),
    "dashes": spelled("{:02X}", "-", "AA"),
    "a number a line": spelled("{:02x}", "\n", "AA"),
    "list": spelled("{}", ", ", "0"),
    "buffer": spelled("{}", ",", "0"),
    "go": spelled("{}", " ", "0"),
    "pretty": spelled("{}", ",\n    ", "0"),
    "numbered": spelled("{}", ",\n    12\u2192  ", "0"),
}


@pytest.mark.parametrize("shown", SPELLED.values(), ids=SPELLED)
@pytest.mark.parametrize("depth", range(4))
def test_a_value_goes_out_of_bytes_that_are_spelled(shown: tuple[str, str], depth: int) -> None:
    text, expected = (f"x = [{one}]; done" for one in shown)
    for finder in (Known([VALUE]), hashed(VALUE)):
        inner, left = text, expected
        for _ in range(depth):
            inner, left = (json.dumps({"out": one, "code": 0}, ensure_ascii=False) for one in (inner, left))
        assert needles.clean_text(inner.encode(), finder) == (left.encode(), 1)
        assert needles.clean_line(dump({"a": inner}), finder) == (dump({"a": left}, ensure_ascii=False), 1)
        assert needles.clean_lines(f"{inner}\n".encode(), finder) == (f"{left}\n".encode(), 1)
        assert needles.clean_text(left.encode(), finder) == (left.encode(), 0)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_value_goes_out_of_lists_of_numbers_in_json(value: str, indent: int | None) -> None:
    data = list(value.encode())
    signed = [byte - 256 if byte > 127 else byte for byte in data]
    by_place = {str(place): byte for place, byte in enumerate(data)}
    for finder in (Known([value]), hashed(value)):
        for numbers, none in (([1, *data], [1, *[0] * len(data)]), (signed, [0] * len(data))):
            for_all = {"type": "Buffer", "data": numbers, "n": 1.50}
            line = json.dumps(for_all, indent=indent).encode()
            clean, count = needles.clean_line(line, finder)
            assert (json.loads(clean), count) == (for_all | {"data": none}, 1)
            assert needles.clean_line(clean, finder) == (clean, 0)
        clean, count = needles.clean_line(json.dumps(by_place, indent=indent).encode(), finder)
        assert (json.loads(clean), count) == (dict.fromkeys(by_place, 0), 1)


TOOLS = [
    *(["od", "-An", *how] for how in (["-tx1"], ["-c"], ["-td1"], ["-tu1"], ["-to1"], ["-x"], ["-o"], ["-d"], ["-i"],
      ["-l"], ["-td2"], ["-tu4"], ["-tu8"], ["-tx4"], ["-tx1z"], ["-tx1", "-w8"])),
    *(["od", how] for how in ("-d", "-i", "-l", "-tu1", "-td1", "-b", "-c")),
    ["hexdump", "-v", "-e", '16/1 "%02x " "\\n"'], ["hexdump", "-v", "-e", '/1 "%d "'], ["hexdump", "-d"],
    ["hexdump", "-v", "-e", '/1 "%02x"'], ["xxd", "-i"], ["xxd", "-p"], ["xxd", "-ps", "-c", "16"],
]  # fmt: skip


def printed(tool: list[str], data: bytes) -> str:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"no {tool[0]}")
    return subprocess.run([*tool, "/dev/stdin"], input=data, capture_output=True, check=True).stdout.decode()


@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
@pytest.mark.parametrize("value", [VALUE, "4111111111111111", "Grüße an 東京"])
@pytest.mark.parametrize("trimmed", [False, True])
def test_a_value_goes_out_of_what_tools_print(tool: list[str], value: str, trimmed: bool) -> None:
    """Of it nothing is left, and all that is left stands where it stood."""
    for before in ("", "before: ", "b" * 15):
        data = f"{before}{value} and after it, too".encode()
        other = data.replace(value.encode(), bytes(len(value.encode())))
        shown, zeros = ((one.strip() if trimmed else one) for one in (printed(tool, data), printed(tool, other)))
        for finder in (Known([value]), hashed(value)):
            clean = needles.clean_text(shown.encode(), finder)[0].decode()
            assert clean != shown
            assert needles.clean_text(clean.encode(), finder) == (clean.encode(), 0)
            same = [a.split() for a in shown.splitlines()]
            left = [c.split() for c in clean.splitlines()]
            none = [z.split() for z in zeros.splitlines()]
            assert [len(row) for row in left] == [len(row) for row in same] or "-c" in tool or "-tx1z" in tool
            if [len(row) for row in none] == [len(row) for row in same]:
                kept = [
                    (a, c)
                    for x, y, z in zip(same, left, none, strict=True)
                    for a, c, n in zip(x, y, z, strict=False)
                    if a == n and len(a) <= 22
                ]
                assert all(a == c for a, c in kept) or any(len(a) > 2 or a == c for a, c in kept)
            line = needles.clean_line(dump({"a": shown}), finder)[0]
            assert json.loads(line) == {"a": clean}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("depth", range(3, 9))
def test_a_value_goes_out_of_json_that_is_deep(value: str, ascii_only: bool, depth: int) -> None:
    inside, clean = f"see {value}!", f"see {MARK}!"
    for _ in range(depth - 1):
        inside, clean = (json.dumps({"v": one}, ensure_ascii=ascii_only) for one in (inside, clean))
    line = dump({"a": inside, inside: 2}, ensure_ascii=ascii_only)
    for finder in (Known([value]), hashed(value)):
        found, count = needles.clean_line(line, finder)
        assert (json.loads(found), count) == ({"a": clean, clean: 2}, 2)
        assert needles.clean_line(found, finder) == (found, 0)


def test_a_value_goes_out_of_escapes_of_what_is_not_ascii() -> None:
    value = "Grüße an 東京"
    quoted = "".join(chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in value.encode())
    for shown in (repr(value.encode())[2:-1], ascii(value)[1:-1], quoted):
        for finder in (Known([value]), hashed(value)):
            assert needles.clean_text(f"see {shown}!".encode(), finder) == (f"see {MARK}!".encode(), 1)
            assert needles.clean_line(dump({"a": shown}), finder) == (dump({"a": MARK}), 1)


@pytest.mark.parametrize(
    "text",
    [
        "[112, 108, 97, 105, 110, 83, 101, 99, 114, 101, 116, 49]",
        "[112, 108, 97, 105, 110, 83, 101, 99, 114, 101, 116, 49, 56]",
        "70 6c 61 69 6e 53 65 63 72 65 74 31",
        "0x70, 0x6c, 0x61, 0x69, 0x6e, 0x53, 0x65, 0x63, 0x72, 0x65, 0x74, 0x31, 0x3",
        "112, 108, 97, 105, 110 and 83, 101, 99, 114, 101, 116, 49, 55",
    ],
)
def test_what_is_not_the_value_stays(text: str) -> None:
    for finder in (Known([VALUE]), hashed(VALUE)):
        assert needles.clean_text(text.encode(), finder) == (text.encode(), 0)


PIECES = [
    *(
        "\\",
        "\\\\",
        "u",
        "0",
        "00",
        "a",
        "4f",
        "x",
        "0x",
        "%",
        "&#",
        ";",
        ",",
        " ",
        "  ",
        "   ",
        "\n",
        "\\n",
        "r",
        "\\r",
    ),
    *(
        "\r",
        "\t",
        '"',
        ":",
        "A" * 9,
        "9" * 3,
        "-",
        "\u2192",
        "\\u2192",
        "/",
        "\\/",
        "0: ",
        "00000",
        "12",
        "115",
        "Z",
        ".",
    ),
]


def test_what_the_searches_hit_the_sieve_lets_through() -> None:
    """Texts of what the searches look for, in any order."""
    scan = sieve.ready(sieve.made(hiding.COARSE), hiding.COARSE)
    assert scan is not None
    assert set(hiding.COARSE) == set(hiding._EXACT) == hiding.PRINTED | hiding.SPELLED
    pick, met = random.Random(7), dict.fromkeys(hiding.COARSE, 0)
    for _ in range(60_000):
        few = pick.sample(PIECES, pick.randint(1, 5))
        text = "".join(pick.choice(few) for _ in range(pick.randint(12, 40))).encode()
        likely = scan(text)
        for name, search in hiding._EXACT.items():
            if search(text):
                met[name] += 1
                assert likely is not None
                assert name in likely, text
    assert min(met.values()) > 50, met


def test_a_level_reads_the_same_in_a_few_passes_as_escape_by_escape() -> None:
    pick = random.Random(8)
    for _ in range(5_000):
        text = "".join(pick.choice([*PIECES, "\\ud83d\\ude00", "\\u00fc"]) for _ in range(30)).encode()
        rows = [(len(text) + 1, len(text) + 9)]
        for view in (levels.within(text), levels.within(text + b"\n0000 aa \\\n" + text, rows)):
            assert view.data == view._pieces[0]
        assert levels.within(text + b"\xf8").data == levels.within(text).data + b"\xf8"


@pytest.mark.parametrize(
    "text", [b"\\" * 90, b"12, ", b"0x41, ", b"\\x41", b'"1":', b"1\n", b"   x", b"00 00 \\n", b"-1-"]
)
def test_what_only_looks_spelled_takes_linear_time(text: bytes) -> None:
    begun = time.process_time()
    needles.clean_text(b"65, 66, 67, 68, 69, 70, 0x41, 0x42, 0x43 " + text * (300_000 // len(text)), hashed(VALUE))
    assert time.process_time() - begun < 3


def test_values_that_were_purged_before_are_seen_in_the_new_ways_as_well() -> None:
    """What is kept of them are hashes of forms that were known then: of the value as it is, which is enough."""
    maker = needles.Hashed(KEY, ())
    finder = needles.Hashed(KEY, maker.prints(VALUE)[:1])
    for shown, left in SPELLED.values():
        assert needles.clean_text(f"({shown})".encode(), finder) == (f"({left})".encode(), 1)
