"""Words and numbers as a person reads them, and texts that fit their place on a terminal."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from sessgit.model import canonical, humanize

# Exports say numbers in the same words.
counted = humanize.format_count
times = humanize.format_times
tokens = humanize.format_tokens
said_and_heard = humanize.new_tokens
money = humanize.format_money
size = humanize.format_size

_WIDE = ("W", "F")
_WORD = re.compile(r"\S+|\s+")
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
    if needed == len(text) and width(text[: columns - 1]) == columns - 1:
        return text[: columns - 1].rstrip() + "…"
    used, out = 0, []
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        out.append(char)
    return "".join(out).rstrip() + "…"


def end(text: str, columns: int) -> str:
    """The text in at most so many columns: of one that is too long the end."""
    if width(text) <= columns:
        return text
    while width(text) > columns - 1:
        text = text[max(1, (width(text) - columns) // 2) :]
    return f"…{text}"


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


def ago(moment: float | None, now: float) -> str:
    """`2h ago`; further back the day of the week, then the date, as of one that a wrong clock set days ahead; nothing
    of an unknown time, which a commit dates 1970."""
    if not moment:
        return ""
    seconds = now - moment
    if -_DAY < seconds < 60:
        return "just now"
    if seconds < 0:
        return _date(moment, now)
    if seconds < 3600:
        return f"{seconds // 60:.0f}m ago"
    if seconds < _DAY:
        return f"{seconds // 3600:.0f}h ago"
    return time.strftime("%a", time.localtime(moment)) if seconds < 6 * _DAY else _date(moment, now)


def _date(moment: float, now: float) -> str:
    there = time.localtime(moment)
    return time.strftime("%d %b" if there.tm_year == time.localtime(now).tm_year else "%b %Y", there).lstrip("0")


def at(clock: str, moment: float) -> str:
    """The time as the format for `time.strftime` tells it; nothing of an unknown one, which a commit dates 1970."""
    return time.strftime(clock, time.localtime(moment)) if moment else ""


def clock(now: float, moments: Iterable[float]) -> str:
    """The format for `time.strftime` that tells these moments apart: the hour if all that are known are of today."""
    times = sorted(filter(None, moments))
    today, days = time.localtime(now)[:3], {time.localtime(moment)[:3] for moment in (*times[:1], *times[-1:])}
    if days <= {today}:
        return "%H:%M"
    return "%d %b %H:%M" if all(day[0] == today[0] for day in days) else "%Y-%m-%d"


def plain(said: str) -> list[str]:
    """The lines of a text as a terminal can show them: no control characters, no colours of their own, no tabs."""
    said = canonical.without_sequences(said).replace("\r\n", "\n").replace("\r", "\n")
    return canonical.printable(said).expandtabs(4).rstrip("\n").split("\n")


def wrap(line: str, columns: int) -> Iterator[str]:
    """The line in as many as it needs, broken between words where it can be; further ones keep its indent."""
    if width(line) <= columns:
        yield line
        return
    indent = line[: min(len(line) - len(line.lstrip()), columns // 2)]
    now, used, empty = indent, width(indent), True
    for word in _WORD.findall(line[len(indent) :]):
        wide = width(word)
        if used + wide > columns and not empty:
            yield now.rstrip()
            now, used, empty = indent, width(indent), True
            if word.isspace():
                continue
        *whole, rest = _broken(word, columns - used) if used + wide > columns else [word]
        yield from (indent + part for part in whole)
        now, used, empty = now + rest, used + width(rest), empty and not rest.strip()
    if not empty:
        yield now.rstrip()


def wrapped(said: str, columns: int) -> list[str]:
    """A whole text in lines of at most so many columns, without empty ones at its ends."""
    return [part for line in plain(said.strip("\r\n")) for part in wrap(line, columns)]


def _broken(word: str, columns: int) -> list[str]:
    """A word in parts that fit, each of a character at least."""
    if word.isascii():
        return [word[place : place + columns] for place in range(0, len(word), columns)]
    parts, start, used = list[str](), 0, 0
    for place, char in enumerate(word):
        wide = width(char)
        if used + wide > columns and place > start:
            parts.append(word[start:place])
            start, used = place, 0
        used += wide
    return [*parts, word[start:]]


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
