"""JSON and times in the one form in which they are stored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any

_MAX_SECONDS = 253402300799
"""The last second of 9999, which is left out: what comes a moment later must be a time too."""
_CONTROL_CHARS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_COMPACT = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_LITERALS = {None: "null", True: "true", False: "false"}
_RFC3339 = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_UNPRINTABLE_CHARS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def dumps(value: Any) -> bytes:
    """Return the document as UTF-8 with sorted keys, two-space indent and a final newline.

    A lone surrogate, which UTF-8 cannot hold, is written as its JSON escape.
    """
    try:
        text = _dump_indented(value, "\n")
    except RecursionError:  # it is nested more deeply than functions may be
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, indent=2).encode() + b"\n"


def _dump_indented(value: Any, end: str) -> str:
    """Return what `json.dumps` gives with sorted keys and an indent: with one it is written in Python, and slow.
    `end` is a newline and the indent of the line on which the value begins."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is int:
        return int.__repr__(value)
    if value is None or kind is bool:
        return _LITERALS[value]
    if not isinstance(value, dict | list | tuple) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = end + "  "
    if not isinstance(value, dict):
        return f"[{inner}{f',{inner}'.join([_dump_indented(item, inner) for item in value])}{end}]"
    parts = [f"{encode_basestring(key)}: {_dump_indented(item, inner)}" for key, item in sorted(value.items())]
    return f"{{{inner}{f',{inner}'.join(parts)}{end}}}"


def compact(value: Any) -> bytes:
    """Return one line of JSON with sorted keys and no newline."""
    return _COMPACT.encode(value).encode()


def nearest_time(seconds: float) -> float:
    """Return the time in seconds since 1970, or the one next to it that is between 1970 and 9999."""
    return min(max(seconds, 0), _MAX_SECONDS - 1)


def rfc3339(seconds: float) -> str:
    """Return the time as RFC 3339 in UTC with milliseconds: `2026-03-01T10:00:00.000Z`; of a clock that is before
    1970 the first moment of that year."""
    return datetime.fromtimestamp(max(seconds, 0), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> str:
    """Return the RFC 3339 time as `rfc3339` writes it, or "" where the text is no time between 1970 and 9999."""
    time = seconds(text)
    if time is None or _RFC3339.fullmatch(text):  # most have that form
        return "" if time is None else text
    return rfc3339(time)


def seconds(text: str | None) -> float | None:
    """Return the RFC 3339 time as seconds since 1970, or None where the text is no time between 1970 and 9999."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        value = moment.timestamp()
    except (OverflowError, OSError):
        return None
    return value if 0 <= value < _MAX_SECONDS else None


def seconds_between(began: str, ended: str) -> float | None:
    """Return the seconds between two times in RFC 3339, or None if one is missing or they run backwards."""
    a, b = seconds(began), seconds(ended)
    return b - a if a is not None and b is not None and b >= a else None


def join_lines(lines: Iterable[bytes]) -> bytes:
    """Return the bytes of a file of these lines, each with its newline."""
    return b"".join(line + b"\n" for line in lines)


def one_line(text: str, width: int) -> str:
    """Return the first non-empty line without control characters, cut to `width` with an ellipsis."""
    if text.isascii() and text.isprintable():
        clean = text.strip()
        return clean if len(clean) <= width else clean[: width - 1].rstrip() + "…"
    for line in text.splitlines():
        clean = _CONTROL_CHARS.sub(" ", line).strip()
        if clean:
            return clean if len(clean) <= width else clean[: width - 1].rstrip() + "…"
    return ""


def printable(text: str) -> str:
    """Return the text with its control characters, newlines and tabs apart, made harmless for a terminal."""
    return _UNPRINTABLE_CHARS.sub("\ufffd", text)


def without_sequences(text: str) -> str:
    """Return the text without the sequences that set colours and steer a terminal (ECMA-48)."""
    return _ESCAPE_SEQUENCE.sub("", text) if "\x1b" in text else text


def is_printable(text: str) -> bool:
    """Return whether the text is one line without control characters, direction marks and lone surrogates."""
    return _CONTROL_CHARS.search(text) is None


def bounded(value: Any, depth: int = 100) -> Any:
    """Return the value as JSON that every reader takes: what is nested too deeply is an ellipsis, what is no number
    null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return "…"
    if isinstance(value, dict):
        return {key: bounded(inner, depth - 1) for key, inner in value.items()}
    return [bounded(inner, depth - 1) for inner in value]


def strings(value: object) -> Iterator[str]:
    """Yield all strings in a JSON value but the keys, in their order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pending += reversed(list(item.values()))
        elif isinstance(item, list):
            pending += reversed(item)
