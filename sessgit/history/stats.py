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
from sessgit.history.usage import TurnUsage
from sessgit.history.views import Prices
from sessgit.model import prices
from sessgit.model.conversation.turn import Gist, Tokens
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout, project
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Outline, Row

GroupBy = Literal["day", "project", "model", "session", "tool"]
_NO_GIST = Gist()


class TurnShare(NamedTuple):
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
class UsagePart:
    """So many turns and what was used in them: tokens and the model's calls by model, tool calls by name."""

    turns: int = 0
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    tools: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> Tokens:
        return sum(self.tokens.values(), Tokens())


@dataclass(frozen=True, slots=True)
class UsageTally:
    """What was used in all, and how much of that by subagents and in turns that rewinds left behind."""

    whole: UsagePart = UsagePart()
    subagents: UsagePart = UsagePart()
    left: UsagePart = UsagePart()


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, and the models of which no price is known: what they cost is missing."""

    dollars: float
    unpriced: tuple[str, ...] = ()


def part_cost(part: UsagePart, overrides: Prices) -> Cost:
    """What the tokens of a part cost, as far as prices are known."""
    each = {
        model: prices.token_cost({model: tokens}, overrides) for model, tokens in part.tokens.items() if tokens.total
    }
    unpriced = tuple(sorted(model for model, dollars in each.items() if dollars is None))
    return Cost(sum((dollars for dollars in each.values() if dollars is not None), 0.0), unpriced)


# Which turns


def all_shares(index: Index, progress: Progress = no_progress) -> list[TurnShare]:
    """All that the sessions of the store did, turn by turn.

    What the index does not remember is read from the turns' folders, and remembered; `progress` is told how many of
    those turns are read and how many they are.
    """
    outlines = {outline.name: outline for outline in index.outlines()}
    turns: dict[str, list[TurnUsage]] = {}
    for one in usage.all_turn_usage(index, outlines, progress):
        turns.setdefault(one.row.prompt, []).append(one)
    root = cache(project.project_root)
    projects = {name: root(outline.project) if outline.project else "" for name, outline in outlines.items()}
    out = []
    for held in turns.values():
        if len(held) == 1:
            ((session, row, gist),) = held
            agents, left = gist.subagents or _NO_GIST, layout.is_rewound_branch(row.branch)
            out.append(TurnShare(row, session, projects.get(session, ""), gist, agents, 1, left))
            continue
        ranked = sorted(held, key=lambda one: _share_order(one, outlines))
        gone = all(layout.is_rewound_branch(one.row.branch) for one in ranked)
        for one, own, agents in _usage_beyond_earlier(ranked):
            first = one is ranked[0]
            left = gone if first else layout.is_rewound_branch(one.row.branch)
            out.append(TurnShare(one.row, one.session, projects.get(one.session, ""), own, agents, int(first), left))
    return out


def branch_shares(found: Iterable[TurnShare], index: Index, branch: Branch, turn: int | None) -> list[TurnShare]:
    """What a session did, also in turns of its side branches; up to a turn, or of a side branch, what it did on
    that branch."""
    session = layout.session_of(branch.name)
    own = [share for share in found if share.session == session]
    if turn is None and not layout.is_side_branch(branch.name):
        return own
    commits = {row.commit for row in index.turns(branch.name, 1, turn)}
    return [share for share in own if share.row.commit in commits]


def _usage_beyond_earlier(held: Sequence[TurnUsage]) -> Iterator[tuple[TurnUsage, Gist, Gist]]:
    """Of each that holds a turn what it, and its subagents, have beyond those before it, where that is anything."""
    own, agents = _NO_GIST, _NO_GIST
    for number, one in enumerate(held):
        if not number:
            own, agents = one.gist, one.gist.subagents or _NO_GIST
            yield one, own, agents
            continue
        more, more_agents = _gist_difference(one.gist, own), _gist_difference(one.gist.subagents or _NO_GIST, agents)
        if more != _NO_GIST or more_agents != _NO_GIST:
            yield one, more, more_agents
            own, agents = _gist_sum(own, more), _gist_sum(agents, more_agents)


def _share_order(held: TurnUsage, outlines: Mapping[str, Outline]) -> tuple[int, int, str, str]:
    """By time, and of two at the same time a session before those that left it."""
    outline = outlines.get(held.session)
    above, depth = outline, 0
    while above is not None and above.parent and depth < len(outlines):
        above, depth = outlines.get(above.parent), depth + 1
    return held.row.time, depth, outline.created if outline else "", held.row.commit


def _gist_difference(gist: Gist, known: Gist) -> Gist:
    more = {
        model: _token_difference(tokens, known.tokens.get(model, Tokens())) for model, tokens in gist.tokens.items()
    }
    return Gist(
        tokens={model: tokens for model, tokens in more.items() if tokens.total},
        calls={model: n for model, m in gist.calls.items() if (n := m - known.calls.get(model, 0)) > 0},
        tools={name: n for name, m in gist.tools.items() if (n := m - known.tools.get(name, 0)) > 0},
    )


def _token_difference(a: Tokens, b: Tokens) -> Tokens:
    return Tokens(
        max(0, a.input - b.input),
        max(0, a.output - b.output),
        max(0, a.cache_read - b.cache_read),
        max(0, a.cache_write - b.cache_write),
    )


def _gist_sum(a: Gist, b: Gist) -> Gist:
    total = _PartSum()
    total.add(a)
    total.add(b)
    part = total.part()
    return Gist(tokens=part.tokens, calls=part.calls, tools=part.tools)


# What they add up to


def tally_shares(found: Iterable[TurnShare]) -> UsageTally:
    """All shares together."""
    sums = _TallySum()
    for share in found:
        sums.add(share, share.own, share.subagents)
    return sums.tally()


def tally_by(found: Iterable[TurnShare], what: GroupBy) -> dict[str, UsageTally]:
    """The shares by what they have in common: days as `2026-03-01` in local time, the latest first; tools by calls;
    all others by tokens. What is not known of a turn, its time or its project, is ``""``.

    A model has the turns in which it was called; which model called a tool is not told apart. A tool has turns and
    calls alone.
    """
    sums: dict[str, _TallySum] = {}
    for share in found:
        for key, own, agents in _split_share(share, what):
            if key not in sums:
                sums[key] = _TallySum()
            sums[key].add(share, own, agents)
    found_ = {key: one.tally() for key, one in sums.items()}
    if what == "day":
        return dict(sorted(found_.items(), reverse=True))
    if what == "tool":
        return dict(sorted(found_.items(), key=lambda item: (-sum(item[1].whole.tools.values()), item[0])))
    return dict(sorted(found_.items(), key=lambda item: (-item[1].whole.total.total, item[0])))


def rank_by_cost(tallies: Mapping[str, UsageTally], overrides: Prices) -> dict[str, UsageTally]:
    """The dearest first."""
    dollars = {key: part_cost(tally.whole, overrides).dollars for key, tally in tallies.items()}
    return dict(sorted(tallies.items(), key=lambda item: (-dollars[item[0]], -item[1].whole.total.total, item[0])))


def _split_share(share: TurnShare, what: GroupBy) -> Iterator[tuple[str, Gist, Gist]]:
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
            yield model, _gist_of_model(own, model), _gist_of_model(agents, model)
    else:
        for name in {**own.tools, **agents.tools}:
            yield name, _gist_of_tool(own, name), _gist_of_tool(agents, name)


def _gist_of_model(gist: Gist, model: str) -> Gist:
    tokens, calls = gist.tokens.get(model), gist.calls.get(model)
    return Gist(tokens={model: tokens} if tokens else {}, calls={model: calls} if calls else {})


def _gist_of_tool(gist: Gist, name: str) -> Gist:
    return Gist(tools={name: gist.tools[name]}) if name in gist.tools else _NO_GIST


class _PartSum:
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

    def part(self) -> UsagePart:
        tools = dict(sorted(self.tools.items(), key=lambda item: (-item[1], item[0])))
        return UsagePart(
            self.turns, {model: Tokens(*numbers) for model, numbers in self.tokens.items()}, self.calls, tools
        )


class _TallySum:
    def __init__(self) -> None:
        self.whole = _PartSum()
        self.subagents: _PartSum | None = None
        self.left: _PartSum | None = None

    def add(self, share: TurnShare, own: Gist, agents: Gist) -> None:
        self.whole.add(own, share.turns)
        if agents.tokens or agents.calls or agents.tools:
            self.whole.add(agents)
            self.subagents = self.subagents or _PartSum()
            self.subagents.add(agents, share.turns)
        if share.left:
            self.left = self.left or _PartSum()
            self.left.add(own, share.turns)
            self.left.add(agents)

    def tally(self) -> UsageTally:
        return UsageTally(
            self.whole.part(), *(one.part() if one else UsagePart() for one in (self.subagents, self.left))
        )
