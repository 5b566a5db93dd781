"""Bytes as tools print them: base64 or hex that is broken into lines, also in JSON within JSON, and hex dumps with the
text beside."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Span = tuple[int, int, bool]
"""Where a form stands, and whether it is base64 or hex: that stays what it is."""
Spans = Callable[[bytes], list[Span]]

# The end of a full line of base64 or hex, in a text and in a string of a line, which may hold JSON that holds JSON.
# Each begins with what is rare; what comes before has one width, as it must.
_CODED = (
    re.compile(rb"\n(?<=[A-Za-z0-9+/_-]{24}\n|[A-Za-z0-9+/_-]{23}\r\n)(?=[A-Za-z0-9+/_-]{4})"),
    re.compile(
        rb"\\n(?<=[A-Za-z0-9+/_-]{24}\\n|[A-Za-z0-9+/_-]{22}\\r\\n|[A-Za-z0-9+/_-]{23}\\\\n|[A-Za-z0-9+/_-]{20}\\\\r\\\\n"
        rb"|[A-Za-z0-9+/_-]{21}\\{4}n|[A-Za-z0-9+/_-]{16}\\{4}r\\{4}n)(?=[A-Za-z0-9+/_-]{4})"
    ),
)
_BREAK = re.compile(
    rb"\r?\n(?<=[A-Za-z0-9+/_-]{24}\n|[A-Za-z0-9+/_-]{23}\r\n)(?=[A-Za-z0-9+/_=-])"
    rb"|\\(?<=[A-Za-z0-9+/_-]{16}\\)\\{0,3}(?:r\\{1,4})?n(?=[A-Za-z0-9+/_=-])"
)
_CODE = re.compile(rb"(\\+[rn])|[A-Za-z0-9+/_-]")
_DUMPED = (
    re.compile(rb"0: [0-9A-Fa-f]{2,32} [0-9A-Fa-f]{2}"),
    re.compile(rb"0 (?<=[0-9A-Fa-f]{5}0 ) ?[0-9A-Fa-f]{2} [0-9A-Fa-f]{2} "),
)
_DUMP = re.compile(
    rb"^(?:[0-9A-Fa-f]{8,16}: (?P<groups>(?:[0-9A-Fa-f]{2,32} )+) {1,64}[^\r\n]*"
    rb"|[0-9A-Fa-f]{6,16} {1,2}(?P<pairs>[0-9A-Fa-f]{2}(?: {1,2}[0-9A-Fa-f]{2}){0,63}) {2,}[|>][^\r\n]*[|<])\r?$",
    re.MULTILINE,
)
_HEX = re.compile(rb"[0-9A-Fa-f]{2}")


def may_hold(data: bytes) -> bool:
    """Whether any such bytes may stand in a text or in a line."""
    return any(one.search(data) is not None for one in (*_CODED, *_DUMPED))


def is_broken(data: bytes) -> bool:
    """Whether base64 or hex that is broken into lines may stand in a text."""
    return any(one.search(data) is not None for one in _CODED)


def is_dump(data: bytes) -> bool:
    """Whether a hex dump may stand in a text."""
    return any(one.search(data) is not None for one in _DUMPED)


def blank(code: bytes) -> bytes:
    """Base64 or hex that says nothing any more, with its line breaks."""
    return _CODE.sub(lambda one: one[1] or b"A", code)


def over_lines(data: bytes, spans: Spans) -> Iterator[Span]:
    """Where values stand in base64 or hex that is broken into lines."""
    yield from (span for span in without(data, _BREAK, spans) if span[2])


def without(data: bytes, parts: re.Pattern[bytes], spans: Spans) -> Iterator[Span]:
    """Where values stand in a text once some parts of it are taken out."""
    ends, pieces, done, removed = [0], list[bytes](), 0, [0]
    for found in parts.finditer(data):
        pieces.append(data[done : found.start()])
        done = found.end()
        ends.append(found.start() - removed[-1])
        removed.append(removed[-1] + found.end() - found.start())
    for start, end, is_base64 in spans(b"".join([*pieces, data[done:]])):
        first, last = (removed[bisect_right(ends, at) - 1] + at for at in (start, end - 1))
        yield first, last + 1, is_base64


def dumped(data: bytes, spans: Spans) -> Iterator[Span]:
    """Where values stand in hex dumps, line by line: their digits, and the text beside them."""
    block: list[_Row] = []
    for row in _rows(data):
        if block and row.start != block[-1].end + 1:
            yield from _dumped(block, spans)
            block = []
        block.append(row)
    yield from _dumped(block, spans)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a dump: from where to where it goes, its bytes, where the digits of each stand, and where its text."""

    start: int
    end: int
    bytes: bytes
    digits: tuple[int, ...]
    text: int


def _rows(data: bytes) -> Iterator[_Row]:
    for found in _DUMP.finditer(data):
        name = "groups" if found["groups"] is not None else "pairs"
        digits = tuple(one.start() for one in _HEX.finditer(data, found.start(name), found.end(name)))
        end = found.end() - data.endswith(b"\r", 0, found.end())
        # The text is as long as the bytes, in one of the forms between two marks.
        text = end - (name == "pairs") - len(digits)
        if text >= found.end(name):
            yield _Row(found.start(), found.end(), bytes.fromhex(found[name].decode("ascii")), digits, text)


def _dumped(rows: list[_Row], spans: Spans) -> Iterator[Span]:
    if not rows:
        return
    for start, end, _ in spans(b"".join(row.bytes for row in rows)):
        before = 0
        for row in rows:
            first, last = max(start - before, 0), min(end - before, len(row.bytes))
            before += len(row.bytes)
            if first < last:
                yield row.digits[first], row.digits[last - 1] + 2, True
                yield row.text + first, row.text + last, False
