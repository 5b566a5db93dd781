"""Bytes as tools print them: base64 or hex that is broken into lines, and dumps in hex, octal, decimal words and
characters, with or without offsets before and text beside; also in JSON within JSON."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sessgit.model.secrets import hiding, levels
from sessgit.model.secrets.levels import DEEPEST, Part, Span, Spans, View

_NUMBER = rb"(?:[ \t]{0,40}[0-9]{1,6}(?:\xe2\x86\x92|\t))?"
"""The number that tools put before each line of a text."""
_INDENT = _NUMBER + rb"[ \t]{0,40}"
_BREAK = re.compile(
    rb"\n(?<=[A-Za-z0-9+/_\r-]\n)(?<=[A-Za-z0-9+/_-]{24}\n|[A-Za-z0-9+/_-]{23}\r\n)"
    + _INDENT
    + rb"(?=[A-Za-z0-9+/_=-])"
)
_CODE = re.compile(rb"[A-Za-z0-9+/_-]")
_OFFSET = _INDENT + rb"[0-9A-Fa-f]{6,16}"
_CELL = rb"(?:   [ -~]|  \\[0-9A-Za-z\\]|  AA| [0-7A]{3})"
_DUMP = re.compile(
    rb"(?:" + _INDENT + rb"[0-9A-Fa-f]{8,16}: (?P<groups>(?:[0-9A-Fa-f]{2,32} )+"
    rb"(?:(?: {6}[0-9A-Fa-f]{2}| {4}[0-9A-Fa-f]{4}| {2}[0-9A-Fa-f]{6}) )?) {1,64}[^\r\n]*"
    rb"|(?P<lead>" + _OFFSET + rb"(?= )|" + _NUMBER + rb") {0,24}"
    rb"(?P<words>-?[0-9A-Fa-f]{1,22}(?: {1,20}-?[0-9A-Fa-f]{1,22}){0,63})(?P<text> {2,300}[|>][^\r\n]*[|<])? {0,300}"
    rb")\r?$",
    re.MULTILINE,
)
_CELLS = re.compile(
    rb"(?:(?P<offset>" + _OFFSET + rb")|" + _NUMBER + rb"(?P<spaces> {6,10})?)"
    rb"(?P<chars>(?:[!-~]|\\[0-9A-Za-z\\]|[0-7]{3})?" + _CELL + rb"{1,64}) {0,300}\r?$",
    re.MULTILINE,
)
_WORD = re.compile(rb"-?[0-9A-Fa-f]+")
_WIDTHS = (2, 4, 8, 16)
_OCTAL = {3: 1, 6: 2, 11: 4, 22: 8}
"""How many bytes an octal word has, by its digits."""
_DECIMAL = {6: 2, 7: 2, 8: 2, 11: 4, 12: 4, 21: 8}
"""The same of a decimal word, by the columns that it takes."""
_LEAD = re.compile(rb"[0-9A-Fa-f]{6,16}\Z")
_FIRST = 100
_IS_OCTAL = re.compile(rb"[0-7A]+")
_NAMED = dict(zip(b"0abtnvfr\\", b"\0\a\b\t\n\v\f\r\\", strict=True))


def blank(code: bytes) -> bytes:
    """Base64 or hex that says nothing any more."""
    return _CODE.sub(b"A", code)


def parts(data: bytes, ways: frozenset[str], spans: Spans, mark: bytes) -> Iterator[Part]:
    """Where values stand in a text as a tool prints them, also in JSON in it and in what that holds, and what comes
    there: as many `A`; and where they stand deep in JSON, in the place of which the mark comes. The text hides values
    in these ways."""
    rows = _rows_of(data) if ways & hiding.ROWS else []
    for found in (*(_over_lines(data, spans) if ways & hiding.LINES else ()), *_dumped(data, rows, spans)):
        yield levels.joined(data, found)
    own, start = {row.start() for row in rows}, 0
    while start < len(data):  # no string of JSON goes on in another line
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end] if start not in own else b""
        if hiding.ways(line) & hiding.PRINTED:
            yield from ((start + one, start + last, new) for one, last, new in _inside(line, spans, mark))
        start = end + 1


def _inside(line: bytes, spans: Spans, mark: bytes) -> Iterator[Part]:
    """The same in the strings of JSON in a line, and in those in these."""
    text, views, gone = line, list[View](), list[tuple[int, int]]()
    while len(views) < DEEPEST and (b"\\" in text or b'"' in text):
        views.append(levels.within(text, gone))
        text = views[-1].data
        ways = hiding.ways(text)
        if not ways & hiding.PRINTED and len(views) > 1:
            return
        rows = _rows_of(text) if ways & hiding.ROWS else []
        gone = [row.span() for row in rows]
        for found in (*(_over_lines(text, spans) if ways & hiding.LINES else ()), *_dumped(text, rows, spans)):
            yield levels.joined(line, levels.placed(found, views))
        for start, end, is_code in spans(text):
            new = blank(text[start:end]) if is_code else mark
            yield levels.joined(line, levels.placed([(start, end, new)], views))


def over_lines(data: bytes, spans: Spans) -> Iterator[Part]:
    """Those in base64 or hex that is broken into lines."""
    yield from (levels.joined(data, found) for found in _over_lines(data, spans))


def dumped(data: bytes, spans: Spans) -> Iterator[Part]:
    """Those in dumps: in the digits or characters of each line, and in the text beside them."""
    yield from (levels.joined(data, found) for found in _dumped(data, _rows_of(data), spans))


def without(data: bytes, gone: re.Pattern[bytes], spans: Spans) -> Iterator[Span]:
    """Where values stand in a text once some parts of it are taken out."""
    view = View(data, lambda: ((*found.span(), b"") for found in gone.finditer(data)))
    for start, end, is_base64 in spans(view.data):
        yield *view.place(start, end), is_base64


# Broken into lines


def _over_lines(data: bytes, spans: Spans) -> Iterator[list[Part]]:
    breaks = [(one.start() - data.endswith(b"\r", 0, one.start()), one.end()) for one in _BREAK.finditer(data)]
    if not breaks:
        return
    view = View(data, lambda: ((*span, b"") for span in breaks))
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


def _rows_of(data: bytes) -> list[re.Match[bytes]]:
    """The rows of dumps: the lines that have in them what such rows have, and those above and below that may be some
    as well."""
    rows, done = list[re.Match[bytes]](), 0
    for start in sorted(hiding.row_starts(data)):
        row = _row_at(data, start) if start >= done else None
        if row is None:
            continue
        above, first = list[re.Match[bytes]](), start
        while first > done:
            first = data.rfind(b"\n", 0, first - 1) + 1
            before = _row_at(data, first, (above[-1] if above else row).start() - 1) if first >= done else None
            if before is None:
                break
            above.append(before)
        rows += reversed(above)
        while row is not None:
            rows.append(row)
            done = row.end() + 1
            row = _row_at(data, done) if done < len(data) else None
    return rows


def _row_at(data: bytes, start: int, end: int = sys.maxsize) -> re.Match[bytes] | None:
    return _DUMP.match(data, start, end) or _CELLS.match(data, start, end)


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
    end = found.end() - data.endswith(b"\r", 0, found.end())
    cells = found if found.re is _CELLS else _CELLS.match(data, found.start(), found.end())
    if cells is not None:
        yield from _in_cells(data, cells, end)
    if found is cells:
        return
    name = "words" if found["groups"] is None else "groups"
    words = [one.span() for one in _WORD.finditer(data, found.start(name), found.end(name))]
    yield from _in_words(data, found, words, end, is_group=name == "groups")
    if name == "words":  # what looks like an offset may be the first of them
        lead = _LEAD.search(found["lead"])
        first = [(found.start("lead") + lead.start(), found.end("lead"))] if lead else []
        yield from _in_words(data, found, [*first, *words], end, is_first=True)


def _in_words(
    data: bytes,
    found: re.Match[bytes],
    words: list[tuple[int, int]],
    end: int,
    *,
    is_group: bool = False,
    is_first: bool = False,
) -> Iterator[_Row]:
    """A row of words, as their digits may be read; of the first one that may also be an offset."""
    width = 0 if is_group else words[0][1] - words[0][0] + _FIRST * is_first
    for order in (False, True) if any(last - first > 2 for first, last in words) else (False,):
        read = [_word(data, *word, is_little=order, is_group=is_group) for word in words]
        if None in read:
            continue
        digits = tuple(place for one in read if one for place in one[1])
        text = (0, 0)
        if is_group and end - len(digits) >= found.end("groups"):
            text = end - len(digits), end
        elif found["text"] is not None:
            text = found.start("text") + found["text"].index(found["text"].lstrip(b" ")) + 1, found.end("text") - 1
        shown = b"".join(one[0] for one in read if one)
        yield _Row(found.start(), end, (width, order), shown, digits, text)
    if not is_group:
        yield from _in_decimal(data, found, words, end, is_first=is_first)


def _in_cells(data: bytes, found: re.Match[bytes], end: int) -> Iterator[_Row]:
    """A row of characters, in cells of four columns, of which the first may lack the spaces before it; a row without an
    offset may begin with spaces that are characters."""
    start, stop = found.span("chars")
    begins = [(start, 0)] if found["offset"] or found["spaces"] else []
    begins += [(found.start("spaces") if found["spaces"] else start, 1)] if not found["offset"] else []
    for begin, way in begins:
        cells = [(max(last - 4, begin), last) for last in range(stop, begin, -4)][::-1]
        shown = bytes(_character(data[first:last].rjust(4)) for first, last in cells)
        yield _Row(found.start(), end, (way, True), shown, tuple(cells), (0, 0))


def _in_decimal(
    data: bytes, found: re.Match[bytes], words: list[tuple[int, int]], end: int, *, is_first: bool
) -> Iterator[_Row]:
    """A row of decimal words, which tell by the columns that each takes how many bytes it has."""
    begin = found.start("lead") if is_first and _LEAD.search(found["lead"]) else found.end("lead")
    columns = {last - before for (_, before), (_, last) in pairwise(words)} or {words[0][1] - begin}
    size = _DECIMAL.get(min(columns)) if len(columns) == 1 else None
    shown = [data[first:last] for first, last in words]
    if size is None or any(not one.lstrip(b"-").isdigit() for one in shown):
        return
    numbers = [int(one) for one in shown]
    if any(not -1 << 8 * size - 1 <= one < 1 << 8 * size for one in numbers):
        return
    for order in ("little", "big"):
        whole = b"".join((one % (1 << 8 * size)).to_bytes(size, order) for one in numbers)
        digits = tuple(word for word in words for _ in range(size))
        yield _Row(found.start(), end, (-min(columns) - _FIRST * is_first, order == "little"), whole, digits, (0, 0))


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
    if width % 2 or not (is_group or width in _WIDTHS):
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
    if row.way[0] < 0:
        yield from ((start, end, b"0".rjust(end - start)) for start, end in places)
        return
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
