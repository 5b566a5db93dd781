"""A value that must go, in all forms in which lines hold it, and what comes in its place.

A value is looked for in decoded strings and in raw texts. There it stands as it is, or as JSON within JSON has it, as
a URL has it, in base64 or in hex, or as tools print bytes. Whoever knows the value and whoever knows only keyed
hashes of its forms find the
very same places: so what was purged once comes out the same when it is recorded anew.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar
from urllib.parse import quote, quote_plus

from sessgit.model.cutting.jsonscan import decode, encode, string_tokens
from sessgit.model.secrets import dumps, hiding, spelled
from sessgit.model.secrets.levels import Part, Span

MARK = b"[redacted:purged]"
SHORTEST = 6
"""Bytes; what is shorter stands everywhere."""
LONGEST = 1 << 16

_NESTED = 3
_SHORTEST_BASE64 = 10
_TAIL = 4
_KINDS = 32
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}")
_NUMBERED = re.compile(
    rb"(?:^|[\n\"]|\\n)(?: *[0-9]{1,6}(?:\xe2\x86\x92|\t|\\t)|(?:[^\s:\"\\]{1,200}[:-])?[0-9]{1,6}[:-])", re.MULTILINE
)
_LINE_NUMBER = re.compile(rb"^(?: *[0-9]{1,6}(?:\xe2\x86\x92|\t)|(?:[^\s:]{1,200}?[:-])?[0-9]{1,6}[:-])", re.MULTILINE)
_NUMBER = re.compile(rb"-?[0-9][0-9.eE+-]*")
_Found = TypeVar("_Found", Span, Part)


class Finder(Protocol):
    """What finds the forms of values."""

    @property
    def many_lines(self) -> bool:
        """Whether a form has several lines: between them a tool may have put their numbers."""
        ...

    def spans(self, data: bytes) -> list[Span]:
        """Where forms stand: the leftmost first, of several at one place the longest, none in another."""
        ...

    def holds(self, data: bytes) -> bool:
        """Whether any form stands in it."""
        ...


@dataclass(frozen=True, slots=True)
class Form:
    """The bytes as which a value may stand in a text."""

    data: bytes
    is_base64: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    """What is known of a form by whoever does not know it: its length, which kinds of bytes it ends with, its hash."""

    length: int
    tail: bytes
    hash: bytes
    is_base64: bool = False
    many_lines: bool = False


def forms(value: str) -> tuple[Form, ...]:
    """All forms of a value, each once: itself, in JSON up to three deep, also with escapes that only some writers of
    it make, in HTML, in a URL, in base64, in hex; with its bytes or characters that are not ASCII escaped."""
    plain = {value: None} | dict.fromkeys((*_in_html(value), *_in_json(value), *_in_escapes(value)))
    for _ in range(_NESTED):
        plain |= {json.dumps(one, ensure_ascii=only)[1:-1]: None for one in tuple(plain) for only in (False, True)}
    data = value.encode("utf-8", "surrogatepass")
    found = [one.encode("utf-8", "surrogatepass") for one in plain]
    found += [one.encode() for safe in ("", "/", "/:@") for one in (quote(data, safe), quote_plus(data, safe))]
    coded = {core for core in _base64(data) if len(core) >= _SHORTEST_BASE64}
    coded |= {data.hex().encode(), data.hex().upper().encode()}
    return tuple(Form(one) for one in dict.fromkeys(found)) + tuple(Form(one, True) for one in sorted(coded))


def _in_json(value: str) -> Iterator[str]:
    """The inside of a JSON string, as those write it who escape what need not be."""
    for only in (False, True):
        usual = json.dumps(value, ensure_ascii=only)[1:-1]
        yield usual.replace("/", "\\/")
        yield _ESCAPED.sub(lambda found: f"\\u{found[0][2:].upper()}", usual)
        yield usual.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _in_escapes(value: str) -> Iterator[str]:
    """As programming languages, shells and git write what is not ASCII."""
    if not value.isascii():
        data = value.encode("utf-8", "surrogatepass")
        for escape in ("\\x{:02x}", "\\x{:02X}", "\\{:03o}"):
            plain = {byte: escape.format(byte) for byte in data if byte >= 0x80}
            yield json.dumps(data.decode("latin-1"), ensure_ascii=False)[1:-1].translate(plain)
        yield value.encode("unicode_escape", "surrogatepass").decode("ascii")


def _in_html(value: str) -> Iterator[str]:
    few = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield few
    yield few.replace('"', "&quot;")
    yield few.replace('"', "&quot;").replace("'", "&#39;")
    yield few.replace('"', "&quot;").replace("'", "&#x27;")
    yield few.replace('"', "&#34;").replace("'", "&#39;")


def _base64(data: bytes) -> Iterator[bytes]:
    """What is certain of its base64, wherever in a text the data stands."""
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        whole = 8 * (shift + len(data)) // 6
        core = base64.b64encode(b"\0" * shift + data)[first:whole]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))


class Known:
    """Finds values that are known."""

    def __init__(self, values: Iterable[str]) -> None:
        self._forms = tuple(dict.fromkeys(form for value in values for form in forms(value)))
        self.many_lines = any(_has_lines(form) for form in self._forms)

    def holds(self, data: bytes) -> bool:
        return any(form.data in data for form in self._forms)

    def spans(self, data: bytes) -> list[Span]:
        return chosen(
            (at, at + len(form.data), form.is_base64) for form in self._forms for at in _places(data, form.data)
        )


class Hashed:
    """Finds values of which the prints are known, and the key of the store that they were made in."""

    def __init__(self, key: bytes, prints: Sequence[Print]) -> None:
        self._key, self._prints = key, tuple(dict.fromkeys(prints))
        self._by_tail: dict[bytes, list[Print]] = {}
        for one in self._prints:
            self._by_tail.setdefault(one.tail, []).append(one)
        self.many_lines = any(one.many_lines for one in self._prints)

    def holds(self, data: bytes) -> bool:
        return next(self._all(data), None) is not None

    def spans(self, data: bytes) -> list[Span]:
        return chosen(self._all(data))

    def prints(self, value: str) -> list[Print]:
        """The prints of a value, by which it is found again."""
        return [
            Print(
                len(form.data),
                form.data[-_TAIL:].translate(self._table),
                self._hash(form.data),
                form.is_base64,
                _has_lines(form),
            )
            for form in forms(value)
        ]

    def _all(self, data: bytes) -> Iterator[Span]:
        if not self._prints:
            return
        kinds = data.translate(self._table)
        for tail, prints in self._by_tail.items():
            at = kinds.find(tail)
            while at >= 0:  # without a generator for each tail, which costs more than the search in most lines
                end = at + len(tail)
                at = kinds.find(tail, at + 1)
                for one in prints:
                    start = end - one.length
                    if start >= 0 and hmac.compare_digest(self._hash(data[start:end]), one.hash):
                        yield start, end, one.is_base64

    @cached_property
    def _table(self) -> bytes:
        """One of a few kinds for each byte, told by the key: so a form is looked for where it can stand."""
        return bytes(0x41 + self._hash(b"kind of byte %d" % byte)[0] % _KINDS for byte in range(256))

    def _hash(self, data: bytes) -> bytes:
        return hmac.digest(self._key, b"purged\0" + data, "sha256")


class Several:
    """Finds what any of some finders does."""

    def __init__(self, finders: Iterable[Finder]) -> None:
        self._finders = tuple(finders)
        self.many_lines = any(finder.many_lines for finder in self._finders)

    def holds(self, data: bytes) -> bool:
        return any(finder.holds(data) for finder in self._finders)

    def spans(self, data: bytes) -> list[Span]:
        return chosen(span for finder in self._finders for span in finder.spans(data))


def chosen(found: Iterable[_Found]) -> list[_Found]:
    """Those that do not lie in one before them: the leftmost first, of several at one place the longest."""
    out: list[_Found] = []
    for span in sorted(set(found), key=lambda one: (one[0], -one[1], one[2])):
        if not out or span[0] >= out[-1][1]:
            out.append(span)
    return out


def may_hide(data: bytes, finder: Finder) -> bool:
    """Whether a value may stand in it that is seen only when strings are decoded: since they are written in a way that
    nobody needs or are deep in others, or since the lines of a text in them are numbered, or are those of base64 or of
    a dump, or since bytes are spelled one by one."""
    return hiding.may_hide(data) or _may_be_numbered(data, finder)


def _may_be_numbered(data: bytes, finder: Finder) -> bool:
    return finder.many_lines and _NUMBERED.search(data) is not None


def clean_text(data: bytes, finder: Finder) -> tuple[bytes, int]:
    """The text with a mark in the place of each value, and how many; the same object if there were none."""
    spans = finder.spans(data)
    if finder.many_lines and _NUMBERED.search(data):
        spans = chosen([*spans, *_between_numbers(data, finder)])
    parts: list[Part] = [
        (start, end, dumps.blank(data[start:end]) if is_base64 else MARK) for start, end, is_base64 in spans
    ]
    ways = hiding.ways(data)
    if ways & hiding.PRINTED:
        parts = chosen([*parts, *dumps.parts(data, ways, finder.spans, MARK)])
    if ways & hiding.SPELLED:
        parts = chosen([*parts, *spelled.parts(data, finder.spans)])
    return _with(data, parts) if parts else (data, 0)


def _with(data: bytes, parts: Sequence[Part]) -> tuple[bytes, int]:
    pieces, done = list[bytes](), 0
    for start, end, new in parts:
        pieces += (data[done:start], new)
        done = end
    return b"".join([*pieces, data[done:]]), len(parts)


def _between_numbers(data: bytes, finder: Finder) -> Iterator[Span]:
    """Where values of several lines stand in a text whose lines are numbered."""
    yield from dumps.without(data, _LINE_NUMBER, finder.spans)


def clean_line(raw: bytes, finder: Finder) -> tuple[bytes, int]:
    """The same of a line; one that is JSON stays JSON and keeps every byte outside of the strings that changed.

    A number that holds a value becomes 0, and so do those that spell one, byte by byte.
    """
    ways = hiding.ways(raw)
    if not ways and not _may_be_numbered(raw, finder) and not finder.holds(raw):
        return raw, 0
    if not is_json(raw):
        return clean_text(raw, finder)
    pieces, done, total = list[bytes](), 0, 0
    for token in string_tokens(raw, min_length=SHORTEST):
        replaced, count = _clean_token(raw[token.start : token.end], finder)
        if count:
            between, more = _clean_numbers(raw[done : token.start], finder)
            pieces += (between, replaced)
            done = token.end
            total += count + more
    rest, more = _clean_numbers(raw[done:], finder)
    total += more
    clean = b"".join([*pieces, rest]) if total else raw
    listed = chosen(spelled.parts(clean, finder.spans, as_numbers=True)) if ways & hiding.SPELLED else []
    return (_with(clean, listed)[0], total + len(listed)) if listed else (clean, total)


def clean_lines(data: bytes, finder: Finder) -> tuple[bytes, int]:
    """The same of a file of lines, of which the last may lack its newline."""
    if not may_hide(data, finder) and not finder.holds(data):
        return data, 0
    ways = hiding.ways(data)
    printed = [*spelled.parts(data, finder.spans)] if ways & hiding.SPELLED else []
    printed = chosen([*printed, *dumps.dumped(data, finder.spans)]) if ways & hiding.PRINTED else chosen(printed)
    left = _with(data, printed)[0] if printed else data
    found = [clean_line(line, finder) for line in left.split(b"\n")]
    total = sum(count for _, count in found)
    clean = b"\n".join(line for line, _ in found) if total else left
    over = chosen(dumps.over_lines(clean, finder.spans)) if ways & hiding.PRINTED else []
    return _with(clean, over)[0] if over else clean, len(printed) + total + len(over)


def cut_short(text: str, values: Iterable[str]) -> str:
    """The text without the beginning of a value that the end of a title or subject was cut off from."""
    mark = MARK.decode()
    for value in values:
        for length in range(len(value) - 1, 3, -1):
            if f"{value[:length]}…" in text:
                text = text.replace(f"{value[:length]}…", f"{mark}…")
                break
    return text


def beginnings(data: bytes, values: Iterable[str]) -> set[str]:
    """Beginnings of the values, more than half of one, with which a string in the data ends."""
    found = set[str]()
    for value in values:
        least = max(SHORTEST, 8, (len(value) + 1) // 2)
        head = value[:least].encode("utf-8", "surrogatepass")
        for at in _places(data, head) if least < len(value) else ():
            length = _alike(data[at : at + 4 * len(value)].decode("utf-8", "ignore"), value)
            after = data[at + len(value[:length].encode("utf-8", "surrogatepass")) :][:3]
            if length < len(value) and (after[:1] == b'"' or after[:2] == b'\\"' or after == "…".encode()):
                found.add(value[:length])
    return found


def _has_lines(form: Form) -> bool:
    return b"\n" in form.data.strip(b"\n") and not form.is_base64


def _alike(text: str, value: str) -> int:
    return next((n for n, (x, y) in enumerate(zip(text, value, strict=False)) if x != y), min(len(text), len(value)))


def _clean_token(raw: bytes, finder: Finder) -> tuple[bytes, int]:
    if not may_hide(raw, finder) and not finder.holds(raw):
        return raw, 0
    text = decode(raw)
    if text is None:
        return raw, 0
    clean, count = clean_text(text.encode("utf-8", "surrogatepass"), finder)
    return (encode(clean.decode("utf-8", "surrogatepass")), count) if count else (raw, 0)


def _clean_numbers(between: bytes, finder: Finder) -> tuple[bytes, int]:
    """What stands between strings, those apart that are too short to hold a value."""
    if len(between) < SHORTEST or not finder.holds(between):
        return between, 0
    count = 0

    def zero(match: re.Match[bytes]) -> bytes:
        nonlocal count
        if not finder.holds(match[0]):
            return match[0]
        count += 1
        return b"0"

    return _NUMBER.sub(zero, between), count


def is_json(raw: bytes) -> bool:
    """Whether a line is a JSON document."""
    try:
        json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)
