"""Texts with the escapes of JSON strings decoded, level by level."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

from sessgit.redact.views import Part, View

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
