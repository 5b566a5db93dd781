"""Texts with the escapes of JSON strings decoded, level by level, and the way back to the places in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

Part = tuple[int, int, bytes]
"""The start and the end of a part of a text, and the bytes that replace it."""

MOST_LEVELS = 32
"""JSON in JSON doubles the backslashes with each level, so no text of less than 4 GiB has more levels than this."""

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\"\\/bfnrt])")
_NUMERIC = re.compile(rb"\\u(?:[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|[0-9A-Fa-f]{4})")
_SHORT = {rb"\"": b'"', rb"\/": b"/", rb"\b": b"\b", rb"\f": b"\f", rb"\n": b"\n", rb"\r": b"\r", rb"\t": b"\t"}
_BACKSLASH = b"\xf8"
"""Stands for a decoded backslash while the other escapes are decoded: no UTF-8 text has this byte."""


class View:
    """The bytes that result when parts of another view are replaced; `place` maps them back to the first text.

    `parts` returns the replaced parts in order. It is called only once a place is asked for: most texts hold nothing.
    """

    def __init__(self, data: bytes, source: View | None = None, parts: Callable[[], Iterable[Part]] = tuple) -> None:
        self.data = data
        self._source, self._parts = source, parts

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where `data[start:end]` begins and ends in the first text; an escape belongs to a place as a whole."""
        if self._source is None:
            return start, end
        return self._source.place(self._at(start)[0], self._at(end - 1)[1])

    def _at(self, at: int) -> tuple[int, int]:
        """Return the range in the source that became the byte at `at`."""
        starts, ends, ranges = self._replaced
        last = bisect_right(starts, at) - 1
        if last < 0:
            return at, at + 1
        if at < ends[last]:
            return ranges[last]
        place = ranges[last][1] + at - ends[last]
        return place, place + 1

    @cached_property
    def _replaced(self) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Where the replacements begin and end in this view, and the ranges of the source that they replace."""
        starts, ends, ranges, shift = list[int](), list[int](), list[tuple[int, int]](), 0
        for start, end, new in self._parts():
            starts.append(start + shift)
            ends.append(start + shift + len(new))
            ranges.append((start, end))
            shift += len(new) - (end - start)
        return starts, ends, ranges


def decoded_levels(text: bytes) -> Iterator[View]:
    """Yield the text itself, then the text with one level of JSON escapes decoded, and so on until none is left."""
    view = View(text)
    yield view
    for _ in range(MOST_LEVELS):
        data = unescape(view.data)
        if len(data) == len(view.data):  # each escape is longer than what it stands for
            return
        view = View(data, view, _escape_parts(view.data))
        yield view


def unescape(text: bytes) -> bytes:
    """Return the text with one level of JSON escapes decoded; other backslashes stay."""
    if b"\\" not in text:
        return text
    if _BACKSLASH in text:
        return _ESCAPE.sub(lambda found: _unescape_one(found[0]), text)
    text = text.replace(rb"\\", _BACKSLASH)  # a few passes take a tenth of the time of a call for each escape
    for escape, plain in _SHORT.items():
        text = text.replace(escape, plain)
    if b"\\u" in text:
        text = _NUMERIC.sub(lambda found: _unescape_one(found[0]), text)
    return text.replace(_BACKSLASH, b"\\")


def _escape_parts(text: bytes) -> Callable[[], Iterable[Part]]:
    return lambda: ((*found.span(), _unescape_one(found[0])) for found in _ESCAPE.finditer(text))


def _unescape_one(escape: bytes) -> bytes:
    if escape[1:2] == b"u":
        units = b"".join(bytes.fromhex(unit.decode("ascii")) for unit in escape.split(rb"\u")[1:])
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    return _SHORT.get(escape, b"\\")
