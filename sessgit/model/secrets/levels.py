"""A text as it reads one level of JSON deeper, and where in the text itself a part of that stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

Span = tuple[int, int, bool]
"""Where a form stands, and whether it is base64 or hex: that stays what it is."""
Spans = Callable[[bytes], list[Span]]
Part = tuple[int, int, bytes]
"""What stands from one place to another, and what comes there."""

DEEPEST = 8
"""So many levels of JSON within JSON are looked through."""

_PAIR = rb"u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}"
_ESCAPE = re.compile(rb"\\(?:" + _PAIR + rb'|u[0-9A-Fa-f]{4}|["\\/bfnrt])|"')
_NUMBERED = re.compile(rb"\\(?:" + _PAIR + rb"|u[0-9A-Fa-f]{4})")
_PLAIN = {b"\\b": b"\b", b"\\f": b"\f", b"\\n": b"\n", b"\\r": b"\r", b"\\t": b"\t", b"\\/": b"/"}
# None of these bytes stands in UTF-8. What a quote becomes ends a line, begins one, and is no part of a value.
_BACKSLASH, _QUOTE, _BOUND = b"\xf8", b"\xf9", b"\n\xff\n"


class View:
    """A text in which other bytes stand at some places."""

    def __init__(self, text: bytes, changes: Callable[[], Iterable[Part]], data: bytes | None = None) -> None:
        self._text, self._changes = text, changes
        self.data = self._pieces[0] if data is None else data

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text a part of the view stands, from its first byte to its last."""
        return self._at(start)[0], self._at(end - 1)[1]

    def _at(self, at: int) -> tuple[int, int]:
        _, starts, ends, own = self._pieces
        last = bisect_right(starts, at) - 1
        if last < 0:
            return at, at + 1
        if at < ends[last]:
            return own[last]
        place = own[last][1] + at - ends[last]
        return place, place + 1

    @cached_property
    def _pieces(self) -> tuple[bytes, list[int], list[int], list[tuple[int, int]]]:
        """The view, where in it the other bytes begin and end, and in the place of what they stand."""
        pieces, starts, ends, own, done, length = list[bytes](), list[int](), list[int](), list[tuple[int, int]](), 0, 0
        for start, end, new in self._changes():
            pieces += (self._text[done:start], new)
            length += start - done
            starts.append(length)
            length += len(new)
            ends.append(length)
            own.append((start, end))
            done = end
        return b"".join([*pieces, self._text[done:]]), starts, ends, own


def within(text: bytes, gone: Sequence[tuple[int, int]] = ()) -> View:
    """The strings of JSON in a text as they read, each on lines of its own, without some parts of the text."""
    left = text
    if gone:
        bounds = [0, *(at for span in gone for at in span), len(text)]
        left = b"".join(text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True))
    return View(text, lambda: _changes(text, gone), _read(left))


def placed(found: Sequence[Part], views: Sequence[View]) -> list[Part]:
    """The same parts in the text that the first of the views is of."""
    out = list(found)
    for view in reversed(views):
        out = [(*view.place(start, end), new) for start, end, new in out]
    return out


def joined(text: bytes, found: Sequence[Part]) -> Part:
    """One part of several: what stands between them stays."""
    pieces = [found[0][2]]
    for (_, end, _), (start, _, new) in pairwise(found):
        pieces += (text[end:start], new)
    return found[0][0], found[-1][1], b"".join(pieces)


def _changes(text: bytes, gone: Sequence[tuple[int, int]]) -> Iterator[Part]:
    done = 0
    for start, end in (*gone, (len(text), len(text))):
        yield from ((*found.span(), _plain(found[0])) for found in _ESCAPE.finditer(text, done, start))
        if end > start:
            yield start, end, b""
        done = end


def _read(text: bytes) -> bytes:
    """The text with plain characters in the place of its escapes: in a few passes, since a function for each escape
    takes ten times as long."""
    if _BACKSLASH in text or _QUOTE in text:
        return _ESCAPE.sub(lambda found: _plain(found[0]), text)
    if b"\\" not in text:
        return text.replace(b'"', _BOUND)
    text = text.replace(b"\\\\", _BACKSLASH).replace(b'\\"', _QUOTE).replace(b'"', _BOUND)
    for escape, plain in _PLAIN.items():
        text = text.replace(escape, plain)
    if b"\\u" in text:
        text = _NUMBERED.sub(lambda found: _plain(found[0]), text)
    return text.replace(_QUOTE, b'"').replace(_BACKSLASH, b"\\")


def _plain(escape: bytes) -> bytes:
    if escape == b'"':
        return _BOUND
    if escape[1:2] == b"u":
        units = b"".join(bytes.fromhex(unit.decode("ascii")) for unit in escape.split(b"\\u")[1:])
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    return _PLAIN.get(escape, escape[1:])
