"""What conversations used: tokens, the model's calls, tool calls. Each turn counts once.

A turn that a fork shares with the session that it left counts in that one. If the fork has more of the turn, as when
the client copied a session in the middle of one, the fork counts what it has beyond that.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, NamedTuple

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.errors import SessgitError
from sessgit.history import diff, turn_log
from sessgit.model import prices
from sessgit.model.conversation.turn import Gist, Tokens
from sessgit.model.frozen import frozen
from sessgit.model.prices import Price
from sessgit.model.progress import Progress, counted, no_progress
from sessgit.store import layout, project
from sessgit.store.index import Branch, Index, Outline, Row

GroupBy = Literal["day", "project", "agent", "model", "session", "tool"]
Counts = Counter[tuple[str, str, str]]
"""Numbers by what they count: `("tokens", MODEL, KIND)`, `("calls", MODEL, "")` and `("tools", NAME, "")`."""
_GRAFT_EVENT = "\nEvent: graft\n"
_NO_COUNTS: Counts = Counter()


@dataclass(slots=True)
class UsagePart:
    """A number of turns, and what was used in them."""

    turns: int = 0
    counts: Counts = field(default_factory=Counter)

    def add(self, counts: Counts, turns: int = 0) -> None:
        """Add what was used in some turns."""
        self.turns += turns
        self.counts.update(counts)

    @property
    def tokens(self) -> dict[str, Tokens]:
        """Tokens by model."""
        models = dict.fromkeys(model for what, model, _ in self.counts if what == "tokens")
        return {model: Tokens(*(self.counts["tokens", model, kind] for kind in Tokens._fields)) for model in models}

    @property
    def total(self) -> Tokens:
        """The tokens of all models together."""
        return sum(self.tokens.values(), Tokens())

    @property
    def calls(self) -> dict[str, int]:
        """The model's calls by model."""
        return {model: number for (what, model, _), number in self.counts.items() if what == "calls"}

    @property
    def tools(self) -> dict[str, int]:
        """Tool calls by name, the most frequent first."""
        tools = {name: number for (what, name, _), number in self.counts.items() if what == "tools"}
        return dict(sorted(tools.items(), key=lambda item: (-item[1], item[0])))


@dataclass(slots=True)
class UsageTally:
    """What was used in all, and the parts of that by subagents and in turns that rewinds left behind."""

    whole: UsagePart = field(default_factory=UsagePart)
    subagents: UsagePart = field(default_factory=UsagePart)
    left: UsagePart = field(default_factory=UsagePart)

    def add(self, share: TurnShare, own: Counts, subagents: Counts) -> None:
        """Add a share, or a part of it."""
        self.whole.add(own, share.turns)
        if subagents:
            self.whole.add(subagents)
            self.subagents.add(subagents, share.turns)
        if share.left:
            self.left.add(own, share.turns)
            self.left.add(subagents)


class TurnShare(NamedTuple):
    """What a session did in a turn; `project` is the main folder of its project, `agent` the name of its agent.

    `turns` is 0 if the turn itself counts in another session. `left` says that a rewind left it behind and no session
    has it any more.
    """

    row: Row
    session: str
    project: str
    own: Counts
    subagents: Counts
    turns: int = 1
    left: bool = False
    agent: str = ""


@frozen
class Cost:
    """US dollars without the cost of the models whose price is unknown."""

    dollars: float
    unpriced: tuple[str, ...] = ()


def part_cost(part: UsagePart, overrides: Mapping[str, Price]) -> Cost:
    """Return what the tokens of a part cost."""
    costs = {
        model: prices.token_cost({model: tokens}, overrides) for model, tokens in part.tokens.items() if tokens.total
    }
    unpriced = tuple(sorted(model for model, dollars in costs.items() if dollars is None))
    return Cost(math.fsum(dollars for dollars in costs.values() if dollars is not None), unpriced)


def tally_shares(shares: Iterable[TurnShare]) -> UsageTally:
    """Return the sum of all shares."""
    tally = UsageTally()
    for share in shares:
        tally.add(share, share.own, share.subagents)
    return tally


def tally_by(shares: Iterable[TurnShare], what: GroupBy) -> dict[str, UsageTally]:
    """Return the sums by day, as in `2026-03-01` in local time, the latest first; by tool, the one with most calls
    first; or by something else, the one with most tokens first. A project or time that is unknown is ``""``.

    The turns of a model are those in which it was called. A tool has turns and calls only.
    """
    tallies: dict[str, UsageTally] = {}
    for share in shares:
        if what in ("model", "tool"):
            own, subagents = _split_counts(share.own, what), _split_counts(share.subagents, what)
            for key in {**own, **subagents}:
                tallies.setdefault(key, UsageTally()).add(share, own.get(key, Counter()), subagents.get(key, Counter()))
        else:
            keys = {"project": share.project, "agent": share.agent, "session": share.session}
            key = keys.get(what, "")
            if what == "day" and share.row.time > 0:
                key = time.strftime("%Y-%m-%d", time.localtime(share.row.time))
            tallies.setdefault(key, UsageTally()).add(share, share.own, share.subagents)
    if what == "day":
        return dict(sorted(tallies.items(), reverse=True))
    sizes = {
        key: sum(tally.whole.tools.values()) if what == "tool" else tally.whole.total.total
        for key, tally in tallies.items()
    }
    return dict(sorted(tallies.items(), key=lambda item: (-sizes[item[0]], item[0])))


def rank_by_cost(tallies: Mapping[str, UsageTally], overrides: Mapping[str, Price]) -> dict[str, UsageTally]:
    """Return the tallies, the most expensive first."""
    dollars = {key: part_cost(tally.whole, overrides).dollars for key, tally in tallies.items()}
    return dict(sorted(tallies.items(), key=lambda item: (-dollars[item[0]], -item[1].whole.total.total, item[0])))


def _split_counts(counts: Counts, what: GroupBy) -> dict[str, Counts]:
    """Return the counts of each model, or of each tool."""
    parts: dict[str, Counts] = {}
    for key, number in counts.items():
        if (key[0] == "tools") == (what == "tool"):
            parts.setdefault(key[1], Counter())[key] = number
    return parts


# Which turns


def all_shares(index: Index, progress: Progress = no_progress) -> list[TurnShare]:
    """Return what the sessions of the store did in each turn.

    Turns whose gists are not in the index are read from the store and then saved there; `progress` counts them.
    """
    outlines = {outline.name: outline for outline in index.outlines()}
    root = cache(project.project_root)
    projects = {name: root(outline.project) if outline.project else "" for name, outline in outlines.items()}
    shares = []
    for turns in _distinct_turns(index, _held_turns(index, outlines, progress)):
        if len(turns) > 1:
            turns.sort(key=lambda turn: _holder_order(turn, outlines))
        is_gone = all(layout.is_rewound_branch(turn.row.branch) for turn in turns)
        counted, counted_subagents = _NO_COUNTS, _NO_COUNTS
        for number, (session, row, gist) in enumerate(turns):
            own, subagents = _counts(gist), _counts(gist.subagents)
            if number:
                own, subagents = own - counted, subagents - counted_subagents
            if own or subagents or not number:
                left = layout.is_rewound_branch(row.branch) if number else is_gone
                place, agent = projects.get(session, ""), outlines[session].agent if session in outlines else ""
                shares.append(TurnShare(row, session, place, own, subagents, int(not number), left, agent))
                if len(turns) > 1:
                    counted, counted_subagents = counted + own, counted_subagents + subagents
    return shares


def branch_shares(shares: Iterable[TurnShare], index: Index, branch: Branch, turn: int | None) -> list[TurnShare]:
    """Return what a session did, side branches included; up to a turn, or of a side branch, what it did on that
    branch."""
    session = branch.session
    own = [share for share in shares if share.session == session]
    if turn is None and not layout.is_side_branch(branch.name):
        return own
    commits = {row.commit for row in index.turns(branch.name, 1, turn)}
    return [share for share in own if share.row.commit in commits]


def count_turns(index: Index) -> int:
    """Return the number of turns in the store, each counted once."""
    prompts, ambiguous = index.prompt_counts()
    turns = [_HeldTurn(layout.session_of(row.branch), row, Gist()) for row in ambiguous if _GRAFT_EVENT not in row.text]
    return prompts + len(_distinct_turns(index, turns)) - len({turn.row.prompt for turn in turns})


def _distinct_turns(index: Index, turns: Iterable[_HeldTurn]) -> list[list[_HeldTurn]]:
    """Group the turns that several sessions share: those with the same prompt uuid and the same lines.

    Programs number their messages alike in every session, so the uuid alone says nothing. Recording compared the lines
    of a fork with those of the session that it left; lines are compared here only for others with the same prompt.
    """
    origins = index.origins()
    by_holder: dict[tuple[str, str], list[_HeldTurn]] = {}
    for turn in turns:
        session, visited = turn.session, {turn.session}
        while (origin := origins.get(session)) and turn.row.turn <= origin.turn + bool(origin.cell):
            session = layout.session_of(origin.branch)
            if session in visited:
                break
            visited.add(session)
        by_holder.setdefault((turn.row.prompt, session), []).append(turn)
    by_prompt: dict[str, list[list[_HeldTurn]]] = {}
    for (prompt, _), group in by_holder.items():
        known = by_prompt.get(prompt)
        if known is None:
            by_prompt[prompt] = [group]
            continue
        same = next((other for other in known if _is_same_turn(index, other[0].row, group[0].row)), None)
        if same is None:
            known.append(group)
        else:
            same += group
    return [group for groups in by_prompt.values() for group in groups]


def _is_same_turn(index: Index, a: Row, b: Row) -> bool:
    return (a.time, a.title) == (b.time, b.title) and diff.is_same_turn(index.open_store(), a, b)


class _HeldTurn(NamedTuple):
    """A turn as a session has it, and its gist, subagents included."""

    session: str
    row: Row
    gist: Gist


def _counts(gist: Gist | None) -> Counts:
    if gist is None or not (gist.tokens or gist.calls or gist.tools):
        return _NO_COUNTS
    counts: dict[tuple[str, str, str], int] = {}
    for model, tokens in gist.tokens.items():
        for kind, number in zip(Tokens._fields, tokens, strict=True):
            counts["tokens", model, kind] = number
    for model, number in gist.calls.items():
        counts["calls", model, ""] = number
    for name, number in gist.tools.items():
        counts["tools", name, ""] = number
    return Counter(counts)


def _holder_order(turn: _HeldTurn, outlines: Mapping[str, Outline]) -> tuple[int, int, str, str]:
    """By time, and at the same time a session before those that left it."""
    outline = outlines.get(turn.session)
    parent, depth = outline, 0
    while parent is not None and parent.parent and depth < len(outlines):
        parent, depth = outlines.get(parent.parent), depth + 1
    return turn.row.time, depth, outline.created if outline else "", turn.row.commit


def _held_turns(index: Index, outlines: Mapping[str, Outline], progress: Progress) -> Iterator[_HeldTurn]:
    """Yield the turns of the store, those that several sessions have with different lines once for each of these.

    A turn is held by the session that its commit was made for, or by one that has it if that session is gone. A turn
    that a merge copied counts where it comes from.
    """
    rows = [(row, gist) for row, gist in index.every_turn() if _GRAFT_EVENT not in row.text]
    unknown = [(row, gist) for row, gist in rows if gist is None or gist.subagents is None]
    read = dict[str, Gist]()
    for row, gist in counted(unknown, progress):
        try:
            known = index.gists([row.commit]).get(row.commit) if gist else None
            read[row.commit] = _read_gist(index, outlines, row, row.commit, known)
            index.remember({row.commit: read[row.commit]})  # each at once, so that an interruption loses none
        except SessgitError:  # a damaged turn does not stop the count of all others
            read[row.commit] = gist or turn_log.gist_from_trailers(row)
    for row, gist in rows:
        yield _HeldTurn(_holder(row, outlines), row, read.get(row.commit) or gist or Gist())
    yield from _grown_in_forks(index, outlines)


def _holder(row: Row, outlines: Mapping[str, Outline]) -> str:
    session = row.trailer("Session")
    return session if session in outlines else layout.session_of(row.branch)


def _grown_in_forks(index: Index, outlines: Mapping[str, Outline]) -> Iterator[_HeldTurn]:
    """Yield the last turn that each fork of the client shares, if the fork's own file has other lines of it.

    The turn's commit is then that of the session that was left, and the fork's tip has the other lines.
    """
    for name in (outline.name for outline in outlines.values() if outline.parent):
        branch = index.branch(name)
        origin = branch.state.origin if branch else None
        row = index.turn(name, origin.turn) if origin and not origin.prefix else None
        if branch is None or row is None or _holder(row, outlines) == name:
            continue
        store, folder = index.open_store(), layout.turn_folder(row.turn)
        try:
            if len({store.entry(commit, folder) for commit in (branch.tip, row.commit)}) > 1:
                yield _HeldTurn(name, row, _read_gist(index, outlines, row, branch.tip, None))
        except SessgitError:
            continue  # a damaged turn adds nothing


def _read_gist(index: Index, outlines: Mapping[str, Outline], row: Row, commit: str, known: Gist | None) -> Gist:
    """Return the gist of a turn as of a commit, subagents included; `known` is the gist without those, if there is
    one."""
    store = index.open_store()
    agent = agents.of_turn(store, row)
    body: list[Line] = []
    holder = index.branch(_holder(row, outlines))
    if known is None or agent.sidecars.may_be_inline(holder.state.agent_version if holder else ""):
        body = agent.parsed(store.lines(commit, row.turn).body)
    own = known or (agent.cells.describe(body).gist if body else turn_log.gist_from_trailers(row))
    files, seen = turn_log.subagent_files(store, commit, row.turn), set[str]()
    for name in (name for name, data in files.items() if agent.sidecars.goes_on(data)):
        earlier = (turn_log.subagent_files(store, commit, number) for number in range(row.turn - 1, 0, -1))
        seen.update(agent.sidecars.messages(next((parts[name] for parts in earlier if name in parts), b"")))
    return replace(own, subagents=agent.sidecars.gist(body, files.values(), seen))
