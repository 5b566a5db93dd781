"""What must not be stored, out of lines and texts: secrets by the rules of their session, and what was purged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sessgit.redact.engine import scan
from sessgit.store.layout import StorePaths
from sessgit.store.secrets import denylist

if TYPE_CHECKING:
    from sessgit.redact.value_match import ValueMatcher

Cleaner = Callable[[bytes], tuple[bytes, int]]
"""From bytes to those that are stored, and how much was replaced in them; the same object where nothing was."""


def line_cleaner(beside: StorePaths, rules: Mapping[str, int], protected: Collection[str]) -> Cleaner:
    """What cleans a line, or a file that may be a JSON document, of a session with these rules; values of `protected`
    keys stay."""
    return _combine_cleaners(beside, bool(rules.get("redact")), partial(_redact_line, protected), _purge_line)


def text_cleaner(beside: StorePaths, rules: Mapping[str, int]) -> Cleaner:
    """What cleans a plain text of such a session."""
    return _combine_cleaners(beside, bool(rules.get("redact")), _redact_text, _purge_text)


def _combine_cleaners(
    beside: StorePaths,
    redacted: bool,
    by_rules: Cleaner,
    purged: Callable[[bytes, ValueMatcher], tuple[bytes, int]],
) -> Cleaner:
    known = denylist.denied_values(beside)
    matcher = denylist.matcher(beside, known) if known else None

    def clean(data: bytes) -> tuple[bytes, int]:
        data, found = by_rules(data) if redacted else (data, 0)
        if matcher is None:
            return data, found
        data, more = purged(data, matcher)
        return data, found + more

    return clean


# Loaded where something may be a secret, or was purged: what tells then takes as long to load as a turn to record.


def _redact_line(protected: Collection[str], raw: bytes) -> tuple[bytes, int]:
    hits = scan(raw)
    if hits is None:
        return raw, 0
    from sessgit.redact.replacer import redact_line

    return redact_line(raw, hits, protected)


def _redact_text(text: bytes) -> tuple[bytes, int]:
    hits = scan(text)
    if hits is None:
        return text, 0
    from sessgit.redact.replacer import redact_text

    return redact_text(text, hits)


def _purge_line(raw: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    from sessgit.redact.value_match import clean_lines

    return clean_lines(raw, matcher)


def _purge_text(text: bytes, matcher: ValueMatcher) -> tuple[bytes, int]:
    from sessgit.redact.value_match import clean_text

    return clean_text(text, matcher)
