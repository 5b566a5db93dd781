"""`sessgit stats`: what conversations used."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from sessgit import agents
from sessgit.cli import frame, render, text
from sessgit.cli.frame import AGENT, LIMIT, PROJECT, SINCE, Answer, argument, option, parse_time
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column, Row
from sessgit.history import stats
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.stats import GroupBy, TurnShare, UsagePart, UsageTally
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.store import project as projects


@frame.command("stats", needs="conversations", reads=True, excludes={"--all": "ADDRESS --project"})
def run(
    cli: Invocation,
    address: str = argument("ADDRESS", "SESSION[@TURN] (default: all conversations)."),
    by: Literal["day", "project", "agent", "model", "session", "tool"] | None = option(
        "--by", "Print one line for each."
    ),
    agent: str = AGENT,
    everything: bool = option("--all", "Count all projects (the default)."),
    since: str = SINCE,
    project: Path | None = PROJECT,
    limit: int | None = LIMIT,
) -> Answer:
    """Show tokens, cost, model calls and tool calls.

    Each turn counts once, in the conversation that had it first: a fork counts only the turns it added. Turns that a
    rewind left behind count too. Subagents are included, and their share is shown. “cache” counts the tokens read from
    or written to the cache, “calls” the calls of the model, “tools” the tool calls. A cost that is
    unknown, or has a ≥, lacks the price of a model: set it with `sessgit config prices.MODEL`.
    """
    target = None
    if address:
        from sessgit.cli import operands  # what catches up with a transcript is not needed else

        target = operands.target(cli, address)
    shares = stats.all_shares(cli.index, render.progress(cli, "Counting"))
    root = projects.project_root(cli.folder(project)) if project else None
    agent = agents.check_name(agent)
    options = StatsOptions(by, parse_time(since, cli.now), root, target, limit)
    if target is not None:
        shares = stats.branch_shares(shares, cli.index, target.branch, target.turn)
    chosen = [
        share
        for share in shares
        if (options.since is None or share.row.time >= options.since)
        and root in (None, share.project)
        and agent in ("", share.agent)
    ]
    return Answer(lambda: _as_json(cli, chosen, options), _stats_lines(cli, chosen, options))


_SESSIONS = 20
_MODELS, _PROJECTS, _TOOLS = 4, 5, 12
_BAR = 10
_NUMBER, _OPTIONAL = Column(right=True), Column(right=True, optional=True)
_COLUMNS = {
    "turns": _NUMBER, "input": _OPTIONAL, "output": _OPTIONAL, "cache": _OPTIONAL, "calls": _OPTIONAL,
    "tools": _OPTIONAL, "cost": _NUMBER, "left behind": _OPTIONAL, "": Column("cyan", optional=True),
}  # fmt: skip
"""The columns behind the names by their heads; the last one has bars."""
_CENT = 0.01


@frozen
class StatsOptions:
    """What is counted and how it is shown; `since` is in seconds since 1970, `project` the project's main folder."""

    by: GroupBy | None = None
    since: float | None = None
    project: str | None = None
    target: ResolvedTarget | None = None
    limit: int | None = None


def _stats_lines(cli: Invocation, shares: list[TurnShare], options: StatsOptions) -> Iterator[str]:
    """Yield the whole page."""
    yield from _target(cli, shares, options)
    page = _Page(cli, shares)
    if not shares:
        project = "" if options.project is None else f" in {text.clean(cli.short(options.project))}"
        if options.since is None:
            yield f"Nothing{project} yet."
        else:
            since = time.strftime("%d %b %Y %H:%M", time.localtime(options.since)).lstrip("0")
            yield f"Nothing{project} since {since}."
    elif options.by is None:
        yield from page.summary(options)
    else:
        yield from page.table(options.by, options.limit)
    if (imported := _imported(cli, shares))["sessions"]:
        count = text.counted(imported["sessions"], "imported conversation")
        used = f"{text.tokens(imported['tokens'])} tokens, {text.money(imported['cost_usd']) or '$0'}"
        yield cli.paint("dim", text.cut(f"According to their systems, {count} used {used}.", cli.width))


def _as_json(cli: Invocation, shares: list[TurnShare], options: StatsOptions) -> dict[str, Any]:
    """Return what `stats --json` prints; without `by` the rows are the last seven days and today."""
    tallies = _group(cli, shares, options.by) if options.by else _periods(cli, shares, options.since)
    rows = []
    for key, tally in list(tallies.items())[: options.limit]:
        branch = cli.index.branch(key) if options.by == "session" else None
        title, project = (branch.state.display_title, branch.state.project) if branch else (None, None)
        rows.append({"key": key, "title": title, "project": project, **_tally_json(cli, options.by, tally)})
    return {
        "since": None if options.since is None else canonical.rfc3339(options.since),
        "by": options.by,
        "rows": rows,
        "total": _tally_json(cli, None, stats.tally_shares(shares)),
        "imported": _imported(cli, shares),
    }


def _imported(cli: Invocation, shares: list[TurnShare]) -> dict[str, Any]:
    """Return what other systems say that their sessions used, which no line says."""
    facts, own = cli.index.imported_facts(), {share.session for share in shares}
    known = [each for name, each in facts.items() if name in own and each.keys() & {"tokens", "cost_usd"}]
    cost = sum(float(each.get("cost_usd", 0)) for each in known)
    return {
        "sessions": len(known),
        "tokens": sum(int(each.get("tokens", 0)) for each in known),
        "cost_usd": round(cost, 6),
    }


def _tally_json(cli: Invocation, by: GroupBy | None, tally: UsageTally) -> dict[str, Any]:
    return {
        **_part_json(cli, by, tally.whole),
        "left_behind": _part_json(cli, by, tally.left),
        "subagents": _part_json(cli, by, tally.subagents),
    }


def _part_json(cli: Invocation, by: GroupBy | None, part: UsagePart) -> dict[str, Any]:
    """Return the numbers of a part; null where a tool or a model has none of its own."""
    cost, is_tool = stats.part_cost(part, cli.prices), by == "tool"
    return {
        "turns": part.turns,
        "tokens": None if is_tool else part.total.as_json(),
        "cost_usd": None if is_tool or cost.unpriced else round(cost.dollars, 6),
        "cost_usd_at_least": None if is_tool else round(cost.dollars, 6),
        "unpriced_models": list(cost.unpriced),
        "calls": None if is_tool else sum(part.calls.values()),
        "tools": None if by == "model" else dict(part.tools),
    }


def _group(cli: Invocation, shares: list[TurnShare], by: GroupBy) -> dict[str, UsageTally]:
    tallies = stats.tally_by(shares, by)
    return tallies if by in ("day", "tool") else stats.rank_by_cost(tallies, cli.prices)


def _periods(cli: Invocation, shares: list[TurnShare], since: float | None) -> dict[str, UsageTally]:
    """Return the last seven days and today, if they begin after `since`, without turns dated in the future."""
    year, month, day = time.localtime(cli.now)[:3]
    end = time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))
    starts = {
        name: time.mktime((year, month, day - days, 0, 0, 0, 0, 0, -1))
        for name, days in (("last 7 days", 6), ("today", 0))
    }
    return {
        name: stats.tally_shares(share for share in shares if start <= share.row.time < end)
        for name, start in starts.items()
        if since is None or since < start
    }


def _target(cli: Invocation, shares: list[TurnShare], options: StatsOptions) -> Iterator[str]:
    """Yield the conversation that was asked for, and how many of its turns count in another one."""
    target = options.target
    if target is None:
        return
    branch = target.branch
    address = cli.ident(branch.name) + ("" if target.turn is None else f"@{target.turn}")
    yield from text.heading(cli, address, text.title(target.state))
    prompts = {row.prompt for row in cli.index.turns(branch.name, 1, target.turn)}
    own = stats.branch_shares(shares, cli.index, branch, target.turn)
    elsewhere = len(prompts - {share.row.prompt for share in own})
    if elsewhere and options.since is None:
        turns = text.counted(elsewhere, "turn")
        yield cli.paint("dim", f"Not counted: {turns} from the conversation it was forked from.")


class _Page:
    def __init__(self, cli: Invocation, shares: list[TurnShare]) -> None:
        self.cli, self.shares, self.prices = cli, shares, cli.prices
        self.total = stats.tally_shares(shares)
        self.is_priced = not stats.part_cost(self.total.whole, self.prices).unpriced

    def summary(self, options: StatsOptions) -> Iterator[str]:
        """Total, recent days, models, projects and tools."""
        periods = _periods(self.cli, self.shares, options.since) if options.target is None else {}
        sections = {"": [self._line(name, tally) for name, tally in {"total": self.total, **periods}.items()]}
        groups: tuple[tuple[GroupBy, int], ...] = (("model", _MODELS), ("project", _PROJECTS))
        for by, limit in groups:
            lines = self._lines(by)
            if len(lines) > 1 or by == "model":
                sections[_heading(by, len(lines) - limit)] = lines[:limit]
        heads, *rows = self._draw("", [line for lines in sections.values() for line in lines])
        for heading, lines in sections.items():
            yield self.cli.paint("dim", heading) if heading else heads
            yield from rows[: len(lines)]
            del rows[: len(lines)]
            if not heading:
                yield from self._notes()
            yield ""
        tools = self.total.whole.tools
        if tools:
            names = {text.clean(name.rpartition("__")[2] or name, 40): number for name, number in tools.items()}
            counts = [f"{name} {number:,}" for name, number in names.items()][:_TOOLS]
            yield self.cli.paint("dim", _heading("tool", len(tools) - _TOOLS))
            yield from text.field(self.cli, "  ", counts, between="  ")

    def table(self, by: GroupBy, limit: int | None) -> Iterator[str]:
        lines = self._lines(by)
        shown = lines[: _SESSIONS if limit is None and by == "session" else limit]
        total = [] if by == "tool" else [self._line("total", self.total)]
        yield from self._draw(by, [*shown, *total])
        yield from self._notes()
        if len(shown) < len(lines):
            yield self.cli.paint("dim", f"{len(shown)} of {text.counted(len(lines), by)}; all: -n {len(lines)}")

    def _lines(self, by: GroupBy) -> list[Row]:
        tallies = _group(self.cli, self.shares, by)
        sizes = [self._size(by, tally.whole) for tally in tallies.values()]
        largest = max(sizes) if len(sizes) > 1 else 0.0
        return [
            (*self._line(self._name(by, key), tally, by), _bar(size / largest) if largest else "")
            for (key, tally), size in zip(tallies.items(), sizes, strict=True)
        ]

    def _size(self, by: GroupBy, part: UsagePart) -> float:
        """Return what bars compare: calls of tools, else dollars if all prices are known, else tokens."""
        if by == "tool":
            return sum(part.tools.values())
        return stats.part_cost(part, self.prices).dollars if self.is_priced else text.new_tokens(part.total)

    def _name(self, by: GroupBy, key: str) -> str:
        if by == "session":
            branch = self.cli.index.branch(key)
            return f"{self.cli.ident(key)}  {text.title(branch.state) if branch else ''}".rstrip()
        return text.clean(self.cli.short(key) if by == "project" else key, 200) or f"(unknown {by})"

    def _line(self, name: str, tally: UsageTally, by: GroupBy | None = None) -> Row:
        """Return the name and what the columns with heads have."""
        part, tokens = tally.whole, tally.whole.total
        turns, tools = f"{part.turns:,}", f"{sum(part.tools.values()):,}"
        if by == "tool":
            return name, turns, "", "", "", "", tools, "", ""
        return (
            name, turns, text.tokens(tokens.input), text.tokens(tokens.output),
            text.tokens(tokens.cache_read + tokens.cache_write), f"{sum(part.calls.values()):,}",
            "" if by == "model" else tools, self._cost(part),
            text.counted(tally.left.turns, "turn") if tally.left.turns else "",
        )  # fmt: skip

    def _draw(self, by: GroupBy | Literal[""], lines: Sequence[Row]) -> Iterator[str]:
        """Yield the heads, then the lines."""
        rows = [(*line, "") if len(line) == len(_COLUMNS) else line for line in lines]
        bars = "" if by == "tool" or self.is_priced else "new tokens"
        texts = zip([*[*_COLUMNS][:-1], bars], [*zip(*rows, strict=True)][1:], strict=True)
        heads = [head if any(column) else "" for head, column in texts]
        columns = [Column(is_path=by != "session", least=20), *_COLUMNS.values()]
        head, *drawn = text.table(self.cli, columns, [(by, *heads), *rows], indent=2)
        yield self.cli.paint("dim", text.without_colours(head))
        yield from drawn

    def _cost(self, part: UsagePart) -> str:
        """`$1.84`; `≥ $1.20` if a price is missing, `unknown` if all are."""
        cost = stats.part_cost(part, self.prices)
        if not cost.unpriced:
            return text.money(cost.dollars)
        return f"≥ {text.money(cost.dollars)}" if cost.dollars >= _CENT / 2 else "unknown"

    def _notes(self) -> Iterator[str]:
        """Yield how much was used by subagents, and how much rewinds left behind."""
        for what, part in (("by subagents", self.total.subagents), ("left behind by rewinds", self.total.left)):
            if part.turns:
                tokens = f"{text.tokens(text.new_tokens(part.total))} tokens"
                cost = self._cost(part).replace("unknown", "cost unknown")
                parts = [f"  of which {what}: {text.counted(part.turns, 'turn')}", tokens, cost]
                yield from (self.cli.paint("dim", line) for line in text.fold(parts, self.cli.width, ", ", " " * 4))


def _bar(share: float) -> str:
    return "█" * round(share * _BAR) or ("▏" if share else "")


def _heading(by: GroupBy, more: int) -> str:
    return f"{by}s, {more} more: --by {by}" if more > 0 else f"{by}s"
