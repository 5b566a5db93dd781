"""The strings of raw JSON lines: found without parsing the line, and long ones kept in files of their own.

A change of a line must leave every other byte as the client wrote it, so positions are needed and not values. The scan
is a handful of whole-line byte operations: escaped quotes are masked by bytes of the same length, after which every
quote that is left begins or ends a string. There is no backtracking, no recursion.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from typing import NamedTuple

_BRACKETS = re.compile(rb"[\[\]{}]")
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_NEWLINE = rb"\n"
"""Its escape."""
_ESCAPES = ((b"\\", rb"\\"), (b'"', rb"\""), (b"\n", _NEWLINE), (b"\t", rb"\t"), (b"\r", rb"\r"))
_CONTROL_BYTES = bytes(sorted(set(range(0x20)) - set(b"\n\t\r")))
"""The other characters that a string cannot have as they are."""
_SHORT_ESCAPES = {b"\b": rb"\b", b"\f": rb"\f"}
_ALL_ESCAPES = (*_ESCAPES, *((bytes([c]), _SHORT_ESCAPES.get(bytes([c]), b"\\u%04x" % c)) for c in _CONTROL_BYTES))
_LEVEL_GAPS = frozenset((b",", b":", b", ", b": "))


class Token(NamedTuple):
    """A string of a line: `raw[start:end]`, quotes included, and the decoded key nearest above it.

    In an array the key is the array's, at the top level it is "". A token that is itself an object key has
    `is_key` and its own text as `key`.
    """

    start: int
    end: int
    key: str
    is_key: bool


def string_tokens(raw: bytes, *, min_length: int = 0) -> Iterator[Token]:
    """Yield every string of a valid JSON line in order, keys included, without those under `min_length` raw bytes.

    Linear in the line. On a line that is not valid JSON the tokens mean nothing, but nothing is raised.
    """
    if len(raw) < max(min_length, 2):
        return
    # A run of backslashes always begins with the start of an escape, so pairs may be masked from the left.
    pieces = raw.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')
    shortest = min_length - 2
    if shortest > 0 and max(map(len, pieces)) < shortest:
        return
    key = (0, 1)  # offsets of the nearest key: most keys are never asked for, so none is decoded early
    above: list[tuple[int, int]] = []
    position = 0
    for index in range(1, len(pieces) - 1, 2):
        gap = pieces[index - 1]
        start = position + len(gap)
        position = end = start + len(pieces[index]) + 2
        if gap not in _LEVEL_GAPS:
            key = _enclosing_key(gap, key, above)
        is_key = pieces[index + 1].lstrip().startswith(b":")
        if is_key:
            key = (start, end)
        if end - start >= min_length:
            yield Token(start, end, _key_text(raw[key[0] + 1 : key[1] - 1]), is_key)


def decode_string(raw_token: bytes) -> str | None:
    """Return the text of a string token as `json.loads` reads it (lone surrogates stay); None if it is not one."""
    if len(raw_token) < 2 or raw_token[:1] != b'"' or raw_token[-1:] != b'"':
        return None
    try:
        text = json.loads(raw_token.decode("utf-8"))
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def encode_string(text: str) -> bytes:
    r"""The token JavaScript's `JSON.stringify` writes for a text: raw UTF-8, lone surrogates as `\udxxx`."""
    try:
        return b'"%b"' % escape_text(text.encode())
    except UnicodeEncodeError:
        # Two surrogates that form a pair are one character to JavaScript, and are written as such.
        paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return b'"%b"' % _SURROGATE.sub(_escape_surrogate, escape_text(paired.encode("utf-8", "surrogatepass")))


def escape_text(text: bytes, but: bytes = b"") -> bytes:
    """Return the same of a text in UTF-8 and without the quotes; one character may be left as it is. `json` looks at
    each: to replace one after the other takes a quarter of its time."""
    for character, escape in _ESCAPES if len(text.translate(None, _CONTROL_BYTES)) == len(text) else _ALL_ESCAPES:
        if character != but:
            text = text.replace(character, escape)
    return text


def _escape_surrogate(surrogate: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(surrogate[0].decode("utf-8", "surrogatepass"))


def _key_text(body: bytes) -> str:
    """Return the text of a key, given what is between its quotes; few keys have escapes, many are asked for."""
    if b"\\" in body:
        return decode_string(b'"' + body + b'"') or ""
    return body.decode("utf-8", "replace")


def _enclosing_key(gap: bytes, key: tuple[int, int], above: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the nearest key after the brackets of a gap; `above` holds those of the enclosing levels."""
    for bracket in _BRACKETS.findall(gap):
        if bracket in b"[{":
            above.append(key)
        elif above:
            key = above.pop()
    return key


# Long strings, cut out of the lines of a turn into files of their own and filled in again
#
# A JSON string token of `LIMIT` raw bytes or more becomes a file; `{"$text":"<name>"}` stands in its place. git sorts
# delta candidates by the end of the name, so versions of one file meet: that makes a packed store small, and `git show`
# shows what a tool said as readable text. A text whose lines are numbered, as the agent is shown a file, is stored
# without the numbers, as the file is: its name tells them. The format is in `docs/format.md`, "Texts".

RULES_VERSION = 2
LIMIT = 4096
DIGITS = 8
"""So long is what the name of a text begins with."""
LONGEST_LINE = 64 << 20
"""A longer line is kept as it is: reading it as JSON would cost several times its size in memory."""

_TEXT_MARK = b'{"$text":"'
_MARKER_PATTERN = re.compile(rb'\{"\$text":"([A-Za-z0-9._-]{1,96})"\}')
_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9._-]")
_NUMBERED_LINE = re.compile(r" *([0-9]{1,6})(→|\t)")
_NUMBERS_NAME = re.compile(r"[0-9a-f]{8}\.([wn])([at])([0-9]{1,6})\.([0-9]{1,6})-")
_LEAST_LINES, _MOST_LINES = 3, 1_000_000
_BLOCK_LINES = 250
_WIDTHS = {"w": 6, "n": 0}
_ARROWS = {"a": "→", "t": "\t"}

Label = Callable[[int, str], tuple[str, str]]
"""From a line's index and a JSON key to the tool (or line type) and the path of the file, or ``""``."""


def cut_long_strings(
    lines: Sequence[bytes], label: Label, version: int = RULES_VERSION, valid: Container[int] = ()
) -> tuple[list[bytes], dict[str, bytes]]:
    """Return the lines with their long strings cut out, and the texts by name; by the rules 1 numbers stay in a
    text.

    `valid` has the indices of lines that are known to be JSON; others are looked at.

    Guarantees `fill(*cut(lines, label)) == lines`: a string is cut out only where what is stored of it gives the very
    same token, and no line that has a marker already is cut, nor any other line with it.
    """
    if not any(len(line) >= LIMIT for line in lines) or any(_TEXT_MARK in line for line in lines):
        return list(lines), {}
    texts: dict[str, bytes] = {}
    stored = [
        _cut_line(line, partial(label, index), texts, version, is_json=index in valid)
        for index, line in enumerate(lines)
    ]
    return stored, texts


def fill_long_strings(lines: Sequence[bytes], texts: Mapping[str, bytes]) -> list[bytes]:
    """Return the lines with every marker whose text is there replaced by it."""
    # Most lines are without that one character, which is found five times as fast as what a marker begins with.
    return [_fill_line(line, texts) if b"$" in line else line for line in lines]


def full_text(name: str, stored: bytes) -> bytes:
    """Return the text that a file of this name stands for: with the numbers of its lines, where the name tells them."""
    return _add_line_numbers(name, stored, b"\n")


def _fill_line(line: bytes, texts: Mapping[str, bytes]) -> bytes:
    known: dict[str, bytes] = {}  # a line often says a thing twice
    pieces, end = list[bytes](), 0
    for marker in _MARKER_PATTERN.finditer(line):
        name = marker[1].decode()
        if name in texts:
            known[name] = known.get(name) or _escaped_full_text(name, texts[name])
            pieces += line[end : marker.start()], b'"', known[name], b'"'
            end = marker.end()
    return b"".join([*pieces, line[end:]])


def _escaped_full_text(name: str, stored: bytes) -> bytes:
    """Return the text that a file of this name stands for as it is in JSON: escaped first, since that is less."""
    text = _add_line_numbers(name, escape_text(stored, but=b"\n"), _NEWLINE)
    return text.replace(b"\n", _NEWLINE)


def _add_line_numbers(name: str, text: bytes, newline: bytes) -> bytes:
    """Return the text with the numbers that its name tells, `newline` between these lines; a newline is one in the
    rest."""
    match = _NUMBERS_NAME.match(name)
    if match is None:
        return text
    first, count = int(match[3]), int(match[4])
    lines = text.split(b"\n", count)
    rest = lines[count:]
    del lines[count:]
    pieces = [b""] * (2 * len(lines))
    pieces[::2] = _line_prefixes(match[1], match[2], newline, range(first, first + len(lines)))
    pieces[1::2] = lines
    return b"".join([*pieces, *(newline + each for each in rest)]).removeprefix(newline)


def _line_prefixes(width: str, arrow: str, newline: bytes, numbers: range) -> list[bytes]:
    """Return what comes before the lines of these numbers, the newline before them included."""
    blocks = range(numbers.start // _BLOCK_LINES, numbers.stop // _BLOCK_LINES + 1)
    known = chain.from_iterable(_prefix_block(width, arrow, newline, block) for block in blocks)
    return list(islice(known, numbers.start % _BLOCK_LINES, numbers.start % _BLOCK_LINES + len(numbers)))


@lru_cache(64)
def _prefix_block(width: str, arrow: str, newline: bytes, block: int) -> list[bytes]:
    """Return those of a block of numbers: most files have but the first."""
    prefix = f"%{_WIDTHS[width] or ''}d{_ARROWS[arrow]}".encode()
    if newline == _NEWLINE:
        prefix = escape_text(prefix)
    return list(map((newline + prefix).__mod__, range(block * _BLOCK_LINES, (block + 1) * _BLOCK_LINES)))


def _remove_line_numbers(text: str) -> tuple[str, str]:
    """Return a text without the numbers of its lines, and what its name then tells of them; as it is, and nothing,
    where its lines have none. Lines without numbers may follow."""
    begins = _NUMBERED_LINE.match(text)
    if begins is None:
        return text, ""
    lines, first, arrow = text.split("\n"), int(begins[1]), begins[2]
    width = begins.end() - 1 if begins[0].startswith(" ") else 0
    prefixes = list(map(f"%{width or ''}d{arrow}".__mod__, range(first, first + len(lines))))
    count = [*map(str.startswith, lines, prefixes), False].index(False)
    plain, last = map(str.removeprefix, lines[:count], prefixes), first + count
    if count < _LEAST_LINES or width not in _WIDTHS.values() or max(last, count + 1) > _MOST_LINES:
        return text, ""
    kind = "w" if width else "n"
    numbers = f".{kind}{'a' if arrow == '→' else 't'}{first}.{count}"
    return "\n".join([*plain, *lines[count:]]), numbers


def _cut_line(
    line: bytes, label: Callable[[str], tuple[str, str]], texts: dict[str, bytes], version: int, *, is_json: bool
) -> bytes:
    if not LIMIT <= len(line) <= LONGEST_LINE:
        return line
    tokens = [token for token in string_tokens(line, min_length=LIMIT) if not token.is_key]
    if not tokens or not (is_json or _is_json(line)):
        return line
    parts: list[bytes] = []
    copied = 0
    for start, end, key, _ in tokens:
        cuttable = _text_to_cut(line[start:end])
        if cuttable is None:
            continue
        stored, numbers = _stored_text(cuttable) if version > 1 else (cuttable, "")
        name = _text_name(stored, numbers, *label(key), key)
        if texts.setdefault(name, stored) != stored:
            continue
        parts += line[copied:start], b'{"$text":"', name.encode(), b'"}'
        copied = end
    parts.append(line[copied:])
    return b"".join(parts)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _text_to_cut(token: bytes) -> bytes | None:
    """Return the token's text in UTF-8, or None where encoding that text would not give the very same token."""
    text = decode_string(token)
    # Each other escape is the only one for its character, and what may stand without one always does.
    may_differ = b"\\u" in token or b"\\/" in token
    if text is None or (may_differ and encode_string(text) != token):
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def text_digest(text: bytes) -> str:
    """Return what the name of a text begins with."""
    return hashlib.sha1(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()[:DIGITS]


def _stored_text(text: bytes) -> tuple[bytes, str]:
    """Return what of a text is stored, and what its name tells of the numbers of its lines."""
    if not text.lstrip(b" ")[:1].isdigit():
        return text, ""
    plain, numbers = _remove_line_numbers(text.decode())
    return plain.encode(), numbers


def _text_name(text: bytes, numbers: str, tool: str, path: str, key: str) -> str:
    base = re.split(r"[/\\]", path)[-1][-40:] or key[-40:]
    return "-".join((text_digest(text) + numbers, _UNSAFE_CHARS.sub("_", tool[:24]), _UNSAFE_CHARS.sub("_", base)))
