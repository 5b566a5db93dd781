"""A text as it would read with other bytes in some places: with JSON's escapes decoded, or without ends of lines.

A secret that only such a view shows is replaced in the text itself, with all that was put into it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from sessgit.redact.checks import is_words

Part = tuple[int, int, bytes]
"""The start and the end of a part of a text, and the bytes that replace it."""
_DEEP = re.compile(rb"\\\\+(?=\\[\"'])")
_CONTINUED = re.compile(rb"\\(?:\\\\n|\r?\n)[ \t]*")
_WRAP = re.compile(rb"\n(?<=[A-Za-z0-9_.-]{12}\n)(?=[A-Za-z0-9_.-]{4})")
_REST = re.compile(
    rb"(?!(?:[a-z0-9]{1,12}|[A-Z0-9]{1,12})[_.-]|eyJ|[A-Z]{4}|-)"
    rb"(?P<word>[A-Za-z0-9_.-]{4,})(?=[\s\"'`,;)\]}<]|\Z)"
)
"""What may be the rest of a value, and begins none."""
_NARROWEST = 24
"""So many columns at least has a terminal or a page that values are wrapped at: shorter lines end where they end."""
# Begins with one literal character, which the expression engine seeks several times faster than two.
_FLAG = re.compile(rb"-(?:[A-Za-z][A-Za-z-]{0,40}\\{0,16}[\"'],|(?<=[\"']-)p)")
_ARGUMENTS = re.compile(
    rb"(?P<before>\\{0,16}[\"']),[ \t\n]{0,40}(?P=before)(?=-)"
    rb"|(?<![\w-])--?[A-Za-z][A-Za-z-]{0,40}(?P<after>\\{0,16}[\"']),[ \t\n]{0,40}(?P=after)"
)
_MOST_ARGUMENTS = 100
_SHARED = 20


class View:
    """The bytes that result when parts of another view are replaced; `place` maps them back to the first text.

    `parts` returns the replaced parts in order. It is called only once a place is asked for: most texts hold nothing.
    """

    def __init__(self, data: bytes, source: View | None = None, parts: Callable[[], Iterable[Part]] = tuple) -> None:
        self.data = data
        self._source, self._parts = source, parts

    def without(self, pattern: re.Pattern[bytes]) -> View:
        """Return the view without what a pattern matches; this view if that is nothing."""
        data, text = pattern.sub(b"", self.data), self.data
        if len(data) == len(text):
            return self
        return View(data, self, lambda: ((*match.span(), b"") for match in pattern.finditer(text)))

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


def replace_parts(text: bytes, parts: Iterable[Part]) -> bytes:
    """Return the text with the parts, which are in order and do not overlap, replaced."""
    pieces, done = list[bytes](), 0
    for start, end, new in parts:
        pieces += (text[done:start], new)
        done = end
    return b"".join([*pieces, text[done:]])


def without_backslashes(text: View) -> View:
    """Return the text without all backslashes but one before a quote."""
    return text.without(_DEEP)


def joined_continuations(text: View) -> View:
    """Return the text with lines that end in a backslash joined to those after them."""
    return text.without(_CONTINUED)


def joined_arguments(text: View) -> View:
    """Return the text with the arguments of a command, if they are in a list, as a shell would have them."""
    if _FLAG.search(text.data) is None:
        return text
    quotes = ((match.start(match.lastgroup or 0), match.end()) for match in _ARGUMENTS.finditer(text.data))
    return _with_parts(text, [(start, end, b" ") for start, end in quotes])


def without_wraps(text: View) -> View:
    """Return the text with lines joined that a terminal seems to have broken within a random value."""
    return _with_parts(text, [(*span, b"") for span in _find_wraps(text.data)])


def shell_arguments(words: Sequence[bytes]) -> list[bytes]:
    """Return the arguments of a command as a shell would have them; many of them in several parts, of which each begins
    with the last ones of that before it."""
    begins = range(0, max(1, len(words) - _SHARED), _MOST_ARGUMENTS - _SHARED)
    return [b" ".join(words[at : at + _MOST_ARGUMENTS]) for at in begins]


def _with_parts(text: View, parts: Sequence[Part]) -> View:
    return View(replace_parts(text.data, parts), text, lambda: parts) if parts else text


def _find_wraps(data: bytes) -> Iterator[tuple[int, int]]:
    for match in _WRAP.finditer(data):
        width = match.start() - (data.rfind(b"\n", 0, match.start()) + 1)
        after = data.find(b"\n", match.end())
        if width < _NARROWEST or (len(data) if after < 0 else after) - match.end() > width + 1:
            continue
        rest = _REST.match(data, match.end())
        if rest is not None and not is_words(rest["word"]):
            yield match.span()


# Levels of JSON

MOST_LEVELS = 32
"""JSON in JSON doubles the backslashes with each level, so no text of less than 4 GiB has more levels than this."""

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\"\\/bfnrt])")
_NUMERIC = re.compile(rb"\\u(?:[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|[0-9A-Fa-f]{4})")
_SHORT = {rb"\"": b'"', rb"\/": b"/", rb"\b": b"\b", rb"\f": b"\f", rb"\n": b"\n", rb"\r": b"\r", rb"\t": b"\t"}
_BACKSLASH = b"\xf8"
"""Stands for a decoded backslash while the other escapes are decoded: no UTF-8 text has this byte."""


def is_json(raw: bytes) -> bool:
    """Return whether a line is a JSON object, list or string."""
    if raw.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    try:
        json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


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
        return _ESCAPE.sub(lambda match: _unescape_one(match[0]), text)
    text = text.replace(rb"\\", _BACKSLASH)  # a few passes take a tenth of the time of a call for each escape
    for escape, plain in _SHORT.items():
        text = text.replace(escape, plain)
    if b"\\u" in text:
        text = _NUMERIC.sub(lambda match: _unescape_one(match[0]), text)
    return text.replace(_BACKSLASH, b"\\")


def _escape_parts(text: bytes) -> Callable[[], Iterable[Part]]:
    return lambda: ((*match.span(), _unescape_one(match[0])) for match in _ESCAPE.finditer(text))


def _unescape_one(escape: bytes) -> bytes:
    if escape[1:2] == b"u":
        units = b"".join(bytes.fromhex(unit.decode("ascii")) for unit in escape.split(rb"\u")[1:])
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    return _SHORT.get(escape, b"\\")
