"""Bytes as tools print them: base64 or hex that is broken into lines, and dumps in hex, octal and characters with the
text beside; also in JSON within JSON."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import accumulate, pairwise

Span = tuple[int, int, bool]
"""Where a form stands, and whether it is base64 or hex: that stays what it is."""
Spans = Callable[[bytes], list[Span]]
Part = tuple[int, int, bytes]
"""What stands from one place to another, and what comes there."""

_NESTED = 3
_INDENT = rb"(?:[ \t]{0,40}[0-9]{1,6}(?:\xe2\x86\x92|\t))?[ \t]{0,40}"
"""What tools put before each line of a text: spaces, and its number."""
# The end of a full line of base64 or hex, in a text and in a string of a line, which may hold JSON that holds JSON.
# Each begins with what is rare; what comes before has one width, as it must.
_NEXT = rb"(?=(?:[ \t]|\\{1,8}(?:t|u2192)|\xe2\x86\x92|[0-9]){0,60}[A-Za-z0-9+/_-]{4})"
_CODED = (
    re.compile(rb"\n(?<=[A-Za-z0-9+/_-]{24}\n|[A-Za-z0-9+/_-]{23}\r\n)" + _NEXT),
    re.compile(
        rb"\\n(?<=[A-Za-z0-9+/_-]{24}\\n|[A-Za-z0-9+/_-]{22}\\r\\n|[A-Za-z0-9+/_-]{23}\\\\n|[A-Za-z0-9+/_-]{20}\\\\r\\\\n"
        rb"|[A-Za-z0-9+/_-]{21}\\{4}n|[A-Za-z0-9+/_-]{16}\\{4}r\\{4}n"
        rb"|[A-Za-z0-9+/_-]{17}\\{8}n|[A-Za-z0-9+/_-]{8}\\{8}r\\{8}n)" + _NEXT
    ),
)
_BREAK = re.compile(rb"\r?\n(?<=[A-Za-z0-9+/_-]{24}\n|[A-Za-z0-9+/_-]{23}\r\n)" + _INDENT + rb"(?=[A-Za-z0-9+/_=-])")
_CODE = re.compile(rb"[A-Za-z0-9+/_-]")
_DUMPED = (
    re.compile(rb"0: [0-9A-Fa-f]{2,32} [0-9A-Fa-f ]"),
    re.compile(rb"0 (?<=[0-9A-Fa-f]{5}0 ) {0,8}[!-~]{1,22} {1,8}[!-~]"),
)
_OFFSET = _INDENT + rb"[0-9A-Fa-f]{6,16}"
_DUMP = re.compile(
    rb"^(?:" + _INDENT + rb"[0-9A-Fa-f]{8,16}: (?P<groups>(?:[0-9A-Fa-f]{2,32} )+"
    rb"(?:(?: {6}[0-9A-Fa-f]{2}| {4}[0-9A-Fa-f]{4}| {2}[0-9A-Fa-f]{6}) )?) {1,64}[^\r\n]*"
    rb"|(?:" + _OFFSET + rb")? {1,24}(?P<words>[0-9A-Fa-f]{2,22}(?: {1,8}[0-9A-Fa-f]{2,22}){0,63})"
    rb"(?P<text> {2,300}[|>][^\r\n]*[|<])? {0,300}"
    rb"|(?:" + _OFFSET + rb"| {6,10})(?P<chars>(?:   [ -~]|  \\[0-9A-Za-z\\]|  AA| [0-7A]{3}){1,64}) {0,300}"
    rb")\r?$",
    re.MULTILINE,
)
_WORD = re.compile(rb"[0-9A-Fa-f]+")
_HEX = {2: 1, 4: 2, 8: 4, 16: 8}
_OCTAL = {3: 1, 6: 2, 11: 4, 22: 8}
"""How many bytes a word has, by its digits."""
_IS_OCTAL = re.compile(rb"[0-7A]+")
_NAMED = dict(zip(b"0abtnvfr\\", b"\0\a\b\t\n\v\f\r\\", strict=True))
_ESCAPE = re.compile(rb'\\(?:u[0-9A-Fa-f]{4}|["\\/bfnrt])|"')
_PLAIN = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def may_hold(data: bytes) -> bool:
    """Whether any such bytes may stand in a text or in a line."""
    return any(one.search(data) is not None for one in (*_CODED, *_DUMPED))


def blank(code: bytes) -> bytes:
    """Base64 or hex that says nothing any more."""
    return _CODE.sub(b"A", code)


def parts(data: bytes, spans: Spans) -> Iterator[Part]:
    """Where values stand in a text as a tool prints them, also in JSON in it and in what that holds, and what comes
    there: as many `A`."""
    text, views = data, list[_View]()
    for _ in range(_NESTED + 1):
        rows = list(_DUMP.finditer(text))
        for found in (*_over_lines(text, spans), *_dumped(text, rows, spans)):
            yield _joined(data, _placed(found, views))
        if b"\\" not in text and b'"' not in text:
            return
        views.append(_unescaped(text, rows))
        text = views[-1].data


def over_lines(data: bytes, spans: Spans) -> Iterator[Part]:
    """Those in base64 or hex that is broken into lines."""
    yield from (_joined(data, found) for found in _over_lines(data, spans))


def dumped(data: bytes, spans: Spans) -> Iterator[Part]:
    """Those in dumps: in the digits or characters of each line, and in the text beside them."""
    yield from (_joined(data, found) for found in _dumped(data, _DUMP.finditer(data), spans))


def without(data: bytes, gone: re.Pattern[bytes], spans: Spans) -> Iterator[Span]:
    """Where values stand in a text once some parts of it are taken out."""
    view = _viewed(data, ((*found.span(), b"") for found in gone.finditer(data)))
    for start, end, is_base64 in spans(view.data):
        yield *view.place(start, end), is_base64


# A text as it would read otherwise


@dataclass(frozen=True, slots=True)
class _View:
    """A text in which other bytes stand at some places: `starts` and `ends` of these in it, and in the text itself."""

    data: bytes
    starts: list[int]
    ends: list[int]
    own: list[tuple[int, int]]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text a part of the view stands, from its first byte to its last."""
        return self._at(start)[0], self._at(end - 1)[1]

    def _at(self, at: int) -> tuple[int, int]:
        last = bisect_right(self.starts, at) - 1
        if last < 0:
            return at, at + 1
        if at < self.ends[last]:
            return self.own[last]
        place = self.own[last][1] + at - self.ends[last]
        return place, place + 1


def _viewed(data: bytes, changes: Iterable[Part]) -> _View:
    pieces, starts, ends, own, done, length = list[bytes](), list[int](), list[int](), list[tuple[int, int]](), 0, 0
    for start, end, new in changes:
        if start < done:
            continue
        pieces += (data[done:start], new)
        length += start - done
        starts.append(length)
        length += len(new)
        ends.append(length)
        own.append((start, end))
        done = end
    return _View(b"".join([*pieces, data[done:]]), starts, ends, own)


def _unescaped(data: bytes, rows: Iterable[re.Match[bytes]]) -> _View:
    """The strings of JSON in a text as they read, each on lines of its own, without the rows of dumps that stand in the
    text itself."""
    changes = [(*found.span(), _plain(found[0])) for found in _ESCAPE.finditer(data)]
    inside = merge(changes, ((*found.span(), b"") for found in rows))
    return _viewed(data, inside)


def _plain(escape: bytes) -> bytes:
    if escape == b'"':
        return b"\n"
    if escape[1:2] == b"u":
        return chr(int(escape[2:], 16)).encode("utf-8", "surrogatepass")
    return _PLAIN.get(escape[1:], escape[1:])


def _placed(found: list[Part], views: list[_View]) -> list[Part]:
    """The same parts in the text that the first of the views is of."""
    for view in reversed(views):
        found = [(*view.place(start, end), new) for start, end, new in found]
    return found


def _joined(data: bytes, found: list[Part]) -> Part:
    """One part of several: what stands between them stays."""
    pieces = [found[0][2]]
    for (_, end, _), (start, _, new) in pairwise(found):
        pieces += (data[end:start], new)
    return found[0][0], found[-1][1], b"".join(pieces)


# Broken into lines


def _over_lines(data: bytes, spans: Spans) -> Iterator[list[Part]]:
    breaks = [found.span() for found in _BREAK.finditer(data)]
    if not breaks:
        return
    view = _viewed(data, ((*span, b"") for span in breaks))
    for start, end, is_code in spans(view.data):
        if is_code:
            first, last = view.place(start, end)
            within = breaks[bisect_left(breaks, (first, 0)) : bisect_left(breaks, (last, 0))]
            inner = [first, *(at for span in within for at in span), last]
            yield [(a, b, blank(data[a:b])) for a, b in zip(inner[::2], inner[1::2], strict=True)]


# Dumps


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a dump as it may be read: from where to where it goes, which of several ways that is, its bytes, where
    the digits of each stand, and where its text begins and ends."""

    start: int
    end: int
    way: tuple[int, bool]
    bytes: bytes
    digits: tuple[tuple[int, int], ...]
    text: tuple[int, int]


def _dumped(data: bytes, matches: Iterable[re.Match[bytes]], spans: Spans) -> Iterator[list[Part]]:
    blocks = dict[tuple[int, bool], list[_Row]]()
    end = -1
    for found in matches:
        if found.start() != end + 1:
            yield from _in_blocks(data, blocks, spans)
            blocks = {}
        end = found.end()
        for row in _rows(data, found):
            blocks.setdefault(row.way, []).append(row)
    yield from _in_blocks(data, blocks, spans)


def _rows(data: bytes, found: re.Match[bytes]) -> Iterator[_Row]:
    name = next(one for one in ("groups", "words", "chars") if found[one] is not None)
    end = found.end() - data.endswith(b"\r", 0, found.end())
    if name == "chars":
        at = range(found.start(name), found.end(name), 4)
        shown = bytes(_character(data[start : start + 4]) for start in at)
        yield _Row(found.start(), end, (0, True), shown, tuple((start, start + 4) for start in at), (0, 0))
        return
    words = [one.span() for one in _WORD.finditer(data, found.start(name), found.end(name))]
    width = 0 if name == "groups" else words[0][1] - words[0][0]
    for order in (False, True) if any(last - first > 2 for first, last in words) else (False,):
        read = [_word(data, *word, is_little=order, is_group=name == "groups") for word in words]
        if None in read:
            continue
        digits = tuple(place for one in read if one for place in one[1])
        text = (0, 0)
        if name == "groups" and end - len(digits) >= found.end(name):
            text = end - len(digits), end
        elif found["text"] is not None:
            text = found.start("text") + found["text"].index(found["text"].lstrip(b" ")) + 1, found.end("text") - 1
        shown = b"".join(one[0] for one in read if one)
        yield _Row(found.start(), end, (width, order), shown, digits, text)


def _word(
    data: bytes, start: int, end: int, *, is_little: bool, is_group: bool
) -> tuple[bytes, list[tuple[int, int]]] | None:
    """The bytes of a word and where the digits of each stand; None if it is none."""
    width = end - start
    if width in _OCTAL and not is_group:
        number = int(data[start:end].replace(b"A", b"0"), 8) if _IS_OCTAL.fullmatch(data, start, end) else -1
        size = _OCTAL[width]
        if not 0 <= number < 1 << 8 * size:
            return None
        return number.to_bytes(size, "little" if is_little else "big"), [(start, end)] * size
    if width % 2 or not (is_group or width in _HEX):
        return None
    places = [(at, at + 2) for at in range(start, end, 2)]
    found = bytes.fromhex(data[start:end].decode("ascii"))
    return (found[::-1], places[::-1]) if is_little else (found, places)


def _character(shown: bytes) -> int:
    if shown[1:2] != b" ":
        return int(shown[1:].replace(b"A", b"0"), 8) & 0xFF
    return _NAMED.get(shown[3], shown[3]) if shown[2:3] == b"\\" else shown[3]


def _in_blocks(data: bytes, blocks: dict[tuple[int, bool], list[_Row]], spans: Spans) -> Iterator[list[Part]]:
    for rows in blocks.values():
        begins = [0, *accumulate(len(row.bytes) for row in rows)]
        for start, end, _ in spans(b"".join(row.bytes for row in rows)):
            for at in range(bisect_right(begins, start) - 1, bisect_left(begins, end)):
                first, last = max(start - begins[at], 0), min(end - begins[at], len(rows[at].bytes))
                yield from ([part] for part in _in_row(data, rows[at], first, last))


def _in_row(data: bytes, row: _Row, first: int, last: int) -> Iterator[Part]:
    """The digits of some bytes of a row, those side by side at once, and their text."""
    places = sorted(set(row.digits[first:last]))
    begin, done = places[0]
    for start, end in (*places[1:], (len(data) + 1, 0)):
        if start > len(data) or data[done:start].strip(b" "):
            yield begin, done, re.sub(rb"[^ ]", b"A", data[begin:done])
            begin = start
        done = end
    text, stop = row.text
    if text + first < stop:
        stop = min(text + last, stop)
        yield text + first, stop, b"A" * (stop - text - first)
