"""The log of a conversation: a header, then a line for each turn and for what happened between turns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sessgit.branch.tag import tags_by_commit
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history import views
from sessgit.history.log import BranchLog, ForkEntry, SideBranch
from sessgit.history.merge_history import list_merges
from sessgit.history.resolve import session_title
from sessgit.model.conversation.message import Message
from sessgit.store import layout
from sessgit.store.sqlite import ancestry
from sessgit.store.sqlite.ancestry import ForkPlace
from sessgit.store.sqlite.rows import Branch, Row

_NARROW = 66
"""Below so many columns the tools are left out: the prompts need the room."""
_TOKENS = 5
_RAIL = "│   "


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which turns, in which order, with what; how many at most."""

    reverse: bool = False
    rewound: bool = False
    cells: bool = False
    said: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How wide the columns of a turn's line are."""

    number: int
    clock: str
    clock_width: int
    prompt: int
    tools: int

    @classmethod
    def of(cls, here: Invocation, rows: list[Row], width: int) -> Layout:
        """The widths for these turns, where a line has so many columns."""
        number = max((len(str(row.turn)) for row in rows), default=1)
        clock = text.clock(here.now, (row.time for row in rows))
        clock_width = len(time.strftime(clock, time.localtime(here.now)))
        left = width - number - clock_width - _TOKENS - 8
        if here.width < _NARROW:
            return cls(number, clock, clock_width, left, 0)
        tools = min(
            max(14, left // 4), 32, max((text.width(_tools(row.message.get("Tools"), 32)) for row in rows), default=0)
        )
        return cls(number, clock, clock_width, left - tools - 2 * bool(tools), tools)


def full(here: Invocation, log: BranchLog, wanted: Wanted) -> Iterator[str]:
    """The whole page; newest turn first, like git's log."""
    paint = Paint(here.colour)
    yield from header(here, paint, log.branch, log.rows)
    if wanted.limit == 0:
        return
    yield ""
    rows = log.rows
    if not rows:
        yield "No matching turns." if log.branch.state.turns else "No turns yet."
        return
    turns = _Turns(here, paint, Layout.of(here, rows, here.width), tags_by_commit(here.index))
    start = [turns.between(log, 0, wanted)] if rows[0].turn == 1 else []
    blocks = [*start, *(turns.block(log, row, wanted) for row in rows)]
    for block in blocks if wanted.reverse else reversed(blocks):
        yield from block


def header(here: Invocation, paint: Paint, branch: Branch, rows: list[Row]) -> Iterator[str]:
    """Who, where, with which model, how much; folded where it is too long for one line."""
    state = branch.state
    name = here.ident(branch.name)
    tokens = text.tokens(text.said_and_heard(views.total_tokens(state)))
    cost = text.money(views.session_cost(state, here.settings.prices))
    total = ", ".join(part for part in (text.counted(state.turns, "turn"), f"{tokens} tokens", cost) if part)
    model = next((model for row in reversed(rows) if (model := row.message.get("Model"))), "")
    called = text.clean(session_title(state), 200)
    parts = [f"{name}  {called}", text.clean(here.short(state.project)), text.clean(model), total]
    lines = text.fold([part for part in parts if part], here.width, "  ·  ", " " * (len(name) + 2))
    yield paint("yellow", name) + paint("bold", lines[0][len(name) :])
    yield from lines[1:]
    if state.origin is not None and (left := ancestry.fork_place(here.index, branch)):
        yield paint("dim", f"{' ' * len(name)}  from {departed(here, left)}")


def oneline(here: Invocation, log: BranchLog, *, reverse: bool) -> Iterator[str]:
    """For each turn its address and its prompt; cut to the terminal, whole in a pipe."""
    paint, name = Paint(here.colour), here.ident(log.branch.name)
    for row in log.rows if reverse else reversed(log.rows):
        address, prompt = f"{name}@{row.turn}", text.clean(here.index.title(row))
        room = here.width - len(address) - 1
        yield f"{paint('yellow', address)} {text.cut(prompt, room) if here.terminal else prompt}"


def as_json(here: Invocation, log: BranchLog, *, rewound: bool) -> dict[str, Any]:
    """Return what `log --json` prints."""
    prices = here.settings.prices
    turns = [views.turn_json(views.read_turn(here.store, log.branch.tip, row), prices) for row in log.rows]
    if rewound:
        for left in (left for turn in sorted(log.left) for left in log.left[turn]):
            read = (views.read_turn(here.store, left.branch.tip, row) for row in _left_rows(here, left))
            turns += [views.turn_json(view, prices) for view in read]
    return {"session": views.session_json(log.branch, prices), "turns": turns}


@cache
def _tools(trailer: str, columns: int) -> str:
    """The tools of a turn; many turns of a conversation use the same ones."""
    return text.tools(Message("", (("Tools", trailer),)).tools, columns)


def _source(row: Row | None) -> str:
    """The branch from which a merge brought the turn, or ``""``."""
    return row.message.get("Origin").partition("@")[0] if row else ""


def _told_of(row: Row) -> int:
    """How many turns a turn that was brought stands for: a summary tells of several."""
    first, _, last = row.message.get("Origin").partition("@")[2].partition("-")
    known = first.isdecimal() and last.isdecimal() and len(first + last) < 15
    return max(1, int(last) - int(first) + 1) if known else 1


def aside(left: SideBranch, after: str = "") -> str:
    """`3 turns left behind by a rewind, 2 of them brought back`; `after` tells after which turn they left."""
    what = f"{text.counted(left.count, 'turn')} {'left behind by a rewind' if left.rewound else 'in another version'}"
    some = f"{left.brought} of them " if left.open else ""
    return f"{what}{after}, {some}merged" if left.brought else f"{what}{after}"


def departed(here: Invocation, left: ForkPlace) -> str:
    """The address at which a fork left."""
    return f"{text.clean(here.ident(left.branch), 80)}@{text.clean(left.at)}"


def _inside(here: Invocation, fork: ForkEntry) -> str:
    """Where a fork left, if not after the turn that it stands behind."""
    if fork.is_elsewhere:
        return f"  (from {departed(here, fork.left)})"
    return f"  (at {text.clean(fork.cell)})" if fork.cell else ""


def _left_rows(here: Invocation, left: SideBranch) -> list[Row]:
    return here.index.turns(left.branch.name, left.turn + 1)


class _Turns:
    def __init__(self, here: Invocation, paint: Paint, columns: Layout, tags: Mapping[str, list[str]]) -> None:
        self.here, self.paint, self.columns, self.tags = here, paint, columns, tags
        self.by_turn: dict[int, Row] = {}
        self.merged: set[tuple[str, int]] | None = None

    def block(self, log: BranchLog, row: Row, wanted: Wanted) -> list[str]:
        """A turn with its cells, what left the conversation after it, and whether it was compacted before it."""
        compacted = [self._note("┊", "", "the conversation was compacted")] if row.compacted else []
        turn = [self.turn(row), *(self._cells(log.branch.tip, row) if wanted.cells else [])]
        if wanted.said:
            turn += self._said(log.branch.tip, row)
        after = [*self.between(log, row.turn, wanted), *self._brought(log, row)]
        return [*compacted, *turn, *after] if wanted.reverse else [*after, *turn, *compacted]

    def _brought(self, log: BranchLog, row: Row) -> list[str]:
        """What was merged, beside the last of the turns that it brought back, or the last one that was there."""
        source = _source(row)
        silent = [self._merge(theirs) for theirs in log.merged.get(row.turn, ()) if theirs != source]
        if not source:
            return silent
        rows = self.by_turn = self.by_turn or {other.turn: other for other in log.rows}
        if _source(rows.get(row.turn + 1)) == source:
            return silent
        count = 0
        one: Row | None = row
        while one is not None and _source(one) == source:
            count += _told_of(one)  # also where the page does not begin so early
            one = rows.get(one.turn - 1) or self.here.index.turn(log.branch.name, one.turn - 1)
        turns = text.counted(count, "turn")
        if row.message.get("Event") == "graft" and (source, row.turn) not in self._merges(log.branch):
            return [self._merge(source, f" ({turns})", what="picked from"), *silent]
        return [self._merge(source, f" ({turns})"), *silent]

    def _merges(self, branch: Branch) -> set[tuple[str, int]]:
        """What was merged, and up to which turn: single turns that were picked do not tell it of themselves."""
        if self.merged is None:
            self.merged = set(list_merges(self.here.store, branch))
        return self.merged

    def _merge(self, theirs: str, back: str = "", what: str = "merged") -> str:
        branch = self.here.index.branch(theirs)
        called = f"  {text.clean(session_title(branch.state), 200)}" if branch else ""
        name = self.here.ident(theirs) if branch else text.clean(layout.short_name(theirs), 30)
        return self._note("○─┐", "", f"{what} {name}{called}{back}")

    def between(self, log: BranchLog, turn: int, wanted: Wanted) -> list[str]:
        """What left the conversation after a turn."""
        lines: list[str] = []
        for left in log.left.get(turn, ()):
            lines.append(self._note("┊", "", f"{aside(left)}: {self.here.ident(left.branch.name)}"))
            if wanted.rewound:
                lines += self._rewound(log, left, wanted)
        drawn = {left.branch.name for left in log.left.get(turn, ())} if wanted.rewound else set[str]()
        forks = log.forks.get(turn, ())
        return lines + [self._fork(one) for one in forks if one.left.turn == turn or one.left.branch not in drawn]

    def _rewound(self, log: BranchLog, left: SideBranch, wanted: Wanted) -> Iterator[str]:
        """The turns of a side branch, and what left the conversation there."""
        rows = _left_rows(self.here, left)
        forks = [one for one in log.forks.get(left.turn, ()) if one.left.branch == left.branch.name]
        for row in rows if wanted.reverse else reversed(rows):
            left_here = (one for one in forks if one.left.turn == row.turn)
            after = [self._fork(replace(one, turn=row.turn, cell=one.left.cell)) for one in left_here]
            turn = self.turn(row, "○")
            yield from [turn, *after] if wanted.reverse else [*after, turn]

    def _fork(self, fork: ForkEntry) -> str:
        moment, state = self.here_time(fork.branch.state.created), fork.branch.state
        name, called = self.paint("yellow", self.here.ident(fork.branch.name)), text.clean(session_title(state), 200)
        return self._note("├─", moment, f"↳ {name}  {called}{_inside(self.here, fork)}")

    def turn(self, row: Row, mark: str = "●") -> str:
        columns = self.columns
        tools = text.fit(_tools(row.message.get("Tools"), columns.tools), columns.tools) + "  " if columns.tools else ""
        new = text.said_and_heard(row.tokens)
        number = text.tokens(new) if new else ""
        tags = "".join(f"  ({text.clean(name)})" for name in self.tags.get(row.commit, ()))
        tags = text.cut(tags, columns.prompt // 2)
        called = text.cut(text.clean(self.here.index.title(row)), columns.prompt - text.width(tags)) + tags
        return (
            f"{self.paint('green', mark)} {self.paint('bold', str(row.turn).ljust(columns.number))}  "
            f"{self.paint('dim', text.at(columns.clock, row.time).ljust(columns.clock_width))}  "
            f"{text.fit(called, columns.prompt)}  {self.paint('cyan', tools)}{self.paint('dim', number.rjust(_TOKENS))}"
        )

    def here_time(self, moment: str) -> str:
        from sessgit.model import canonical

        return text.at(self.columns.clock, canonical.seconds(moment) or 0).ljust(self.columns.clock_width)

    def _note(self, rail: str, moment: str, what: str) -> str:
        """A line between turns, its time under the times of the turns."""
        start = text.fit(rail, self.columns.number + 4)
        shown = f"{self.paint('dim', moment)}  " if moment else ""
        room = self.here.width - text.width(start) - (len(moment) + 2 if moment else 0)
        plain = what if "\033" in what else text.cut(what, room)
        return f"{self.paint('dim', start)}{shown}{plain if '↳' in plain else self.paint('dim', plain)}"

    def _said(self, tip: str, row: Row) -> list[str]:
        """The prompt and the last answer, whole."""
        told = views.read_turn(self.here.store, tip, row).told
        room = self.here.width - len(_RAIL)
        asked = [self.paint("bold", line) for line in text.wrapped(told.prompt, room)]
        answered = text.wrapped(told.answer or "(no answer)", room)
        return [*(f"{self.paint('dim', _RAIL)}{line}" for line in ["", *asked, "", *answered]), ""]

    def _cells(self, tip: str, row: Row) -> list[str]:
        lines = []
        for number, cell in enumerate(self.here.store.cells(tip, row.turn), start=1):
            mark = {True: "", False: "  failed", None: "  no result"}[cell.ok]
            what = f"{row.turn}.{number}  {text.clean(cell.operation, 60)}{mark}"
            lines.append(self._note("│", "", what))
        return lines


def graph(here: Invocation, family: list[Branch], limit: int | None, *, rewound: bool) -> Iterator[str]:
    """All turns of a family, newest first, with a rail for each line of conversation, as `git log --graph` draws."""
    from sessgit.cli.pages.turn_rails import Node, draw

    paint, nodes, where, tips = Paint(here.colour), list[Node](), dict[str, Row](), dict[str, list[Branch]]()
    branches = [*family]
    if rewound:
        branches += [
            b for one in family for b in here.index.branches_named(ancestry.side_branches(here.index, one.name))
        ]
    for branch in branches:
        above = ""
        for row in here.index.turns(branch.name):
            key = row.commits[0]
            if key not in where:
                where[key] = row
                nodes.append(Node(key, above, row.time))
            above = key
        tips.setdefault(above, []).append(branch)
    shown = 0
    for rail, key in draw(nodes):
        if not key:
            yield paint("dim", rail)
            continue
        if shown == limit:
            return
        shown += 1
        row = where[key]
        names = "".join(
            f"  {here.ident(b.name)}"
            f"{'' if layout.is_side_branch(b.name) else ' ' + text.clean(session_title(b.state), 40)}"
            for b in tips.get(key, ())
        )
        room = here.width - text.width(rail) - 2
        head = text.cut(f"{row.turn}  {text.clean(here.index.title(row))}", room if not names else max(20, room // 2))
        rest = text.cut(names, max(0, room - text.width(head)))
        yield f"{paint('green', rail)}  {head}{paint('yellow', rest)}"
