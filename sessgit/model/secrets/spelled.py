"""Bytes that are spelled one by one: `0x73, 0x6b`, `\\x73\\x6b`, `%73%6b`, `\\163\\153`, `73:6b`, `[115, 107]`.

The numbers stand in JSON as they stand anywhere else, and what stands between them is looked for at every depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from sessgit.model.secrets import hiding
from sessgit.model.secrets.levels import Part, Spans, joined

_FEWEST = 6
"""Bytes that the shortest value has."""
_MARKED = (
    rb"(?:(?:(?<!\\)\\{1,256}x|0[xX]|%|&\#[xX])(?P<hex>[0-9A-Fa-f]{2})(?![0-9A-Fa-f])"
    rb"|(?<!\\)\\{1,256}(?P<octal>[0-7]{3})(?![0-9])|&\#(?P<decimal>[0-9]{2,3})(?![0-9]))"
)
_BARE = rb"(?P<number>-?(?:[0-9]{1,3}|[0-9A-Fa-f]{2}))(?![0-9A-Za-z.])"
# The expression engine finds where one begins several times faster by a class of characters than by what is before.
_FIRST = (
    rb"(?s:[-0-9A-Fa-f](?<![0-9A-Za-z.].))(?:(?<=-)(?:[0-9]{1,3}|[0-9A-Fa-f]{2})|(?<=[0-9])[0-9]{0,2}"
    rb"|(?<=[0-9A-Fa-f])[0-9A-Fa-f])(?![0-9A-Za-z.])"
)
_CUT = re.compile(rb"\n[ \t\"'(\[{]{0,40}[A-Za-z]{3}")
"""Where no run goes on: none has a word in it."""
_NAMES = re.compile(rb"\?P<[a-z]+>")


def _run(one: bytes, between: bytes) -> re.Pattern[bytes]:
    plain = _NAMES.sub(b"?:", one)
    return re.compile(plain + b"(?:" + between + plain + b"){%d,}" % (_FEWEST - 1))


_MARKED_GAP = b"(?:;|" + hiding.BETWEEN + b"){0,60}"
_BARE_GAP = b"(?:" + hiding.BETWEEN + b"{1,60}|(?=-))"
_KINDS = {
    "marked": (_run(_MARKED, _MARKED_GAP), re.compile(_MARKED_GAP + _MARKED)),
    "numbers": (
        re.compile(_FIRST + b"(?:" + _BARE_GAP + _NAMES.sub(b"?:", _BARE) + b"){%d,}" % (_FEWEST - 1)),
        re.compile(b"(?:" + _BARE_GAP + b")?" + _BARE),
    ),
}
"""By the way that shows them, runs of numbers, and one of these with what stands before it."""


def parts(data: bytes, spans: Spans, *, as_numbers: bool = False) -> Iterator[Part]:
    """Where values stand, number by number, and what comes there: as many `A`, and 0 for a number that is decimal; with
    `as_numbers`, 0 for all that stand by themselves, as JSON has them outside of strings."""
    bounds = [0, *(found.start() for found in _CUT.finditer(data)), len(data)]
    for start, end in pairwise(bounds):
        piece = data[start:end]
        ways = hiding.ways(piece) & hiding.SPELLED
        for found, (_, one) in ((found, _KINDS[way]) for way in ways for found in _KINDS[way][0].finditer(piece)):
            numbers = list(_numbers(data, one, start + found.start(), start + found.end()))
            yield from _of_run(data, numbers, spans, as_numbers=as_numbers)


def _of_run(data: bytes, numbers: list[_Number], spans: Spans, *, as_numbers: bool) -> Iterator[Part]:
    for read in _READINGS:
        for some in _readable(numbers, read):
            for start, end, _ in spans(bytes(byte for _, byte in some)):
                blank = [_blank(number, read, as_numbers=as_numbers) for number, _ in some[start:end]]
                yield joined(data, blank)


_Number = tuple[int, str, bytes]
"""Where a number begins, how it is marked, and the number."""


def _numbers(data: bytes, one: re.Pattern[bytes], at: int, end: int) -> Iterator[_Number]:
    while at < end and (found := one.match(data, at)) is not None:
        kind = found.lastgroup or ""
        yield found.start(kind), kind, found[kind]
        at = found.end()


def _readable(numbers: list[_Number], read: Callable[[_Number], int]) -> Iterator[list[tuple[_Number, int]]]:
    """The numbers as bytes where they can be read so: as many side by side as the shortest value has."""
    every = [(number, read(number)) for number in numbers]
    none = [-1, *(place for place, (_, byte) in enumerate(every) if byte < 0), len(every)]
    for before, after in pairwise(none):
        if after - before > _FEWEST:
            yield every[before + 1 : after]


def _as_marked(number: _Number) -> int:
    _, kind, digits = number
    value = int(digits, _BASES.get(kind, 16))
    return value if kind != "number" and value <= 0xFF else -1


def _as_decimal(number: _Number) -> int:
    _, kind, digits = number
    if kind != "number" or digits.translate(None, b"-0123456789"):
        return -1
    value = int(digits)
    return value & 0xFF if -0x80 <= value <= 0xFF else -1


def _as_hex(number: _Number) -> int:
    _, kind, digits = number
    pair = digits.lstrip(b"-")
    return int(pair, 16) if kind == "number" and len(pair) == 2 else -1


def _as_octal(number: _Number) -> int:
    _, kind, digits = number
    is_octal = kind == "number" and len(digits) == 3 and not digits.translate(None, b"01234567")
    return int(digits, 8) if is_octal and digits < b"400" else -1


_BASES = {"octal": 8, "decimal": 10}
_READINGS = (_as_marked, _as_decimal, _as_hex, _as_octal)


def _blank(number: _Number, read: Callable[[_Number], int], *, as_numbers: bool) -> Part:
    start, kind, digits = number
    end = start + len(digits)
    if read is _as_decimal or kind == "decimal" or (as_numbers and kind == "number"):
        return start, end, b"0"
    start += digits.startswith(b"-")
    return start, end, b"A" * (end - start)
