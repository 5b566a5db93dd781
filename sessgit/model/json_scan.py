"""Finds the strings of one raw JSON line without parsing the line into objects.

A change of a line must leave every other byte as the client wrote it, so positions are needed and not
values. The scan is a handful of whole-line byte operations: escaped quotes are masked by bytes of the same
length, after which every quote that is left begins or ends a string. There is no backtracking, no recursion.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_BRACKETS = re.compile(rb"[\[\]{}]")
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
NEWLINE = rb"\n"
"""Its escape."""
_ESCAPES = ((b"\\", rb"\\"), (b'"', rb"\""), (b"\n", NEWLINE), (b"\t", rb"\t"), (b"\r", rb"\r"))
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


def string_values(raw: bytes, *, min_length: int = 0) -> Iterator[Token]:
    """Yield the strings of a valid JSON line that are values and not object keys, in order; see `string_tokens`."""
    return (token for token in string_tokens(raw, min_length=min_length) if not token.is_key)


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
