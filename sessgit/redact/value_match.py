"""Finds purged values in texts and JSON lines by keyed hashes, in every form that a purge promises, and replaces them.

The promised forms: the value as it is, JSON-escaped at any depth, URL-encoded, and in base64, base64url and hex, also
broken into lines. The same code looks for a value when a purge begins, when it proves its result, and when lines are
recorded later: so what was purged comes out the same when it is recorded again.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from urllib.parse import unquote_to_bytes

from sessgit.model.json_scan import decode_string, encode_string, string_tokens
from sessgit.redact.json_unescape import Part, View, decoded_levels

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


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is stored of a form of a value: its length, the kinds of its last bytes and, if it is long, of its first,
    its keyed hash, and whether it is base64 or hex, or has several lines."""

    length: int
    tail: bytes
    hash: bytes
    is_code: bool = False
    has_lines: bool = False
    head: bytes = b""


class ValueMatcher:
    """Finds the values with these fingerprints, which were made with the same key."""

    def __init__(self, key: bytes, fingerprints: Iterable[Fingerprint] = ()) -> None:
        self._key, self._has_lines = key, False
        self._plain, self._code = dict[bytes, list[Fingerprint]](), dict[bytes, list[Fingerprint]]()
        for one in dict.fromkeys(fingerprints):
            (self._code if one.is_code else self._plain).setdefault(one.tail, []).append(one)
            self._has_lines |= one.has_lines

    def extended_with(self, values: Iterable[str]) -> ValueMatcher:
        """Return a matcher that finds these values, too."""
        known = (one for some in (*self._plain.values(), *self._code.values()) for one in some)
        return ValueMatcher(self._key, (*known, *(one for value in values for one in self.fingerprints(value))))

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
        found = set[Part]()
        for view, start, end, is_code in self._hits(text):
            found.add(_code_part(text, view, start, end) if is_code else (*view.place(start, end), MARK))
        out = list[Part]()
        for part in sorted(found, key=lambda one: (one[0], -one[1], one[2])):
            if not out or part[0] >= out[-1][1]:
                out.append(part)
            elif part[1] > out[-1][1]:
                out[-1] = out[-1][0], part[1], MARK
        return out

    def ranges(self, text: bytes) -> list[tuple[int, int]]:
        """Return where values stand in a text, in order; ranges that overlap are one."""
        out = list[tuple[int, int]]()
        for start, end in sorted(view.place(start, end) for view, start, end, _ in self._hits(text)):
            if out and start < out[-1][1]:
                out[-1] = out[-1][0], max(end, out[-1][1])
            else:
                out.append((start, end))
        return out

    def _hits(self, text: bytes) -> Iterator[tuple[View, int, int, bool]]:
        if not self._plain and not self._code:
            return
        for level in decoded_levels(text):
            for view in _decoded_views(level):
                yield from ((view, start, end, False) for start, end in self._search(view.data, self._plain))
                rows = _remove_matches(_LINE_NUMBER, view) if self._has_lines else view
                if rows is not view:
                    yield from ((rows, start, end, False) for start, end in self._search(rows.data, self._plain))
                joined = _without_white_space(view)
                yield from ((joined, start, end, True) for start, end in self._search(joined.data, self._code))

    def _search(self, data: bytes, by_tail: dict[bytes, list[Fingerprint]]) -> Iterator[tuple[int, int]]:
        kinds = data.translate(self._kinds)
        for tail, fingerprints in by_tail.items():
            at = kinds.find(tail)
            while at >= 0:
                end = at + len(tail)
                at += 1
                for one in fingerprints:
                    start = end - one.length
                    if start < 0 or not kinds.startswith(one.head, start):
                        continue
                    if hmac.compare_digest(self._hash(data[start:end]), one.hash):
                        yield start, end
                        at = end
                at = kinds.find(tail, at)

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
        yield View(unquote_to_bytes(text), view, lambda: (_percent_part(found) for found in _PERCENT.finditer(text)))


def _percent_part(found: re.Match[bytes]) -> Part:
    return *found.span(), bytes.fromhex(found[0][1:].decode("ascii"))


def _without_white_space(view: View) -> View:
    """Return the view without white space and the numbers of lines: base64 and hex as if never broken into lines."""
    alike = view.data.translate(_DIGITS)  # tells in a fraction of the time whether there can be numbers
    return _remove_matches(
        _SPACES, _remove_matches(_CODE_NUMBER, view) if any(mark in alike for mark in _NUMBERED) else view
    )


def _remove_matches(pattern: re.Pattern[bytes], view: View) -> View:
    text = view.data
    left = text.translate(None, _WHITE_SPACE) if pattern is _SPACES else pattern.sub(b"", text)
    if len(left) == len(text):
        return view
    return View(left, view, lambda: ((*found.span(), b"") for found in pattern.finditer(text)))


# Replacing


def clean_text(text: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    """Return the text with a mark in the place of each value, and how many; the same object if there is none."""
    parts = matcher.parts(text)
    return (_replace_parts(text, parts), len(parts)) if parts else (text, 0)


def clean_lines(data: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    """Return the same of a line, a file of lines or a document.

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
    ranges = matcher.ranges(raw)
    ends = [end for _, end in ranges]

    def is_hit(start: int, end: int) -> bool:
        at = bisect_right(ends, start)
        return at < len(ends) and ranges[at][0] < end

    parts, total, done = list[Part](), 0, 0
    for token in (*string_tokens(raw), None) if ranges else ():
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
    return (_replace_parts(raw, parts), total) if total else (raw, 0)


def is_json(raw: bytes) -> bool:
    """Return whether a line is a JSON object, list or string."""
    if raw.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    try:
        json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _replace_parts(text: bytes, parts: Sequence[Part]) -> bytes:
    pieces, done = list[bytes](), 0
    for start, end, new in parts:
        pieces += (text[done:start], new)
        done = end
    return b"".join([*pieces, text[done:]])


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
    found = set[str]()
    for value in values:
        least = max(SHORTEST, 8, (len(value) + 1) // 2)
        head = value[:least].encode("utf-8", "surrogatepass")
        at = data.find(head) if least < len(value) else -1
        while at >= 0:
            length = _common_prefix_length(data[at : at + 4 * len(value)].decode("utf-8", "ignore"), value)
            after = data[at + len(value[:length].encode("utf-8", "surrogatepass")) :][:3]
            if length < len(value) and (after[:1] == b'"' or after[:2] == b'\\"' or after == "…".encode()):
                found.add(value[:length])
            at = data.find(head, at + 1)
    return found


def _common_prefix_length(text: str, value: str) -> int:
    return next((n for n, (x, y) in enumerate(zip(text, value, strict=False)) if x != y), min(len(text), len(value)))
