"""What a figure of the suite is, how it stands to its goal, and how figures are shown and kept.

Nothing is measured here. A goal stands in the name of the figure that it is for, `log (goal 200 ms)`, and is taken out
of it: `(goal .5 x, at most 1 x)` has a bound beside the goal, `(goal at least 1,700 turns/s)` is met from below. A goal
in MB is one of peak memory and a goal in `x` one of the ratio, where the figure itself is in something else.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

FORMAT = "sessgit.bench/v1"
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"

_GOAL = re.compile(r" \(goal (at least )?([\d.,]+) (ms|s|x|MB|turns/s|MB/s)(?:, at most ([\d.,]+) \3)?\)$")
_HEADS = ("", "median", "goal", "", "processors", "peak")


class BenchError(Exception):
    """What cannot be measured, shown or kept; the message says why."""


@dataclass(frozen=True)
class Goal:
    """What a figure should be: at most `value`, or at least; where there is a `bound`, that is still good enough."""

    value: float
    unit: str
    least: bool = False
    bound: float | None = None

    def __str__(self) -> str:
        sign = "≥" if self.least else "≤"
        bound = "" if self.bound is None else f", at most {_given(self.bound)}"
        return f"{sign} {_given(self.value)}{bound} {_shown_unit(self.unit)}"


@dataclass(frozen=True)
class Figure:
    """One figure: the median of what was measured, in `unit`, and what it stands beside."""

    name: str
    median: float
    unit: str = "s"
    runs: int = 1
    best: float | None = None
    worst: float | None = None
    goal: Goal | None = None
    competitor: str = ""
    """What the ratio is to: the row of that name in the same table."""
    base: float | None = None
    """The median of that row."""
    peak: float | None = None
    """The most memory that one process of it, or all at once, had in use, in MB of 1,000,000 bytes."""
    work: float | None = None
    """Seconds that processors worked for it, also for what it started: what a busy machine changes least."""
    turns: int | None = None
    """Hits, turns or sessions that the figure is about, where that says something."""

    @property
    def ratio(self) -> float | None:
        """How many times that of the competitor it is."""
        return self.median / self.base if self.base else None

    @property
    def verdict(self) -> str:
        """`met`, `bound` (the bound is kept, the goal missed), `missed`, or nothing where there is no goal."""
        if self.goal is None:
            return ""
        value = self._judged(self.goal)
        if value is None:
            return ""
        if self.goal.least:
            return "met" if value >= self.goal.value else "missed"
        if value <= self.goal.value:
            return "met"
        return "bound" if self.goal.bound is not None and value <= self.goal.bound else "missed"

    def _judged(self, goal: Goal) -> float | None:
        if goal.unit == self.unit:
            return self.median
        if goal.unit == "ms" and self.unit == "s":
            return self.median * 1e3
        return {"x": self.ratio, "MB": self.peak}.get(goal.unit)


@dataclass(frozen=True)
class Table:
    """Figures that were taken together, beside one of them."""

    title: str
    figures: tuple[Figure, ...]
    note: str = ""

    @property
    def beside(self) -> str:
        """What the ratios are to."""
        return next((figure.competitor for figure in self.figures if figure.competitor), "")


@dataclass(frozen=True)
class Machine:
    """What the figures were taken on, without what would name the machine."""

    cores: int
    memory: float
    system: str
    python: str
    git: str


@dataclass(frozen=True)
class Busy:
    """How busy the machine was: its load, and what one known command took, over the whole run."""

    load_before: float
    load_after: float
    passes: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The worst of the known command as a multiple of its best."""
        return max(self.passes) / min(self.passes) if self.passes else 1.0


@dataclass(frozen=True)
class Run:
    """All that one run of the suite found."""

    taken: str
    quick: bool
    code: str
    machine: Machine
    busy: Busy
    groups: dict[str, tuple[Table, ...]]
    took: dict[str, float]
    absent: dict[str, str]
    failed: dict[str, str]


def figure(name: str, measured: Sequence[float], *, unit: str = "s", **more: Any) -> Figure:
    """The figure of what was measured under a name with its goal; raises BenchError where nothing was."""
    if not measured:
        raise BenchError(f"nothing was measured for “{name}”")
    plain, goal = split(name)
    best, worst = (max, min) if goal is not None and goal.least else (min, max)
    median = statistics.median(measured)
    return Figure(plain, median, unit, len(measured), best(measured), worst(measured), goal, **more)


def split(name: str) -> tuple[str, Goal | None]:
    """The name without its goal, and the goal."""
    found = _GOAL.search(name)
    if found is None:
        if "(goal" in name:
            raise BenchError(f"“{name}” has a goal that nobody can read")
        return name, None
    least, value, unit, bound = found.groups()
    goal = Goal(_read(value), unit, least is not None, None if bound is None else _read(bound))
    return name[: found.start()], goal


def table(
    title: str,
    measured: Mapping[str, Sequence[float]],
    base: str = "",
    *,
    peaks: Mapping[str, float] | None = None,
    work: Mapping[str, float] | None = None,
    note: str = "",
) -> Table:
    """The table of what was measured in seconds, each as a multiple of the row `base`."""
    memory, worked = peaks or {}, work or {}
    one = statistics.median(measured[base]) if base else None
    beside = split(base)[0]
    rows = (
        figure(name, seconds, competitor=beside, base=one, peak=memory.get(name), work=worked.get(name))
        for name, seconds in measured.items()
    )
    return Table(title, tuple(rows), note)


def compared(
    title: str,
    units: Mapping[str, str],
    own: Mapping[str, Sequence[float]],
    other: tuple[str, Mapping[str, Sequence[float]], Mapping[str, str]] | None,
    note: str = "",
) -> Table:
    """The table of what was measured of two programs in several units; ours should be at most half of the other's.

    `other` has its name, what was measured, and why something could not be, which its row says; ours has then no goal,
    unless it could in other rounds.
    """
    figures: list[Figure] = []
    for what, unit in units.items():
        name, more = f"{what} (goal .5 x)", dict[str, Any]()
        if other is not None:
            program, measured, problems = other
            if measured[what]:
                more = {"competitor": program, "base": statistics.median(measured[what])}
                failed = f"; not in every round: {problems[what]}" if what in problems else ""
                figures.append(figure(f"{what}, {program}{failed}", measured[what], unit=unit, **more))
            else:
                name = f"{what}, not compared with {program}: {problems[what]}"
        figures.append(figure(name, own[what], unit=unit, **more))
    return Table(title, tuple(figures), note)


# Runs


def joined(run: Run, more: Run) -> Run:
    """Both as one; the machine, the code and the load at the beginning are the first's."""
    busy = replace(run.busy, load_after=more.busy.load_after, passes=run.busy.passes + more.busy.passes)
    return replace(
        run,
        busy=busy,
        groups=run.groups | more.groups,
        took=run.took | more.took,
        absent=run.absent | more.absent,
        failed=run.failed | more.failed,
    )


def without(run: Run, group: str) -> Run:
    """The run, in which a group ended before it could say anything."""
    return replace(run, failed={**run.failed, group: "it ended without a figure"})


def summary(run: Run) -> list[str]:
    """What a run comes to: how busy the machine was, what was not measured, what misses its goal."""
    return [line.replace("**", "") for line in (*_about(run), "", *_missed(run))]


# Shown


def shown(found: Table) -> str:
    """The table for a terminal, with a word behind what misses its goal."""
    beside = f"× {found.beside}" if found.beside else ""
    lines = [found.title + (f"  ({found.note})" if found.note else "")]
    head = ["", "median", "goal", beside if len(beside) <= 16 else "× the first", *_HEADS[4:]]
    for cells, mark in [(head, ""), *((_cells(figure), _mark(figure)) for figure in found.figures)]:
        name, median, goal, ratio, work, peak = cells
        lines.append(f"  {name:<41} {median:>13} {goal:>17} {ratio:>16} {work:>10} {peak:>8}  {mark}".rstrip())
    return "\n".join(lines)


def _cells(found: Figure) -> tuple[str, str, str, str, str, str]:
    name = found.name + (f", {found.turns:,} found" if found.turns is not None else "")
    ratio = "" if found.ratio is None else f"{_number(found.ratio)} ×"
    peak = "" if found.peak is None else f"{found.peak:,.0f} MB"
    work = "" if found.work is None else _amount(found.work, "s")
    return name, _amount(found.median, found.unit), str(found.goal or ""), ratio, work, peak


def _mark(found: Figure) -> str:
    return {"missed": "missed", "bound": "in bound"}.get(found.verdict, "")


def _amount(value: float, unit: str) -> str:
    if unit != "s":
        return f"{_number(value)} {_shown_unit(unit)}"
    return f"{value:,.1f} s" if value >= 10 else f"{_number(value * 1e3)} ms"


def _number(value: float) -> str:
    """Three digits, or all of those before the point."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.removeprefix("0") if value < 1 else text


def _given(value: float) -> str:
    """As many digits as the goal has."""
    return f"{value:,.10g}".removeprefix("0")


def _shown_unit(unit: str) -> str:
    return "×" if unit == "x" else unit


def _read(number: str) -> float:
    return float(number.replace(",", ""))


# The page


def page(run: Run, text: str) -> str:
    """The page's text with this run's figures between its two marks; raises BenchError where it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"the page has no place for figures: “{BEGIN}” … “{END}”")
    return "\n".join([before + begin, "", *_markdown(run), end + after])


def _markdown(run: Run) -> Iterator[str]:
    """The figures that have a goal; the others are on the terminal and in the file of the run."""
    yield from (*_about(run), "")
    yield from (next(_missed(run)).rstrip(":.") + " (in **bold**).", "")
    for name, tables in run.groups.items():
        judged = [(found, [row for row in found.figures if row.goal is not None]) for found in tables]
        if any(rows for _, rows in judged):
            yield from (f"### {name}", "", "| figure | median | goal |", "| --- | ---: | ---: |")
            for found, rows in judged:
                yield from _rows(found, rows)
            yield ""


def _about(run: Run) -> Iterator[str]:
    machine, busy = run.machine, run.busy
    yield f"Taken {run.taken}{' in a quick run, of smaller cases' if run.quick else ''}, of {run.code}."
    yield ""
    yield f"- machine: {machine.cores} cores, {machine.memory:.0f} GB of memory, {machine.system}"
    yield f"- Python {machine.python}, git {machine.git}"
    known = statistics.median(busy.passes) * 1e3 if busy.passes else 0.0
    yield (
        f"- load {busy.load_before:.1f} at the beginning and {busy.load_after:.1f} at the end; `python -c pass` took "
        f"{known:.1f} ms in the middle, at worst {_number(busy.spread)} times its best"
    )
    for name, why in run.absent.items():
        yield f"- **not compared with {name}**: {why}"
    for name, why in run.failed.items():
        yield f"- **not measured, {name}**: {why}"


def _missed(run: Run) -> Iterator[str]:
    judged = [(t, f) for tables in run.groups.values() for t in tables for f in t.figures if f.verdict]
    missed = [(t, f) for t, f in judged if f.verdict == "missed"]
    bound = sum(f.verdict == "bound" for _, f in judged)
    within = f", {bound} within the bound" if bound else ""
    met = len(judged) - len(missed) - bound
    yield f"Goals: {met} of {len(judged)} met{within}, {len(missed)} missed{':' if missed else '.'}"
    if missed:
        yield ""
    for found, row in missed:
        name, median, goal, ratio, _, peak = _cells(row)
        told = ", ".join(part for part in (median, ratio and f"{ratio} {row.competitor}", peak) if part)
        yield f"- {found.title}: **{name}**, {told}; goal {goal}"


def _rows(found: Table, rows: Sequence[Figure]) -> Iterator[str]:
    """A row with the table's title, and one for each of these figures of it."""
    if not rows:
        return
    beside = f", × {found.beside}" if found.beside and any(row.goal and row.goal.unit == "x" for row in rows) else ""
    yield f"| *{_escaped(found.title + beside)}* | | |"
    for row in rows:
        name, median, goal, ratio, _, peak = map(_escaped, _cells(row))
        more = {"x": ratio if row.unit != "x" else "", "MB": peak if row.unit != "MB" else ""}
        median = ", ".join(filter(None, (median, more.get(row.goal.unit if row.goal else "", ""))))
        yield f"| {name} | {f'**{median}**' if row.verdict == 'missed' else median} | {goal} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


# Kept


def dumps(run: Run) -> str:
    """The run as JSON, with the ratio and the verdict of each figure written out."""
    document = {"format": FORMAT, **asdict(run)}
    for name, tables in run.groups.items():
        for made, found in zip(document["groups"][name], tables, strict=True):
            for row, known in zip(made["figures"], found.figures, strict=True):
                row |= {"ratio": known.ratio, "verdict": known.verdict}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def loads(text: str) -> Run:
    """What `dumps` wrote; raises BenchError for anything else."""
    try:
        document = json.loads(text)
        if document.pop("format") != FORMAT:
            raise BenchError("these figures have another form: run make bench again")
        document["groups"] = {name: tuple(map(_table, made)) for name, made in document["groups"].items()}
        document["machine"] = Machine(**document["machine"])
        busy = document["busy"]
        document["busy"] = Busy(busy["load_before"], busy["load_after"], tuple(busy["passes"]))
        return Run(**document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BenchError(f"these are no figures of a run: {error}") from error


def _table(made: dict[str, Any]) -> Table:
    return Table(made["title"], tuple(map(_figure, made["figures"])), made["note"])


def _figure(made: dict[str, Any]) -> Figure:
    known = {key: value for key, value in made.items() if key not in ("ratio", "verdict")}
    goal = known.pop("goal")
    return Figure(**known, goal=None if goal is None else Goal(**goal))


def read(path: Path) -> Run:
    """The run that a file has; raises BenchError where there is none."""
    try:
        return loads(path.read_text("utf-8"))
    except OSError as error:
        raise BenchError(f"no figures in {path.name}: {error.strerror}") from error
