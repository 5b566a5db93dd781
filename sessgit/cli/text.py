"""What pages are made of: words, numbers and times as a person reads them, texts that fit their place on a terminal,
and blocks of them: headings, labelled fields, paragraphs, tables and rails."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.history.turn_log import SideBranch
    from sessgit.model.conversation.session import Session
    from sessgit.store.index import Branch, ForkPlace

Row = Sequence[str]

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
_LONGEST = 2000
"""Characters of a line that are looked at before it is cut."""


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


def listed(words: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


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


def ago(cli: Invocation, moment: str | float | None) -> str:
    """Return `2h ago`, then the day of the week, then the date; ``""`` if the time is unknown.

    The time is one of RFC 3339, or in seconds since 1970.
    """
    moment, now = canonical.seconds(moment) if isinstance(moment, str) else moment, cli.now
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


class Clock:
    """Writes times in the shortest form that tells some of them apart: just the hour if all are of today."""

    def __init__(self, now: float, moments: Iterable[float | None]) -> None:
        times = sorted(filter(None, moments))
        today, days = time.localtime(now)[:3], {time.localtime(moment)[:3] for moment in (*times[:1], *times[-1:])}
        if days <= {today}:
            self._form = "%H:%M"
        else:
            self._form = "%d %b %H:%M" if all(day[0] == today[0] for day in days) else "%Y-%m-%d"
        self.width = len(self(now))

    def __call__(self, moment: float | None) -> str:
        """Return the time, or ``""`` for None and for 0, which an unknown time has in a commit."""
        return time.strftime(self._form, time.localtime(moment)) if moment else ""


def time_of_day(now: float, moment: float | None) -> str:
    """Return a time, with the day if it is not today, or ``""`` if it is unknown."""
    return Clock(now, [moment])(moment)


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


def duration(seconds: float | None) -> str:
    """`0.4s`, `12s`, `3m 20s`, `2h 5m`; nothing if it is not known."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest}s"
    return f"{minutes}m {rest}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60}m"


def path(cli: Invocation, project: str, name: str, columns: int) -> str:
    """Return a file's path below the project, or with `~` for the home; a long one is cut at its start."""
    below = name.removeprefix(f"{project.rstrip('/')}/") if project.rstrip("/") else name
    return cut_start(clean(cli.short(below), _LONGEST), columns)


def subject(cli: Invocation, project: str, about: str, file: str, columns: int) -> str:
    """Return what a call is about: the path of its file, or its most telling argument."""
    about = about[:_LONGEST]
    return path(cli, project, file, columns) if file and about == file else cut(clean(about), columns)


@cache
def _columns(char: str) -> int:
    if unicodedata.combining(char) or char in "\u200b\u200d\ufe0f\ufe0e":
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def title(state: Session, limit: int = 200) -> str:
    """Return what a conversation is called, on one line."""
    return clean(state.display_title, limit)


def heading(cli: Invocation, address: str, title: str, *facts: str) -> Iterator[str]:
    """Yield an address with a title or ``""``, then further facts, folded into as many lines as they need."""
    called = f"{address}  {title}" if title else address
    indent = " " * min(width(address) + 2, cli.width // 3)
    lines = fold([called, *facts], cli.width, "  ·  ", indent)
    yield cli.paint("yellow", address) + cli.paint("bold", lines[0][len(address) :])
    yield from lines[1:]


def session_heading(cli: Invocation, branch: Branch, *facts: str) -> Iterator[str]:
    """Yield the heading of a page about a conversation: its id, its title, and facts."""
    return heading(cli, cli.ident(branch.name), title(branch.state), *facts)


def side_branch_phrase(side: SideBranch, where: str = "") -> str:
    """`3 turns left behind by a rewind, 2 of them merged`; `where` follows what kind of turns they are."""
    kind = "left behind by a rewind" if side.rewound else "in another version"
    phrase = f"{counted(side.count, 'turn')} {kind}{where}"
    if not side.merged:
        return phrase
    return f"{phrase}, {side.merged} of them merged" if side.open else f"{phrase}, merged"


def fork_place(cli: Invocation, place: ForkPlace) -> str:
    """Return the address at which a fork left another conversation."""
    return f"{clean(cli.ident(place.branch), 80)}@{clean(place.at)}"


def band(cli: Invocation, words: str) -> str:
    """Return a line across the page with words in it."""
    words = f"═══ {cut(words, cli.width - 8)} "
    return cli.paint("dim", words + "═" * (cli.width - width(words)))


def paragraph(cli: Invocation, words: str, style: str = "", indent: int = 0) -> Iterator[str]:
    """Yield a text wrapped at the terminal's width."""
    for line in wrapped(words, cli.width - indent):
        yield " " * indent + cli.paint(style, line)


def field(
    cli: Invocation, label: str, parts: Iterable[str], *, least: int = 0, style: str = "", between: str = "  ·  "
) -> Iterator[str]:
    """Yield a label in at least so many columns, and behind it the parts that are not empty; long ones are wrapped."""
    label = cli.paint(style, label.ljust(least))
    columns = cli.width - width(label)
    lines: list[str] = []
    for part in filter(None, parts):
        joined = f"{lines[-1]}{between}{part}" if lines else part
        if lines and width(joined) <= columns:
            lines[-1] = joined
        else:
            lines += wrapped(part, columns)
    return hanging_indent(label, lines)


@frozen
class Column:
    """How a column of a table looks: its style, whether texts are right-aligned, and whether long ones are paths, which
    are cut at their start.

    If a line would be too long, columns with `least` are cut to no fewer columns than that, and then the ones that are
    `optional` are left out, the last one first.
    """

    style: str = ""
    right: bool = False
    is_path: bool = False
    least: int | None = None
    optional: bool = False

    def cell(self, cli: Invocation, words: str, columns: int) -> str:
        """Return the text in exactly so many columns."""
        words = (cut_start if self.is_path else cut)(words, columns)
        filling, painted = " " * (columns - width(words)), cli.paint(self.style, words)
        return filling + painted if self.right else painted + filling


def table(cli: Invocation, columns: Sequence[Column], rows: Sequence[Row], indent: int = 0) -> Iterator[str]:
    """Yield a line for each row, with columns as wide as their widest texts; those that are empty are left out."""
    needed = [max((width(row[place]) for row in rows), default=0) for place in range(len(columns))]
    widths = fit_widths(columns, needed, cli.width - indent)
    for row in rows:
        cells = zip(columns, row, widths, strict=True)
        shown = (column.cell(cli, words, room) for column, words, room in cells if room)
        yield " " * indent + "  ".join(shown)


def fit_widths(columns: Sequence[Column], needed: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that fit into the room with two spaces between them; 0 for those left out.

    The widest columns are cut first. If nothing else helps, they are cut to one column.
    """
    widths, least = list(needed), list(needed)
    flexible = [place for place, column in enumerate(columns) if column.least is not None and needed[place]]
    for place in flexible:
        least[place] = min(columns[place].least or 1, needed[place])
    optional = [place for place, column in enumerate(columns) if column.optional]
    while optional and _line_width(least) > room:
        place = optional.pop()
        widths[place] = least[place] = 0
    if _line_width(least) > room:
        least = [min(width, 1) for width in least]
    for _ in range(_line_width(widths) - room):
        if wide := [place for place in flexible if widths[place] > least[place]]:
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _line_width(widths: Sequence[int]) -> int:
    return sum(width + 2 for width in widths if width) - 2


_MOST_RAILS = 8
"""So many rails at once leave room for words at 60 columns; edges beyond them are named, not drawn."""


def draw_turns(parents: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield rails and the key of the turn on them, or ``""`` where rails only meet.

    `parents` maps keys, the newest first, to the key of the turn before, or to ``""``.
    """
    rails: list[str] = []
    """For each rail the key of the turn that it leads down to."""
    for key, parent in parents.items():
        ends = [place for place, end in enumerate(rails) if end == key]
        if not ends:
            ends = [len(rails)]
            rails.append(key)
        if len(ends) > 1:
            yield _meeting(len(rails), ends), ""
            for place in reversed(ends[1:]):
                del rails[place]
        yield " ".join("●" if place == ends[0] else "│" for place in range(len(rails))), key
        rails[ends[0] : ends[0] + 1] = [parent] if parent else []


def draw_cells(needs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield rails, the key of the cell on them or ``""`` where rails only meet or part, and the needs without a rail.

    `needs` maps keys, in the order of execution, to keys before them. The last key is drawn first.
    """
    place = {key: number for number, key in enumerate(needs)}
    rails: list[str] = []
    """For each rail the key that it leads down to; no two lead to the same one."""
    for key in reversed(list(needs)):
        if key not in rails:
            rails.append(key)
        own = rails.index(key)
        others = sorted(needs[key], key=place.__getitem__, reverse=True)
        joined = [number for number, other in enumerate(rails) if other in others]
        new = [other for other in others if other not in rails]
        room = max(0, _MOST_RAILS - len(rails) + (own < _MOST_RAILS))
        drawn = new[:room]
        yield " ".join("●" if number == own else "│" for number in range(len(rails))), key, new[room:]
        rails += drawn[1:]
        if joined or len(drawn) > 1:
            yield _across_rails(len(rails), own, joined, max(0, len(drawn) - 1), ends=not drawn), "", []
        rails[own : own + 1] = drawn[:1]


def _meeting(rails: int, ends: Sequence[int]) -> str:
    """`├─╯` where rails that lead to the same turn become one, across others that continue."""
    return _joined_rails(rails, dict.fromkeys(ends, "┴") | {ends[0]: "├", ends[-1]: "╯"})


def _across_rails(rails: int, own: int, joined: Collection[int], new: int, *, ends: bool) -> str:
    """Return a line from a rail, which may end there, to others that continue, and to new ones on the right."""
    touched = {own, *joined, *range(rails - new, rails)}
    left, right, marks = min(touched), max(touched), dict[int, str]()
    for number in touched:
        if number >= rails - new:
            marks[number] = "╮" if number == right else "┬"
        elif number == own and ends:
            marks[number] = "╰" if number == left else "╯" if number == right else "┴"
        else:
            marks[number] = "├" if number == left else "┤" if number == right else "┼"
    return _joined_rails(rails, marks)


def _joined_rails(rails: int, marks: Mapping[int, str]) -> str:
    """Return a line from the first of the marked rails to the last one, across those between them."""
    left, right = min(marks), max(marks)
    line = (
        marks.get(number, "┼" if left < number < right else "│") + ("─" if left <= number < right else " ")
        for number in range(rails)
    )
    return "".join(line).rstrip()
