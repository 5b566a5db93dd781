"""Redaction of what is about to be stored: secrets by the rules of their session, and purged values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sessgit.store import denylist
from sessgit.store.layout import StorePaths

Cleaner = Callable[[bytes], tuple[bytes, int]]
"""From bytes to those that are stored, and how many parts were replaced; the same object if none was."""


def line_cleaner(paths: StorePaths, rules: Mapping[str, int], protected: Collection[str]) -> Cleaner:
    """Return the cleaner of lines, and of files that may be JSON, in a session with these rules; values of `protected`
    keys stay."""
    return _cleaner(paths, rules, protected)


def text_cleaner(paths: StorePaths, rules: Mapping[str, int]) -> Cleaner:
    """Return the cleaner of plain texts in a session with these rules."""
    return _cleaner(paths, rules, None)


def _cleaner(paths: StorePaths, rules: Mapping[str, int], protected: Collection[str] | None) -> Cleaner:
    """Return a cleaner of lines with these protected keys, or of texts."""
    known = denylist.denied_values(paths)
    matcher = denylist.matcher(paths, known) if known else None
    is_redacted = bool(rules.get("redact"))

    # The rules are loaded for the first text, and the replacing modules for a match: the latter takes as long as
    # recording a turn.
    def clean(data: bytes) -> tuple[bytes, int]:
        count = 0
        if is_redacted:
            from sessgit.redact.engine import scan

            hits = scan(data)
            if hits is not None:
                from sessgit.redact import replacer

                if protected is None:
                    data, count = replacer.redact_text(data, hits)
                else:
                    data, count = replacer.redact_line(data, hits, protected)
        if matcher is not None:
            from sessgit.redact import value_match

            replace = value_match.clean_text if protected is None else value_match.clean_lines
            data, purged = replace(data, matcher)
            count += purged
        return data, count

    return clean
