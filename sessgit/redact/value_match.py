"""Finds purged values in texts and JSON lines by keyed hashes, in every form that a purge promises, and replaces them.

The promised forms: the value as it is, JSON-escaped at any depth, URL-encoded, and in base64, base64url and hex, also
broken into lines. The same code looks for a value when a purge begins, when it proves its result, and when lines are
recorded later: so what was purged comes out the same when it is recorded again.
"""

from __future__ import annotations

import base64
import hmac
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from urllib.parse import unquote_to_bytes

from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.model.json_strings import decode_string, encode_string, string_tokens
from sessgit.redact import engine
from sessgit.redact.views import Part, View, decoded_levels, is_json, replace_parts

MARK = b"[redacted:purged]"
SHORTEST = 6
"""Bytes. Shorter values occur by chance in too many places."""
LONGEST = 1 << 16

_TAIL, _LONG_TAIL = 4, 32
_LONG = 128
"""Bytes from which on a form has a long tail, and a head: else a private key would be hashed at each run of dashes."""
_KINDS = 32
_WHITE_SPACE = b" \t\r\n"
_SPACES = re.compile(rb"[ \t\r\n]+")
_CODE_NUMBER = re.compile(rb"^[ \t]*[0-9]{1,6}(?:\xe2\x86\x92|\t)", re.MULTILINE)
_LINE_NUMBER = re.compile(rb"^(?: *[0-9]{1,6}(?:\xe2\x86\x92|\t)|(?:[^\s:]{1,200}?[:-])?[0-9]{1,6}[:-])", re.MULTILINE)
"""What `cat -n`, the client's Read tool and `grep -n` put before a line. In code, grep's `-` may be a digit."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_NUMBERED = (b"0\xe2\x86\x92", b"0\t")
_PERCENT = re.compile(rb"%[0-9A-Fa-f]{2}")
_NUMBER = re.compile(rb"-?[0-9][0-9.eE+-]*")


@frozen
class Fingerprint:
    """What is stored of a form of a value: its length, the kinds of its last bytes and, if it is long, of its first,
    its keyed hash, and whether it is base64 or hex, or has several lines."""

    length: int
    tail: bytes
    hash: bytes
    is_code: bool = False
    has_lines: bool = False
    head: bytes = b""


class _Endings:
    """Fingerprints by the kinds of the last four bytes of their forms, and how to find all of these in one pass."""

    def __init__(self, fingerprints: Iterable[Fingerprint]) -> None:
        self.by_tail = dict[bytes, list[Fingerprint]]()
        for one in fingerprints:
            self.by_tail.setdefault(one.tail[-_TAIL:], []).append(one)

    def places(self, kinds: bytes) -> Iterator[int]:
        """Yield where one of them may begin; the time hardly depends on how many they are."""
        for start, end in self._find(kinds) if self.by_tail else ():
            yield from range(start, end)  # another one may begin before this one ends

    @cached_property
    def _find(self) -> Callable[[bytes], Iterator[tuple[int, int]]]:
        return engine.literal_finder(self.by_tail)


class ValueMatcher:
    """Finds the values with these fingerprints, which were made with the same key."""

    def __init__(self, key: bytes, fingerprints: Iterable[Fingerprint] = ()) -> None:
        self._key, self._known = key, tuple(dict.fromkeys(fingerprints))
        self._has_lines = any(one.has_lines for one in self._known)
        self._plain = _Endings(one for one in self._known if not one.is_code)
        self._code = _Endings(one for one in self._known if one.is_code)

    def extended_with(self, values: Iterable[str]) -> ValueMatcher:
        """Return a matcher that finds these values, too."""
        return ValueMatcher(self._key, (*self._known, *(one for value in values for one in self.fingerprints(value))))

    def fingerprints(self, value: str) -> list[Fingerprint]:
        """Return the fingerprints of all forms of a value; the first one is of the value as it is."""
        data = value.encode("utf-8", "surrogatepass")
        plain = dict.fromkeys((data, data.replace(b" ", b"+")))
        code = dict.fromkeys((*_certain_base64(data), data.hex().encode(), data.hex().upper().encode()))
        return [*(self._fingerprint(form, False) for form in plain), *(self._fingerprint(form, True) for form in code)]

    def holds(self, data: bytes) -> bool:
        """Return whether the data holds a value in any form, at any level of JSON."""
        return next(self._hits(data), None) is not None

    def parts(self, text: bytes) -> list[Part]:
        """Return what is to be replaced in a text, and by what: the leftmost first, those that overlap as one part."""
        parts, out = set[Part](), list[Part]()
        for view, start, end, is_code in self._hits(text):
            parts.add(_code_part(text, view, start, end) if is_code else (*view.place(start, end), MARK))
        for part in sorted(parts, key=lambda one: (one[0], -one[1], one[2])):
            if not out or part[0] >= out[-1][1]:
                out.append(part)
            elif part[1] > out[-1][1]:
                out[-1] = out[-1][0], part[1], MARK
        return out

    def _hits(self, text: bytes) -> Iterator[tuple[View, int, int, bool]]:
        if not self._known:
            return
        for level in decoded_levels(text):
            for view in _decoded_views(level):
                yield from ((view, start, end, False) for start, end in self._search(view.data, self._plain))
                rows = view.without(_LINE_NUMBER) if self._has_lines else view
                if rows is not view:
                    yield from ((rows, start, end, False) for start, end in self._search(rows.data, self._plain))
                joined = _without_white_space(view)
                yield from ((joined, start, end, True) for start, end in self._search(joined.data, self._code))

    def _search(self, data: bytes, endings: _Endings) -> Iterator[tuple[int, int]]:
        kinds, behind = data.translate(self._kinds), dict[bytes, int]()
        for at in endings.places(kinds):
            end = at + _TAIL
            for one in endings.by_tail.get(kinds[at:end], ()):
                start = end - one.length
                if start < 0 or at < behind.get(one.tail, 0):
                    continue
                if not (kinds.endswith(one.tail, start, end) and kinds.startswith(one.head, start)):
                    continue
                if hmac.compare_digest(self._hash(data[start:end]), one.hash):
                    behind[one.tail] = end
                    yield start, end

    def _fingerprint(self, form: bytes, is_code: bool) -> Fingerprint:
        kinds, is_long = form.translate(self._kinds), len(form) >= _LONG
        has_lines = not is_code and b"\n" in form.strip(b"\n")
        head, tail = (kinds[:_LONG_TAIL], kinds[-_LONG_TAIL:]) if is_long else (b"", kinds[-_TAIL:])
        return Fingerprint(len(form), tail, self._hash(form), is_code, has_lines, head)

    @cached_property
    def _kinds(self) -> bytes:
        """One of a few letters for each byte, chosen by the key: equal tails show where a form can end."""
        return bytes(0x41 + self._hash(b"kind of byte %d" % byte)[0] % _KINDS for byte in range(256))

    def _hash(self, data: bytes) -> bytes:
        return hmac.digest(self._key, b"purged\0" + data, "sha256")


# What a value becomes


def _certain_base64(data: bytes) -> Iterator[bytes]:
    """Yield what is certain of the data's base64 and base64url, wherever in the coded bytes the data begins."""
    for before, first in ((0, 0), (1, 2), (2, 3)):
        whole = 8 * (before + len(data)) // 6
        certain = base64.b64encode(bytes(before) + data)[first:whole]
        yield certain
        yield certain.translate(bytes.maketrans(b"+/", b"-_"))


def _code_part(text: bytes, view: View, start: int, end: int) -> Part:
    """Return the part in which each character of the code becomes `A`; what breaks it into lines stays."""
    places = [view.place(at, at + 1) for at in range(start, end)]
    between = (text[end:start] for (_, end), (start, _) in pairwise(places))
    return places[0][0], places[-1][1], b"A" + b"".join(gap + b"A" for gap in between)


# What a text is read as


def _decoded_views(view: View) -> Iterator[View]:
    """Yield the view, and the view with percent-encoding decoded if it has any."""
    yield view
    if b"%" in view.data and _PERCENT.search(view.data):
        text = view.data
        yield View(unquote_to_bytes(text), view, lambda: (_percent_part(match) for match in _PERCENT.finditer(text)))


def _percent_part(match: re.Match[bytes]) -> Part:
    return *match.span(), bytes.fromhex(match[0][1:].decode("ascii"))


def _without_white_space(view: View) -> View:
    """Return the view without white space and the numbers of lines: base64 and hex as if never broken into lines."""
    alike = view.data.translate(_DIGITS)  # tells in a fraction of the time whether there can be numbers
    view = view.without(_CODE_NUMBER) if any(mark in alike for mark in _NUMBERED) else view
    text = view.data
    left = text.translate(None, _WHITE_SPACE)
    if len(left) == len(text):
        return view
    return View(left, view, lambda: ((*match.span(), b"") for match in _SPACES.finditer(text)))


# Replacing


def clean_text(text: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    """Return the text with a mark in the place of each value, and how many; the same object if there is none."""
    parts = matcher.parts(text)
    return (replace_parts(text, parts), len(parts)) if parts else (text, 0)


def clean_name(name: str, matcher: ValueMatcher) -> str:
    """Return the name of a file or ref without the values."""
    clean, count = clean_text(name.encode("utf-8", "surrogatepass"), matcher)
    return clean.replace(MARK, b"purged").decode("utf-8", "surrogatepass") if count else name


def clean_lines(data: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    """Return a line, a file of lines or a document as `clean_text` returns a text.

    JSON stays JSON, and every string without a value keeps its bytes; a number with a value becomes 0. Lines that are
    no JSON are one text with those around them.
    """
    if not matcher.holds(data):
        return data, 0
    if is_json(data):
        return _clean_json(data, matcher)
    pieces, texts, total = list[bytes](), list[bytes](), 0

    def flush() -> None:
        nonlocal total
        if texts:
            clean, count = clean_text(b"\n".join(texts), matcher)
            pieces.append(clean)
            total += count
            texts.clear()

    for line in data.split(b"\n"):
        if is_json(line):
            flush()
            clean, count = _clean_json(line, matcher)
            pieces.append(clean)
            total += count
        else:
            texts.append(line)
    flush()
    return (b"\n".join(pieces), total) if total else (data, 0)


def _clean_json(raw: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    hits = matcher.parts(raw)
    ends = [end for _, end, _ in hits]

    def is_hit(start: int, end: int) -> bool:
        at = bisect_right(ends, start)
        return at < len(ends) and hits[at][0] < end

    parts, total, done = list[Part](), 0, 0
    for token in (*string_tokens(raw), None) if hits else ():
        start, end = (token.start, token.end) if token else (len(raw), len(raw))
        if is_hit(done, start):
            numbers = [one.span() for one in _NUMBER.finditer(raw, done, start) if matcher.holds(one[0])]
            parts += [(*span, b"0") for span in numbers]
            total += len(numbers)
        text = decode_string(raw[start:end]) if is_hit(start, end) else None
        if text is not None:
            clean, count = clean_text(text.encode("utf-8", "surrogatepass"), matcher)
            parts += [(start, end, encode_string(clean.decode("utf-8", "surrogatepass")))] if count else []
            total += count
        done = end
    return (replace_parts(raw, parts), total) if total else (raw, 0)


# What was cut short


def cut_short(text: str, values: Iterable[str]) -> str:
    """Return the text without the beginning of a value that the end of a title or subject was cut off from."""
    mark = MARK.decode()
    for value in values:
        for length in range(len(value) - 1, 3, -1):
            if f"{value[:length]}…" in text:
                text = text.replace(f"{value[:length]}…", f"{mark}…")
                break
    return text


def unfinished_beginnings(data: bytes, values: Iterable[str]) -> set[str]:
    """Return the beginnings of values, more than half of one, with which a string in the data ends."""
    beginnings = set[str]()
    for value in values:
        least = max(SHORTEST, 8, (len(value) + 1) // 2)
        head = value[:least].encode("utf-8", "surrogatepass")
        at = data.find(head) if least < len(value) else -1
        while at >= 0:
            length = ids.common_prefix_length(data[at : at + 4 * len(value)].decode("utf-8", "ignore"), value)
            after = data[at + len(value[:length].encode("utf-8", "surrogatepass")) :][:3]
            if length < len(value) and (after[:1] == b'"' or after[:2] == b'\\"' or after == "…".encode()):
                beginnings.add(value[:length])
            at = data.find(head, at + 1)
    return beginnings
