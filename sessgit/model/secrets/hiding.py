"""Whether a value may stand in a text in a way that only shows when it is looked at otherwise: a glance at every byte.

Each way has an exact search, and a coarse one that hits wherever the exact one does: Vectorscan runs all of these in
one pass once much is looked through, and what it hits is searched exactly. So with and without it the same is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from sessgit.model.secrets.sieve import Sieve

LINE = (
    rb"(?:\\{1,256}r|\r)?(?:\\{1,256}n|\n)"
    rb"(?:[ \t]{0,40}[0-9]{1,6}(?:\xe2\x86\x92|\t|\\{1,256}(?:t|u2192)))?(?:[0-9A-Fa-f]{6,16}:?(?=[ \t]))?"
)
"""The end of a line at any depth of JSON, and what tools put before the next one: its number, or an offset."""
BETWEEN = (
    rb"(?:,(?:[ \t\r\n]|\\{1,256}[nrt]){0,40}\\{0,256}\"[0-9]{1,6}\\{0,256}\"[ \t]{0,2}:"
    rb"|[ \t,;:+'\"()\[\]{}]|\\{1,256}[t\"']|" + LINE + rb")"
)
"""What stands between two numbers, each of which is a byte; in an object, the place of the second one."""
_SHORTEST = 12
_HEX = bytes.maketrans(b"123456789abcdefABCDEF", b"0" * 21)
_HEX_APART = bytes.maketrans(b"123456789abcdefABCDEF:-,\n\r\t", b"0" * 21 + b" " * 6)
_PAIRS = tuple(between.join([b"00"] * 5) for between in (b" ", b"\\n", b"\\\\n", b"\\\\\\\\n"))
_WORDS = (b"00 00 00 00", b"0000 0000", b"0000  0000", b"0000   0000")
_SHOWN = bytes(0x78 if 0x20 < byte < 0x7F else byte for byte in range(256))
_CHARACTERS = b"   x   x   x"
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_APART = b" ,;:+'\"()[]{}\n\r\t\\nrtu\xe2\x86\x92"
_ROW = b"0" * 12
"""The digits of as many decimal numbers as the shortest value has bytes."""
_ODD = re.compile(rb"\\(?:u(?!00[01])|/)")
_DEEP = b"\\" * 8
"""What no escape has before the fourth level of JSON, and every one from there on."""
# The end of a full line of base64 or hex, in a text and in a string of a line, which may hold JSON that holds JSON.
# Each begins with what is rare; what comes before has one width, as it must.
_NEXT = rb"(?=(?:[ \t]|\\{1,8}(?:t|u2192)|\xe2\x86\x92|[0-9]){0,60}[A-Za-z0-9+/_-]{4})"
_CODED = re.compile(rb"\n(?<=[A-Za-z0-9+/_\r-]\n)(?<=[A-Za-z0-9+/_-]{24}\n|[A-Za-z0-9+/_-]{23}\r\n)" + _NEXT)
_CODED_INSIDE = re.compile(
    rb"\\n(?<=[A-Za-z0-9+/_\\r-]\\n)(?<=[A-Za-z0-9+/_-]{24}\\n"
    rb"|[A-Za-z0-9+/_-]{22}\\r\\n|[A-Za-z0-9+/_-]{23}\\\\n|[A-Za-z0-9+/_-]{20}\\\\r\\\\n"
    rb"|[A-Za-z0-9+/_-]{21}\\{4}n|[A-Za-z0-9+/_-]{16}\\{4}r\\{4}n"
    rb"|[A-Za-z0-9+/_-]{17}\\{8}n|[A-Za-z0-9+/_-]{8}\\{8}r\\{8}n)" + _NEXT
)
_DUMPED = (
    re.compile(rb"0: [0-9A-Fa-f]{2,32} [0-9A-Fa-f ]"),
    re.compile(rb"0 (?<=[0-9A-Fa-f]{5}0 ) {0,8}[!-~]{1,22} {1,8}[!-~]"),
)
_MARKED = (
    re.compile(rb"x(?<=[0\\\#]x)[0-9A-Fa-f]{2}(?:[^A-Za-mo-qsvwyz]{0,260}?x[0-9A-Fa-f]{2}){2}"),
    re.compile(rb"X(?<=[0\#]X)[0-9A-Fa-f]{2}(?:[^A-WYZa-mo-qsv-z]{0,260}?X[0-9A-Fa-f]{2}){2}"),
    re.compile(rb"%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2}){5}"),
    re.compile(rb"&\#[xX]?[0-9A-Fa-f]{2,3};(?:&\#[xX]?[0-9A-Fa-f]{2,3};){3}"),
    re.compile(rb"\\[0-7]{3}(?:\\{1,256}[0-7]{3}){3}"),
)
_NUMBERS = re.compile(
    rb"[0-9](?<![0-9A-Za-z.].)[0-9]{0,2}(?:" + BETWEEN + rb"{1,60}-?[0-9]{1,3}(?![0-9A-Za-z.])){4}", re.DOTALL
)


def ways(data: bytes) -> frozenset[str]:
    """The ways in which a value may stand in it: names of those that `PRINTED` and `SPELLED` have."""
    if len(data) < _SHORTEST:
        return _ODD_ALONE if _is_odd(data) else _NONE
    likely = _SIEVE.likely(data)
    return frozenset(name for name in (_EXACT if likely is None else likely) if _EXACT[name](data))


def may_hide(data: bytes) -> bool:
    """Whether there is any such way."""
    return bool(ways(data))


def row_starts(data: bytes) -> set[int]:
    """Where lines begin that have in them what rows of dumps have."""
    starts = set[int]()
    for find in _finds(data):
        at = find(0)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at) + 1)
            end = data.find(b"\n", at)
            at = find(end) if end >= 0 else -1
    return starts


def _finds(data: bytes) -> Iterator[Callable[[int], int]]:
    """What finds marks of rows: those of rows without an offset, all digits and characters alike, and of the others."""
    alike, shown = data.translate(_HEX), data.translate(_SHOWN)
    for mark in _WORDS:
        yield partial(alike.find, mark)
    yield partial(shown.find, _CHARACTERS)
    for dumped in _DUMPED:
        yield partial(_found, dumped, data)


def _found(wanted: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = wanted.search(data, at)
    return found.start() if found else -1


def _is_odd(data: bytes) -> bool:
    return b"\\" in data and _ODD.search(data) is not None


def _is_deep(data: bytes) -> bool:
    return _DEEP in data


def _is_in_lines(data: bytes) -> bool:
    return _CODED.search(data) is not None or _CODED_INSIDE.search(data) is not None


def _is_dumped(data: bytes) -> bool:
    return any(mark.search(data) is not None for mark in _DUMPED)


def _has_rows(data: bytes) -> bool:
    alike = data.translate(_HEX)
    return any(mark in alike for mark in _WORDS) or _CHARACTERS in data.translate(_SHOWN)


def _is_marked(data: bytes) -> bool:
    return any(mark.search(data) is not None for mark in _MARKED)


def _has_numbers(data: bytes) -> bool:
    alike = data.translate(_HEX_APART)
    if any(pairs in alike for pairs in _PAIRS):
        return True
    return _ROW in data.translate(_DIGITS, _APART) and _NUMBERS.search(data) is not None


_EXACT: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "odd": _is_odd,
    "deep": _is_deep,
    "lines": _is_in_lines,
    "dump": _is_dumped,
    "rows": _has_rows,
    "marked": _is_marked,
    "numbers": _has_numbers,
}
READ: Final = frozenset(("odd", "deep"))
"""Ways that show once strings of JSON are read."""
LINES: Final = frozenset(("lines",))
"""The way of base64 and hex that is broken into lines."""
ROWS: Final = frozenset(("dump", "rows"))
"""Ways of dumps."""
PRINTED: Final = READ | LINES | ROWS
SPELLED: Final = frozenset(("marked", "numbers"))
"""Ways of bytes that are spelled one by one."""
_CODE = "[A-Za-z0-9+/_-]"
_PAIR = "[0-9A-Fa-f]{2}"
_NUMBER = "-?[0-9]{1,3}"
_GAP = (
    BETWEEN.decode("latin-1")
    .replace("{0,40}", "*")
    .replace("{0,256}", "*")
    .replace("{1,256}", "+")
    .replace(r"(?=[ \t])", "")
)
COARSE: Final[Mapping[str, tuple[str, ...]]] = {
    "odd": (r"\\u(?:[^0]|0[^0]|00[^01]|0{0,2}$)|\\/",),
    "deep": (r"\\{8}",),
    "lines": (_CODE + r"{20}(?:\r?\n|\\+(?:r\\+)?n)|" + _CODE + r"{16}\\{4}(?:r\\{4}|\\{4})n|" + _CODE + r"{8}\\{8}r",),
    "dump": (r"0: [0-9A-Fa-f]{2,32} [0-9A-Fa-f ]|[0-9A-Fa-f]{5}0 +[!-~]{1,22} +[!-~]",),
    "rows": (
        "[0-9A-Fa-f]{4} {1,3}[0-9A-Fa-f]{4}",
        _PAIR + "(?: " + _PAIR + "){3}",
        "   [!-~]   [!-~]   [!-~]",
    ),
    "marked": (
        r"[0\\#]x" + _PAIR + "[^A-Za-mo-qsvwyz]*x" + _PAIR + r"|[0#]X" + _PAIR + "[^A-WYZa-mo-qsv-z]*X" + _PAIR,
        "%" + _PAIR + "%" + _PAIR + "%" + _PAIR + "|&#[xX]?[0-9A-Fa-f]{2,3};&#",
        r"\\[0-7]{3}\\+[0-7]{3}",
    ),
    "numbers": (
        _PAIR + r"(?:(?:[ :,\n\r\t-]|\\+n)" + _PAIR + "){4}",
        "(?:^|[^0-9A-Za-z.])" + _NUMBER + "(?:" + _GAP + "+" + _NUMBER + "){4}(?:$|[^0-9A-Za-z.])",
    ),
}
"""By the name of a way expressions without lookarounds: one of them hits wherever the search for that way does."""
_SIEVE = Sieve(COARSE)
_NONE = frozenset[str]()
_ODD_ALONE = frozenset(("odd",))
