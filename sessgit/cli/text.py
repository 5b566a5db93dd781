"""Words and numbers as a person reads them, and texts that fit their place on a terminal, with colours or without."""

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
new_tokens = humanize.new_tokens
money = humanize.format_money
size = humanize.format_size

_WIDE = ("W", "F")
_WORD = re.compile(r"\S+|\s+")
_COLOUR = re.compile(r"\033\[[0-9;]*m")
_PAINTED = re.compile(r"(\033\[[0-9;]*m)(.*)\033\[0m", re.DOTALL)
_DAY = 86_400
_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip


class Paint:
    """`paint("bold", text)`: the text in a style, or as it is without a style or where there are no colours."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        if not self._on or not style or not text.strip():
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"\033[{codes}m{text}\033[0m"


def without_colours(line: str) -> str:
    """Return the line without the colours of `Paint`."""
    return _COLOUR.sub("", line)


def clean(text: str, limit: int = 500) -> str:
    """Return the text's first line, safe to be shown on a terminal."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    return canonical.one_line(text, limit)


def label(name: str, limit: int = 500) -> str:
    """Return a label as it is shown: `#review`."""
    return f"#{clean(name, limit)}"


def width(text: str) -> int:
    """Return how many columns a text takes on a terminal; colours take none."""
    if "\033" in text:
        text = without_colours(text)
    # An ellipsis takes one column, and most texts that are not ASCII are only so by being cut.
    return len(text) if text.isascii() or text.replace("…", "").isascii() else sum(map(_columns, text))


def fit(text: str, columns: int) -> str:
    """Return the text in exactly so many columns: filled with spaces, or cut with an ellipsis."""
    text = cut(text, columns)
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """Return the text in at most so many columns; it has one style or none."""
    needed = width(text)
    if needed <= columns:
        return text
    if "\033" in text and (painted := _PAINTED.fullmatch(text)):
        return f"{painted[1]}{cut(painted[2], columns)}\033[0m"
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


def cut_start(text: str, columns: int) -> str:
    """Return the text in at most so many columns; a long one loses its start, because paths differ at the end."""
    if width(text) <= columns:
        return text
    while width(text) > columns - 1:
        text = text[max(1, (width(text) - columns) // 2) :]
    return f"…{text}"


def fold(parts: Iterable[str], columns: int, between: str, indent: str = "") -> list[str]:
    """Return the parts joined by `between`, in as many lines as they need; further ones begin with `indent`."""
    lines: list[str] = []
    for part in filter(None, parts):
        joined = f"{lines[-1]}{between}{part}" if lines else part
        if not lines or width(joined) > columns:
            lines.append(cut(f"{indent if lines else ''}{part}", columns))
        else:
            lines[-1] = joined
    return lines


def hanging_indent(head: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines behind a head, the further ones indented by its width."""
    for line in lines:
        yield head + line
        head = " " * width(head)


def some(names: Sequence[str], most: int) -> list[str]:
    """Return the first names, and how many more there are."""
    more = len(names) - most
    return [*names[:most], f"and {more:,} more"] if more > 0 else [*names]


def numbers(noun: str, numbers: Sequence[object], most: int) -> str:
    """Return `turn 3`, or `turns 3, 4 and 12 more`."""
    more = f" and {len(numbers) - most:,} more" if len(numbers) > most else ""
    return f"{noun}{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers[:most]))}{more}"


def room(start: str, end: str, columns: int) -> int:
    """Return how many columns `spread` has for the middle."""
    return max(0, columns - width(start) - (width(end) + 2 if end else 0))


def spread(start: str, middle: str, end: str, columns: int) -> str:
    """Return a line of so many columns with `end` at its right: `middle` is filled or cut to what the others leave."""
    middle = fit(middle, room(start, end, columns))
    return f"{start}{middle}  {end}" if end else start + middle


def ago(moment: float | None, now: float) -> str:
    """Return `2h ago`, then the day of the week, then the date; ``""`` if the time is unknown."""
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
    """Return the time in a format of `time.strftime`, or ``""`` for 0, which an unknown time has in a commit."""
    return time.strftime(clock, time.localtime(moment)) if moment else ""


def clock(now: float, moments: Iterable[float]) -> str:
    """Return a format of `time.strftime` that tells these moments apart; just the hour if all are of today."""
    times = sorted(filter(None, moments))
    today, days = time.localtime(now)[:3], {time.localtime(moment)[:3] for moment in (*times[:1], *times[-1:])}
    if days <= {today}:
        return "%H:%M"
    return "%d %b %H:%M" if all(day[0] == today[0] for day in days) else "%Y-%m-%d"


def plain(words: str) -> list[str]:
    """Return the lines of a text without control characters, colours and tabs."""
    words = canonical.without_sequences(words).replace("\r\n", "\n").replace("\r", "\n")
    return canonical.printable(words).expandtabs(4).rstrip("\n").split("\n")


def wrap(line: str, columns: int) -> Iterator[str]:
    """Yield the line wrapped between words, or within words that are too long; further lines keep its indent."""
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


def wrapped(words: str, columns: int) -> list[str]:
    """Return the lines of a text, wrapped, without empty ones at its ends."""
    return [part for line in plain(words.strip("\r\n")) for part in wrap(line, columns)]


def _broken(word: str, columns: int) -> list[str]:
    """Return a word in parts that fit, each of at least one character."""
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
    """Return `Edit ×3 Bash ×2`, as many tools as fit, with the last part of long names."""
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
