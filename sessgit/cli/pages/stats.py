"""What conversations used: a summary that fits a screen, or a table with a line for each day, project and so on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history import stats
from sessgit.history.resolve import ResolvedTarget, session_title
from sessgit.history.stats import Cost, GroupBy, TurnShare, UsagePart, UsageTally
from sessgit.model import canonical

_SESSIONS = 20
"""So many sessions a person is shown where no number is given."""
_TOP = {"model": 4, "tool": 12, "project": 5}
_BAR = 20
_LEAST_BAR = 6
_HEADS = ("turns", "input", "output", "cache", "calls", "tools", "cost", "left behind")
_DROPPED = ("calls", "tools", "cache", "output", "input")
"""What is left out where there is no room, the first one first."""
_NAME = 14
_CENT = 0.01


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is counted and how it is shown; `since` is in seconds since 1970, `project` the project's own folder."""

    by: GroupBy | None = None
    since: float | None = None
    project: str | None = None
    target: ResolvedTarget | None = None
    limit: int | None = None


def chosen(here: Invocation, found: list[TurnShare], wanted: Wanted) -> list[TurnShare]:
    """The shares that are wanted."""
    if wanted.target is not None:
        found = stats.branch_shares(found, here.index, wanted.target.branch, wanted.target.turn)
    return [
        share
        for share in found
        if (wanted.since is None or share.row.time >= wanted.since)
        and (wanted.project is None or share.project == wanted.project)
    ]


def full(here: Invocation, found: list[TurnShare], wanted: Wanted) -> Iterator[str]:
    """The whole page."""
    page = _Page(here, found, wanted)
    yield from page.about()
    if not found:
        yield page.nothing()
    elif wanted.by is None:
        yield from page.summary()
    else:
        yield from page.table(wanted.by)


# For programs


def as_json(here: Invocation, found: list[TurnShare], wanted: Wanted) -> dict[str, Any]:
    """Return what `stats --json` prints; without `by` the rows are the last seven days and today."""
    tallies = _by(here, found, wanted.by) if wanted.by else dict(_periods(here, found, wanted.since))
    keys = list(tallies)[: wanted.limit]
    rows = [{"key": key, **_more(here, wanted.by, key), **_tally_json(here, wanted.by, tallies[key])} for key in keys]
    return {
        "since": None if wanted.since is None else canonical.rfc3339(wanted.since),
        "by": wanted.by,
        "rows": rows,
        "total": _tally_json(here, None, stats.tally_shares(found)),
    }


def _tally_json(here: Invocation, by: GroupBy | None, tally: UsageTally) -> dict[str, Any]:
    return {
        **_part_json(here, by, tally.whole),
        "left_behind": _part_json(here, by, tally.left),
        "subagents": _part_json(here, by, tally.subagents),
    }


def _part_json(here: Invocation, by: GroupBy | None, part: UsagePart) -> dict[str, Any]:
    """What cannot be told of a part of a tool or a model is null."""
    cost = stats.part_cost(part, here.settings.prices)
    of_tool = by == "tool"
    return {
        "turns": part.turns,
        "tokens": None if of_tool else part.total.as_json(),
        "cost_usd": None if of_tool or cost.unpriced else round(cost.dollars, 6),
        "cost_usd_at_least": None if of_tool else round(cost.dollars, 6),
        "unpriced_models": list(cost.unpriced),
        "calls": None if of_tool else sum(part.calls.values()),
        "tools": None if by == "model" else dict(part.tools),
    }


def _more(here: Invocation, by: GroupBy | None, key: str) -> dict[str, Any]:
    """What a program would have to ask for next: the title and the project of a session; else null."""
    branch = here.index.branch(key) if by == "session" else None
    return {
        "title": session_title(branch.state) if branch else None,
        "project": branch.state.project if branch else None,
    }


def _by(here: Invocation, found: list[TurnShare], by: GroupBy) -> dict[str, UsageTally]:
    tallies = stats.tally_by(found, by)
    return tallies if by in ("day", "tool") else stats.rank_by_cost(tallies, here.settings.prices)


def _periods(here: Invocation, found: list[TurnShare], since: float | None) -> Iterator[tuple[str, UsageTally]]:
    """The last seven days and today, those that begin after `since`; what a wrong clock dated later is in neither."""
    year, month, day = time.localtime(here.now)[:3]
    end = time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))
    for name, days in (("last 7 days", 6), ("today", 0)):
        start = time.mktime((year, month, day - days, 0, 0, 0, 0, 0, -1))
        if since is None or since < start:
            yield name, stats.tally_shares(share for share in found if start <= share.row.time < end)


# For a person


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a table: its name, its numbers under the heads, and how long its bar is, from 0 to 1."""

    name: str
    cells: Mapping[str, str]
    bar: float = 0.0
    style: str = ""
    is_path: bool = False
    """A path that is too long is cut at its left: projects differ at the end."""

    def fitted(self, columns: int) -> str:
        """The name in exactly so many columns."""
        return text.fit(text.end(self.name, columns) if self.is_path else self.name, columns)


class _Page:
    def __init__(self, here: Invocation, found: list[TurnShare], wanted: Wanted) -> None:
        self.here, self.found, self.wanted = here, found, wanted
        self.paint = Paint(here.colour)
        self.total = stats.tally_shares(found)
        self.priced = not stats.part_cost(self.total.whole, here.settings.prices).unpriced

    def about(self) -> Iterator[str]:
        """Of which conversation, project and time, where not of all."""
        target = self.wanted.target
        if target is not None:
            name = self.here.ident(target.branch.name)
            at = "" if target.turn is None else f"@{target.turn}"
            called = text.cut(text.clean(session_title(target.state), 200), self.here.width - len(name + at) - 2)
            yield f"{self.paint('yellow', name + at)}  {self.paint('bold', called)}"
            rows = self.here.index.turns(target.branch.name, 1, target.turn)
            own = stats.branch_shares(self.found, self.here.index, target.branch, target.turn)
            elsewhere = len(rows) - len({share.row.prompt for share in own} & {row.prompt for row in rows})
            if elsewhere and self.wanted.since is None:
                yield self.paint(
                    "dim", f"Not counted: {text.counted(elsewhere, 'turn')} from the conversation it was forked from."
                )

    def nothing(self) -> str:
        what = "Nothing"
        if self.wanted.project is not None:
            what += f" in {text.clean(self.here.short(self.wanted.project))}"
        if self.wanted.since is not None:
            return f"{what} since {time.strftime('%d %b %Y %H:%M', time.localtime(self.wanted.since)).lstrip('0')}."
        return f"{what} yet."

    def summary(self) -> Iterator[str]:
        """Total, recent, models, projects and tools."""
        sections: list[tuple[str, list[_Line]]] = [("", [self._line("total", self.total, style="bold")])]
        if self.wanted.target is None:
            sections[0][1].extend(
                self._line(name, tally) for name, tally in _periods(self.here, self.found, self.wanted.since)
            )
        for by in ("model", "project"):
            tallies = _by(self.here, self.found, by)
            if len(tallies) > 1 or by == "model":
                lines = self._lines(by, dict(list(tallies.items())[: _TOP[by]]))
                more = len(tallies) - len(lines)
                sections.append((f"{by}s" + (f", {more} more: --by {by}" if more else ""), lines))
        columns = _Columns(self.here, [line for _, lines in sections for line in lines], self._bars(None))
        for number, (name, lines) in enumerate(sections):
            yield columns.heads(self.paint, name) if not number else self.paint("dim", name)
            yield from (columns.line(self.paint, line) for line in lines)
            if not number:
                yield from self._notes()
            yield ""
        yield from self._tools(self.total.whole)

    def table(self, by: GroupBy) -> Iterator[str]:
        tallies = _by(self.here, self.found, by)
        limit = self.wanted.limit if self.wanted.limit is not None or by != "session" else _SESSIONS
        shown = dict(list(tallies.items())[:limit])
        lines = self._lines(by, shown)
        last = [] if by == "tool" else [self._line("total", self.total, style="bold")]
        columns = _Columns(self.here, [*lines, *last], self._bars(by))
        yield columns.heads(self.paint, by)
        yield from (columns.line(self.paint, line) for line in [*lines, *last])
        yield from self._notes()
        if len(shown) < len(tallies):
            yield self.paint("dim", f"{len(shown)} of {text.counted(len(tallies), by)}; all: -n {len(tallies)}")

    def _lines(self, by: GroupBy, tallies: Mapping[str, UsageTally]) -> list[_Line]:
        sizes = {key: self._size(by, tally) for key, tally in tallies.items()}
        most = max(sizes.values()) if len(sizes) > 1 else 0.0
        return [
            self._line(self._name(by, key), tally, by, sizes[key] / most if most else 0.0)
            for key, tally in tallies.items()
        ]

    def _size(self, by: GroupBy, tally: UsageTally) -> float:
        """What bars are compared by: calls of tools, else dollars where all prices are known, else tokens."""
        if by == "tool":
            return sum(tally.whole.tools.values())
        if self.priced:
            return stats.part_cost(tally.whole, self.here.settings.prices).dollars
        return text.said_and_heard(tally.whole.total)

    def _bars(self, by: GroupBy | None) -> str:
        """By what bars are drawn, where no column shows it."""
        return "" if by == "tool" or self.priced else "new tokens"

    def _name(self, by: GroupBy, key: str) -> str:
        if by == "project":
            return text.clean(self.here.short(key), 200) or f"(unknown {by})"
        if by == "session":
            branch = self.here.index.branch(key)
            return f"{self.here.ident(key)}  {text.clean(session_title(branch.state), 200) if branch else ''}".rstrip()
        return text.clean(key, 200) or f"(unknown {by})"

    def _line(
        self, name: str, tally: UsageTally, by: GroupBy | None = None, bar: float = 0.0, style: str = ""
    ) -> _Line:
        part = tally.whole
        numbers = {
            "turns": f"{part.turns:,}",
            "input": text.tokens(part.total.input),
            "output": text.tokens(part.total.output),
            "cache": text.tokens(part.total.cache_read + part.total.cache_write),
            "calls": f"{sum(part.calls.values()):,}",
            "tools": f"{sum(part.tools.values()):,}",
            "cost": _money(stats.part_cost(part, self.here.settings.prices)),
            "left behind": text.counted(tally.left.turns, "turn") if tally.left.turns else "",
        }
        if by == "tool":
            numbers = {"turns": numbers["turns"], "tools": numbers["tools"]}
        if by == "model":
            del numbers["tools"]
        return _Line(name, numbers, bar, style, by == "project")

    def _notes(self) -> Iterator[str]:
        """How much of all that was used by subagents, and how much rewinds left behind."""
        for what, part in (("by subagents", self.total.subagents), ("left behind by rewinds", self.total.left)):
            if part.turns:
                tokens = f"{text.tokens(text.said_and_heard(part.total))} tokens"
                cost = _money(stats.part_cost(part, self.here.settings.prices))
                parts = [f"  of which {what}: {text.counted(part.turns, 'turn')}", tokens, *([cost] if cost else [])]
                yield from (self.paint("dim", line) for line in text.fold(parts, self.here.width, ", ", " " * 4))

    def _tools(self, part: UsagePart) -> Iterator[str]:
        if not part.tools:
            return
        names = list(part.tools)[: _TOP["tool"]]
        shown = [f"{text.clean(name.rpartition('__')[2] or name, 40)} {part.tools[name]:,}" for name in names]
        more = len(part.tools) - len(names)
        yield self.paint("dim", "tools" + (f", {more} more: --by tool" if more else ""))
        yield from (f"  {line}" for line in text.fold(shown, self.here.width - 2, "  "))


class _Columns:
    """How wide the columns are; the names take what the numbers leave, and bars what is left then."""

    def __init__(self, here: Invocation, lines: Sequence[_Line], bars: str) -> None:
        self.heads_ = [head for head in _HEADS if any(line.cells.get(head) for line in lines)]
        self.names = max((text.width(line.name) for line in lines), default=0)
        self.widths = {head: max([len(head), *(len(line.cells.get(head, "")) for line in lines)]) for head in _HEADS}
        if "left behind" in self.heads_ and self._room(here) < self.names:  # what follows the table tells as well
            self.heads_.remove("left behind")
        for head in _DROPPED:
            if self._room(here) >= min(self.names, _NAME):
                break
            if head in self.heads_:
                self.heads_.remove(head)
        spare = self._room(here) - self.names - 2
        self.name = max(1, min(self.names, self._room(here)))
        self.bar = min(_BAR, spare) if spare >= max(_LEAST_BAR, len(bars)) and any(line.bar for line in lines) else 0
        self.bars = bars if self.bar else ""

    def _room(self, here: Invocation) -> int:
        return here.width - 2 - sum(self.widths[head] + 2 for head in self.heads_)

    def heads(self, paint: Paint, name: str) -> str:
        shown = f"  {text.fit(name, self.name)}{self._cells({head: head for head in self.heads_})}"
        return paint("dim", f"{shown}  {self.bars}" if self.bars else shown)

    def line(self, paint: Paint, line: _Line) -> str:
        name = line.fitted(self.name)
        bar = "█" * round(line.bar * self.bar) if line.bar else ""
        if self.bar and line.bar:
            bar = bar or "▏"
        shown = f"  {paint(line.style, name) if line.style else name}{self._cells(line.cells)}"
        return f"{shown}  {paint('cyan', bar)}" if bar else shown

    def _cells(self, cells: Mapping[str, str]) -> str:
        return "".join(f"  {cells.get(head, '').rjust(self.widths[head])}" for head in self.heads_)


def _money(cost: Cost) -> str:
    """`$1.84`; `≥ $1.20` where a price is missing, nothing where all are."""
    if not cost.unpriced:
        return text.money(cost.dollars)
    return f"≥ {text.money(cost.dollars)}" if cost.dollars >= _CENT / 2 else ""
