"""What conversations used: tokens, the model's calls, tools; each turn counted once, where it was held first.

A fork shares its turns with the session that it left, so that only what it added counts there. Where two sessions
hold the same turn with bytes of their own, as a fork that was cut inside of it does, the earlier one has the turn, and
the later one what it has beyond that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from sessgit.history import usage
from sessgit.history.usage import Held
from sessgit.history.views import Prices
from sessgit.model import prices
from sessgit.model.conversation.turn import Gist, Tokens
from sessgit.model.progress import Progress, unseen
from sessgit.store import layout, project
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Outline, Row

By = Literal["day", "project", "model", "session", "tool"]
_NOTHING = Gist()


class Share(NamedTuple):
    """What a session did in a turn, `project` being the project's own folder.

    `turns` is 0 where the turn itself counts in an earlier session and this is what was added to it. `left` tells that
    a rewind left it behind and no session has it any more.
    """

    row: Row
    session: str
    project: str
    own: Gist
    subagents: Gist
    turns: int = 1
    left: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """So many turns and what was used in them: tokens and the model's calls by model, tool calls by name."""

    turns: int = 0
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    tools: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> Tokens:
        return sum(self.tokens.values(), Tokens())


@dataclass(frozen=True, slots=True)
class Tally:
    """What was used in all, and how much of that by subagents and in turns that rewinds left behind."""

    whole: Part = Part()
    subagents: Part = Part()
    left: Part = Part()


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, and the models of which no price is known: what they cost is missing."""

    dollars: float
    unpriced: tuple[str, ...] = ()


def cost(part: Part, overrides: Prices) -> Cost:
    """What the tokens of a part cost, as far as prices are known."""
    each = {model: prices.cost({model: tokens}, overrides) for model, tokens in part.tokens.items() if tokens.total}
    unpriced = tuple(sorted(model for model, dollars in each.items() if dollars is None))
    return Cost(sum((dollars for dollars in each.values() if dollars is not None), 0.0), unpriced)


# Which turns


def shares(index: Index, progress: Progress = unseen) -> list[Share]:
    """All that the sessions of the store did, turn by turn.

    What the index does not remember is read from the turns' folders, and remembered; `progress` is told how many of
    those turns are read and how many they are.
    """
    outlines = {outline.name: outline for outline in index.outlines()}
    turns: dict[str, list[Held]] = {}
    for one in usage.every_turn(index, outlines, progress):
        turns.setdefault(one.row.prompt, []).append(one)
    root = cache(project.root)
    projects = {name: root(outline.project) if outline.project else "" for name, outline in outlines.items()}
    out = []
    for held in turns.values():
        if len(held) == 1:
            ((session, row, gist),) = held
            agents, left = gist.subagents or _NOTHING, layout.is_rewound(row.branch)
            out.append(Share(row, session, projects.get(session, ""), gist, agents, 1, left))
            continue
        ranked = sorted(held, key=lambda one: _rank(one, outlines))
        gone = all(layout.is_rewound(one.row.branch) for one in ranked)
        for one, own, agents in _each_beyond(ranked):
            first = one is ranked[0]
            left = gone if first else layout.is_rewound(one.row.branch)
            out.append(Share(one.row, one.session, projects.get(one.session, ""), own, agents, int(first), left))
    return out


def of_branch(found: Iterable[Share], index: Index, branch: Branch, turn: int | None) -> list[Share]:
    """What a session did, also in turns of its side branches; up to a turn, or of a side branch, what it did on
    that branch."""
    session = layout.session_of(branch.name)
    own = [share for share in found if share.session == session]
    if turn is None and not layout.is_side(branch.name):
        return own
    commits = {row.commit for row in index.turns(branch.name, 1, turn)}
    return [share for share in own if share.row.commit in commits]


def _each_beyond(held: Sequence[Held]) -> Iterator[tuple[Held, Gist, Gist]]:
    """Of each that holds a turn what it, and its subagents, have beyond those before it, where that is anything."""
    own, agents = _NOTHING, _NOTHING
    for number, one in enumerate(held):
        if not number:
            own, agents = one.gist, one.gist.subagents or _NOTHING
            yield one, own, agents
            continue
        more, more_agents = _beyond(one.gist, own), _beyond(one.gist.subagents or _NOTHING, agents)
        if more != _NOTHING or more_agents != _NOTHING:
            yield one, more, more_agents
            own, agents = _both(own, more), _both(agents, more_agents)


def _rank(held: Held, outlines: Mapping[str, Outline]) -> tuple[int, int, str, str]:
    """By time, and of two at the same time a session before those that left it."""
    outline = outlines.get(held.session)
    above, depth = outline, 0
    while above is not None and above.parent and depth < len(outlines):
        above, depth = outlines.get(above.parent), depth + 1
    return held.row.time, depth, outline.created if outline else "", held.row.commit


def _beyond(gist: Gist, known: Gist) -> Gist:
    more = {model: _less(tokens, known.tokens.get(model, Tokens())) for model, tokens in gist.tokens.items()}
    return Gist(
        tokens={model: tokens for model, tokens in more.items() if tokens.total},
        calls={model: n for model, m in gist.calls.items() if (n := m - known.calls.get(model, 0)) > 0},
        tools={name: n for name, m in gist.tools.items() if (n := m - known.tools.get(name, 0)) > 0},
    )


def _less(a: Tokens, b: Tokens) -> Tokens:
    return Tokens(
        max(0, a.input - b.input),
        max(0, a.output - b.output),
        max(0, a.cache_read - b.cache_read),
        max(0, a.cache_write - b.cache_write),
    )


def _both(a: Gist, b: Gist) -> Gist:
    total = _Sum()
    total.add(a)
    total.add(b)
    part = total.part()
    return Gist(tokens=part.tokens, calls=part.calls, tools=part.tools)


# What they add up to


def tally(found: Iterable[Share]) -> Tally:
    """All shares together."""
    sums = _Sums()
    for share in found:
        sums.add(share, share.own, share.subagents)
    return sums.tally()


def by(found: Iterable[Share], what: By) -> dict[str, Tally]:
    """The shares by what they have in common: days as `2026-03-01` in local time, the latest first; tools by calls;
    all others by tokens. What is not known of a turn, its time or its project, is ``""``.

    A model has the turns in which it was called; which model called a tool is not told apart. A tool has turns and
    calls alone.
    """
    sums: dict[str, _Sums] = {}
    for share in found:
        for key, own, agents in _parts(share, what):
            if key not in sums:
                sums[key] = _Sums()
            sums[key].add(share, own, agents)
    found_ = {key: one.tally() for key, one in sums.items()}
    if what == "day":
        return dict(sorted(found_.items(), reverse=True))
    if what == "tool":
        return dict(sorted(found_.items(), key=lambda item: (-sum(item[1].whole.tools.values()), item[0])))
    return dict(sorted(found_.items(), key=lambda item: (-item[1].whole.total.total, item[0])))


def ranked(tallies: Mapping[str, Tally], overrides: Prices) -> dict[str, Tally]:
    """The dearest first."""
    dollars = {key: cost(tally.whole, overrides).dollars for key, tally in tallies.items()}
    return dict(sorted(tallies.items(), key=lambda item: (-dollars[item[0]], -item[1].whole.total.total, item[0])))


def _parts(share: Share, what: By) -> Iterator[tuple[str, Gist, Gist]]:
    own, agents = share.own, share.subagents
    if what == "day":
        moment = share.row.time
        yield time.strftime("%Y-%m-%d", time.localtime(moment)) if moment > 0 else "", own, agents
    elif what == "project":
        yield share.project, own, agents
    elif what == "session":
        yield share.session, own, agents
    elif what == "model":
        for model in {**own.tokens, **own.calls, **agents.tokens, **agents.calls}:
            yield model, _of_model(own, model), _of_model(agents, model)
    else:
        for name in {**own.tools, **agents.tools}:
            yield name, _of_tool(own, name), _of_tool(agents, name)


def _of_model(gist: Gist, model: str) -> Gist:
    tokens, calls = gist.tokens.get(model), gist.calls.get(model)
    return Gist(tokens={model: tokens} if tokens else {}, calls={model: calls} if calls else {})


def _of_tool(gist: Gist, name: str) -> Gist:
    return Gist(tools={name: gist.tools[name]}) if name in gist.tools else _NOTHING


class _Sum:
    """A part in the making; numbers are added in place, for they are many."""

    def __init__(self) -> None:
        self.turns = 0
        self.tokens: dict[str, list[int]] = {}
        self.calls: dict[str, int] = {}
        self.tools: dict[str, int] = {}

    def add(self, gist: Gist, turns: int = 0) -> None:
        self.turns += turns
        for model, tokens in gist.tokens.items():
            known = self.tokens.setdefault(model, [0, 0, 0, 0])
            known[0] += tokens.input
            known[1] += tokens.output
            known[2] += tokens.cache_read
            known[3] += tokens.cache_write
        for model, number in gist.calls.items():
            self.calls[model] = self.calls.get(model, 0) + number
        for name, number in gist.tools.items():
            self.tools[name] = self.tools.get(name, 0) + number

    def part(self) -> Part:
        tools = dict(sorted(self.tools.items(), key=lambda item: (-item[1], item[0])))
        return Part(self.turns, {model: Tokens(*numbers) for model, numbers in self.tokens.items()}, self.calls, tools)


class _Sums:
    def __init__(self) -> None:
        self.whole = _Sum()
        self.subagents: _Sum | None = None
        self.left: _Sum | None = None

    def add(self, share: Share, own: Gist, agents: Gist) -> None:
        self.whole.add(own, share.turns)
        if agents.tokens or agents.calls or agents.tools:
            self.whole.add(agents)
            self.subagents = self.subagents or _Sum()
            self.subagents.add(agents, share.turns)
        if share.left:
            self.left = self.left or _Sum()
            self.left.add(own, share.turns)
            self.left.add(agents)

    def tally(self) -> Tally:
        return Tally(self.whole.part(), *(one.part() if one else Part() for one in (self.subagents, self.left)))
