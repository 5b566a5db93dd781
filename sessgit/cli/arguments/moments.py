"""Moments as a person names them: `2d`, `yesterday`, `2026-03-01`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sessgit.errors import UsageError

_AGO = re.compile(r"([0-9]{1,9})[ .]*(m|h|d|w|min|minutes?|hours?|days?|weeks?)([ .]+ago)?")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_HINT = "Use 2d, 3h, 1w, today, yesterday, 2026-03-01 or 2026-03-01T10:00."


def since(text: str, now: float) -> float:
    """The moment that a text names, in seconds since 1970; days begin at midnight of the local time zone.

    `30m`, `3h`, `2d`, `1w` (also `2 days ago`) count back from `now`; `today` and `yesterday` are midnights, and so is
    a date alone; a time without a zone is local. Raises UsageError where the text names no moment.
    """
    word = " ".join(text.lower().split())
    ago = _AGO.fullmatch(word)
    try:
        if ago:
            return max(0.0, now - int(ago[1]) * _UNITS[ago[2][0]])
        if word in ("today", "yesterday"):
            day = datetime.fromtimestamp(now) - timedelta(days=word == "yesterday")
            return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        return max(0.0, datetime.fromisoformat(text.strip()).timestamp())
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"“{text}” is not a time", _HINT) from None
