"""What must not be stored, out of lines and texts: secrets by the rules of their session, and what was purged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sessgit.model.secrets.cues import has_cue
from sessgit.store.layout import Beside
from sessgit.store.secrets import forbidden

if TYPE_CHECKING:
    from sessgit.model.secrets.needles import Finder

Clean = Callable[[bytes], tuple[bytes, int]]
"""From bytes to those that are stored, and how much was replaced in them; the same object where nothing was."""


def line(beside: Beside, rules: Mapping[str, int]) -> Clean:
    """What cleans a line, or a file that may be a JSON document, of a session with these rules."""
    return _both(beside, rules.get("redact", 0), _redact_line, _purge_line)


def text(beside: Beside, rules: Mapping[str, int]) -> Clean:
    """What cleans a plain text of such a session."""
    return _both(beside, rules.get("redact", 0), _redact_text, _purge_text)


def _both(
    beside: Beside,
    version: int,
    by_rules: Callable[[bytes, int], tuple[bytes, int]],
    purged: Callable[[bytes, Finder], tuple[bytes, int]],
) -> Clean:
    known = forbidden.values(beside)
    finder = forbidden.finder(beside, known) if known else None

    def clean(data: bytes) -> tuple[bytes, int]:
        data, found = by_rules(data, version) if version and has_cue(data, version) else (data, 0)
        if finder is None:
            return data, found
        data, more = purged(data, finder)
        return data, found + more

    return clean


# Loaded where something may be a secret, or was purged: what tells then takes as long to load as a turn to record.


def _redact_line(raw: bytes, version: int) -> tuple[bytes, int]:
    from sessgit.model.secrets.redact import redact_line

    return redact_line(raw, version)


def _redact_text(text: bytes, version: int) -> tuple[bytes, int]:
    from sessgit.model.secrets.redact import redact_text

    return redact_text(text, version)


def _purge_line(raw: bytes, finder: Finder) -> tuple[bytes, int]:
    from sessgit.model.secrets.needles import clean_line

    return clean_line(raw, finder)


def _purge_text(text: bytes, finder: Finder) -> tuple[bytes, int]:
    from sessgit.model.secrets.needles import clean_text

    return clean_text(text, finder)
