"""Words and numbers as a person reads them, and texts that fit their place on a terminal."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from sessgit.model import canonical
from sessgit.model.turn import Tokens

_WIDE = ("W", "F")
_DAY = 86_400


def clean(text: str, limit: int = 500) -> str:
    """The text's first line, safe to be shown on a terminal."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    return canonical.one_line(text, limit)


def width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def fit(text: str, columns: int) -> str:
    """The text in exactly so many columns: filled with spaces, or cut with an ellipsis."""
    missing = columns - width(text)
    if missing < 0:
        text = cut(text, columns)
        missing = columns - width(text)
    return text + " " * missing


def cut(text: str, columns: int) -> str:
    """The text in at most so many columns."""
    needed = width(text)
    if needed <= columns:
        return text
    if columns < 2:
        return "…"[:columns]
    if needed == len(text):
        return text[: columns - 1].rstrip() + "…"
    used, out = 0, []
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        out.append(char)
    return "".join(out).rstrip() + "…"


def fold(parts: Sequence[str], columns: int, between: str, indent: str = "") -> list[str]:
    """The parts joined by `between`, in as many lines as they need; further ones begin with `indent`."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}{between}{part}" if lines else part
        if not lines or width(joined) > columns:
            lines.append(cut(f"{indent if lines else ''}{part}", columns))
        else:
            lines[-1] = joined
    return lines


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 turn`, `2 turns`, `12,345 turns`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def tokens(number: int) -> str:
    """`913`, `15k`, `1.2M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            value = number / size
            return f"{value:.1f}{unit}" if value < 9.95 and unit == "M" else f"{value:.0f}{unit}"
    return str(number)


def said_and_heard(counts: Tokens) -> int:
    """The tokens that were new: what the cache gave again is the same words once more at each call."""
    return counts.input + counts.output + counts.cache_write


def money(dollars: float | None) -> str:
    """`$1.84`; nothing where a price is not known."""
    return "" if dollars is None else f"${dollars:,.2f}"


def size(number: int) -> str:
    """`512 B`, `9.1 MB`."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def ago(moment: float | None, now: float) -> str:
    """`2h ago`; further back the day of the week, then the date."""
    if moment is None:
        return ""
    seconds = now - moment
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60:.0f}m ago"
    if seconds < _DAY:
        return f"{seconds // 3600:.0f}h ago"
    there = time.localtime(moment)
    if seconds < 6 * _DAY:
        return time.strftime("%a", there)
    return time.strftime("%d %b" if there.tm_year == time.localtime(now).tm_year else "%b %Y", there).lstrip("0")


def clock(now: float, moments: Iterable[float]) -> str:
    """The format for `time.strftime` that tells these moments apart: the hour if all are of today."""
    times = sorted(moments)
    today, days = time.localtime(now)[:3], {time.localtime(moment)[:3] for moment in (*times[:1], *times[-1:])}
    if days <= {today}:
        return "%H:%M"
    return "%d %b %H:%M" if all(day[0] == today[0] for day in days) else "%Y-%m-%d"


def tools(calls: Mapping[str, int], columns: int) -> str:
    """`Edit ×3 Bash ×2`, as many as fit; of a tool with a long path of names the last one."""
    shown = ""
    for name, number in calls.items():
        short = clean(name.rpartition("__")[2] or name, 40)
        part = f"{short} ×{number}" if number > 1 else short
        joined = f"{shown} {part}" if shown else part
        if width(joined) > columns:
            return f"{shown} …" if shown and width(shown) + 2 <= columns else cut(joined, columns)
        shown = joined
    return shown


@cache
def _columns(char: str) -> int:
    if unicodedata.combining(char) or char in "\u200b\u200d\ufe0f\ufe0e":
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
