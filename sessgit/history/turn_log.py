"""The turns of a branch: what their lines say, what left the branch on the way, sessions and turns as JSON; families.

The keys of `session_json` and `turn_json` are a contract: keys are only ever added.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from sessgit import agents
from sessgit.errors import DamageError, NotFoundError, SessgitError
from sessgit.model import canonical, prices, stored_fields
from sessgit.model.conversation.message import parse_tools
from sessgit.model.conversation.turn import Gist, Tokens, Turn
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, file_of_split
from sessgit.model.prices import Price
from sessgit.model.progress import Progress, counted, no_progress
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, ForkPlace, Index, Outline, Row

if TYPE_CHECKING:
    from sessgit.agents.line import Line
    from sessgit.model.conversation.content import Piece
    from sessgit.model.conversation.session import Session
    from sessgit.store.objects import Entry
    from sessgit.store.store import Store

Prices = Mapping[str, Price]
_GLOB_CHARS = frozenset("*?[")


def read_turn(store: Store, tip: str, row: Row) -> Turn:
    """Return what a turn's lines say, as the branch with the tip `tip` has them."""
    return agents.of_turn(store, row).cells.describe(body_of(store, tip, row))


def read_pieces(store: Store, branch: Branch, row: Row) -> tuple[Turn, list[Piece]]:
    """Return what the lines of a turn say, as a whole and piece by piece."""
    return agents.of(branch.state).content.parse_turn(body_of(store, branch.tip, row))


def body_of(store: Store, tip: str, row: Row) -> list[Line]:
    """Return the lines of a turn from its prompt on, with those of programs that the transcript does not have; raises
    DamageError if there are none."""
    try:
        stored = store.lines(tip, row.turn)
    except NotFoundError:  # it was recorded after the tip was read
        stored = store.lines(row.commit, row.turn)
    body = agents.of_turn(store, row).parsed(stored.body)
    if not body:
        raise DamageError(
            f"turn {row.turn} of {row.branch} has no lines", f"`sessgit repair {row.branch}` repairs what it can."
        )
    return _with_program_lines(store, tip, row.prompt, body)


def subagent_files(store: Store, commit: str, turn: int) -> dict[str, Bytes]:
    """Return what was recorded of subagents' files with a turn, by the files' names."""
    files = store.files(commit, f"{layout.turn_folder(turn)}/{layout.SUBAGENTS}")
    return {
        name: file_of_split(store.objects.lines(oid)) for name, (oid, _) in files.items() if name.endswith(".jsonl")
    }


def turn_gists(context: Context, branch: Branch, rows: Sequence[Row], progress: Progress = no_progress) -> list[Gist]:
    """Return the gist of each turn of a branch, from the index or from the turn's lines; raises the damage of a turn
    that cannot be read. `progress` counts the turns that are read."""
    known = context.index.gists([row.commit for row in rows])
    unknown = [row for row in rows if row.commit not in known]
    if unknown:
        known |= _read_gists(context, {branch.name: branch.tip}, unknown, progress)
        for row in unknown:
            if row.commit not in known:
                read_turn(context.store, branch.tip, row)
    return [known[row.commit] for row in rows]


def indexed_gists(index: Index, rows: Sequence[Row]) -> list[Gist]:
    """Return the gist of each turn without reading any: of a turn that the index lacks, what its trailers tell."""
    known = index.gists([row.commit for row in rows])
    return [known.get(row.commit) or gist_from_trailers(row) for row in rows]


def gist_from_trailers(row: Row) -> Gist:
    """Return the tokens and the tools in the trailers of a turn's last commit; files are not among them."""
    model = row.trailer("Model")
    return Gist(tokens={model: row.tokens} if model else {}, tools=parse_tools(row.trailer("Tools")))


def _read_gists(context: Context, tips: Mapping[str, str], rows: Sequence[Row], progress: Progress) -> dict[str, Gist]:
    """Return the gists of turns by their last commits, without those of damaged turns, and save each in the index, so
    that an interruption loses none; `tips` are those of the branches."""
    read: dict[str, Gist] = {}
    for row in counted(rows, progress):
        with suppress(SessgitError):
            read[row.commit] = read_turn(context.store, tips[row.branch], row).gist
            context.index.remember({row.commit: read[row.commit]})
    return read


def sum_tokens(turns: Iterable[Gist | Turn]) -> dict[str, Tokens]:
    """Return the tokens of turns by model, without those of their subagents."""
    sums: dict[str, Tokens] = {}
    for turn in turns:
        for model, tokens in turn.tokens.items():
            sums[model] = sums.get(model, Tokens()) + tokens
    return sums


def commits_touching(context: Context, paths: Sequence[str], cwd: str, progress: Progress) -> set[str]:
    """Return the last commits of the turns in which a tool read or changed one of the files. Turns whose gists are not
    in the index are read first; damaged ones are left out.

    A path is a file, a folder with all below it, or a glob; a relative one is in `cwd`, or is what the tool was given.
    """
    rows = context.index.without_gist()
    if rows:
        _read_gists(context, {branch.name: branch.tip for branch in context.index.branches()}, rows, progress)
    return {commit for place in _places(paths, cwd) for commit in context.index.commits_touching(place)}


def sessions_touching(context: Context, paths: Sequence[str], cwd: str, progress: Progress) -> set[str]:
    """Return the sessions in which a tool read or changed one of the files, also those of which only the system that
    they come from says so."""
    found, places = commits_touching(context, paths, cwd, progress), _places(paths, cwd)
    imported = context.index.imported_facts()
    return context.index.sessions_holding(found) | {
        name
        for name, facts in imported.items()
        if isinstance(files := facts.get("files"), list)
        and any(
            fnmatch.fnmatchcase(str(file), pattern)
            for file in files
            for place in places
            for pattern in (place, f"{place}/*")
        )
    }


def _places(paths: Sequence[str], cwd: str) -> set[str]:
    """Return the places that paths may name, as patterns of SQLite's GLOB."""
    named = [path if _GLOB_CHARS.intersection(path) else path.replace("[", "[[]") for path in paths]
    return {os.path.normpath(place) for path in named for place in (os.path.join(cwd, path), path)}  # noqa: PTH118


def session_cost(state: Session, overrides: Prices) -> float | None:
    """Return the US dollars for all that the session used, or None if the price of a model is unknown; what a program
    gave, if that is more."""
    cost, given = prices.token_cost(state.tokens, overrides), state.unified.budget.cost_usd
    return cost if given is None else max(cost or 0.0, given)


def rounded_cost(cost: float | None) -> float | None:
    """Return US dollars as documents have them; None if unknown."""
    return None if cost is None else round(cost, 6)


def total_tokens(state: Session) -> Tokens:
    """Return the tokens of all models together."""
    return sum(state.tokens.values(), Tokens())


def session_json(branch: Branch, overrides: Prices) -> dict[str, Any]:
    """Return a session as `ls --json` and `log --json` print it; times are RFC 3339 in UTC or null."""
    state = branch.state
    price = session_cost(state, overrides)
    return {
        "id": branch.name,
        "agent_id": state.agent_id,
        "name": state.name,
        "title": state.title,
        "first_prompt": state.first_prompt,
        "agent": state.agent,
        "project": state.project,
        "git_branch": state.git_branch,
        "created": state.created or None,
        "updated": state.updated or None,
        "turns": state.turns,
        "messages": state.messages,
        "state": state.state,
        "stage": state.stage,
        "labels": list(state.labels),
        "description": state.description,
        "headless": state.is_headless,
        "archived": branch.archived,
        "parent": state.origin.session if state.origin else None,
        "fork_turn": state.origin.turn if state.origin else None,
        "child_of": state.unified.metadata.parent,
        "role": state.unified.metadata.role,
        "tokens": total_tokens(state).as_json(),
        "cost_usd": rounded_cost(price),
    }


def turn_json(row: Row, turn: Turn, overrides: Prices) -> dict[str, Any]:
    """Return a turn as `log --json` and `diff --json` print it."""
    price = prices.token_cost(turn.tokens, overrides)
    return {
        "turn": row.turn,
        "branch": row.branch,
        "commit": row.commit,
        "commits": list(row.commits),
        "event": row.trailer("Event"),
        "time": turn.time or canonical.rfc3339(row.time),
        "prompt": turn.prompt,
        "prompt_uuid": row.prompt,
        "answer": turn.answer,
        "model": turn.model or None,
        "tools": turn.tools,
        "cells": stored_fields.to_json(turn.cells),
        "files": list(turn.files),
        "tokens": turn.total.as_json(),
        "cost_usd": rounded_cost(price),
    }


# Lines that programs added
#
# Cells and reasons that a program added to a turn of the client while it was running are in `pad/cells.<key>.jsonl` of
# a commit's tree, `<key>` being that of the turn, and never in the transcript: the model does not see them.

_PREFIX, _SUFFIX = "cells.", ".jsonl"
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")


def program_file_name(key: str) -> str:
    """Return the name of the file in `pad/` for the turn with this key."""
    name = key if _NAME.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{_PREFIX}{name}{_SUFFIX}"


def is_program_file(name: str) -> bool:
    """Return whether a file in `pad/` holds lines of programs."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def program_line_files(store: Store, tip: str) -> dict[str, Entry]:
    """Return the files of all turns as of a commit, by name."""
    entries = store.entries(tip, layout.PAD).items()
    return {name: entry for name, entry in entries if is_program_file(name) and not entry[1]}


def program_lines(store: Store, tip: str, key: str) -> list[bytes]:
    """Return the lines that programs added to a turn, as of a commit."""
    entry = store.entry(tip, f"{layout.PAD}/{program_file_name(key)}")
    return [line for line in store.objects.blob(entry[0]).split(b"\n") if line] if entry and not entry[1] else []


def _with_program_lines(store: Store, tip: str, key: str, body: list[Line]) -> list[Line]:
    """Return the lines of the turn with this key together with those of programs, as of a commit: each of these before
    the first line that is later."""
    added = program_lines(store, tip, key)
    if not added:
        return body
    out, waiting = body[:1], agents.of_commit(store, tip).parsed(added)
    for line in body[1:]:
        while waiting and line.time and waiting[0].time < line.time:
            out.append(waiting.pop(0))
        out.append(line)
    return out + waiting


# The log of a branch


@frozen
class SideBranch:
    """A side branch that has `count` turns after turn `turn` which the branch lacks: a rewind left them behind, or they
    are from another machine. `merged` of them were merged back since."""

    branch: Branch
    turn: int
    count: int
    merged: int = 0

    @property
    def open(self) -> int:
        """The number of turns that were not merged back."""
        return max(0, self.count - self.merged)

    @property
    def rewound(self) -> bool:
        """Whether a rewind left them behind."""
        return layout.is_rewound_branch(self.branch.name)


@frozen
class ForkEntry:
    """A session that left this one: the last turn that it shares with the branch, the cell of the next turn if it left
    inside that, as `7.3`, and where it `left` this session, which may be another branch of it."""

    branch: Branch
    turn: int
    cell: str
    left: ForkPlace

    @property
    def is_elsewhere(self) -> bool:
        """Whether it left another branch of the session, after that one's fork from this one."""
        return (self.turn, self.cell) != (self.left.turn, self.left.cell)


@frozen
class BranchLog:
    """The turns of a branch, oldest first, with forks and side branches by the last turn that they share with it."""

    branch: Branch
    rows: list[Row]
    forks: dict[int, list[ForkEntry]] = field(default_factory=dict)
    left: dict[int, list[SideBranch]] = field(default_factory=dict)
    merged: dict[int, list[str]] = field(default_factory=dict)
    """By turn the branches that were merged after it, including those without a turn to copy."""
    narrowed: bool = False
    """Whether a filter left out turns."""


@frozen
class TurnFilter:
    """Which turns to select: those since a time (seconds since 1970), those that used a tool, those that end with one
    of some commits. None or empty selects all."""

    since: float | None = None
    tool: str = ""
    commits: Collection[str] | None = None

    @property
    def narrows(self) -> bool:
        """Whether it can leave out a turn."""
        return self.since is not None or bool(self.tool) or self.commits is not None

    def select(self, index: Index, branch: Branch, rows: list[Row]) -> list[Row]:
        """Return the turns that fit. Those of which the index does not know the tools are read from the store."""
        if self.since is not None:
            rows = [row for row in rows if row.time >= self.since]
        if self.commits is not None:
            rows = [row for row in rows if row.commit in self.commits]
        if not self.tool:
            return rows
        gists = turn_gists(Context(index), branch, rows)
        tool = self.tool.lower()
        return [row for row, gist in zip(rows, gists, strict=True) if any(name.lower() == tool for name in gist.tools)]


def branch_log(
    index: Index,
    branch: Branch,
    turn: int | None = None,
    limit: int | None = None,
    only: TurnFilter | None = None,
) -> BranchLog:
    """Return the log of a branch up to a turn, or of all of it, with the last `limit` turns that fit the filter."""
    session = branch.session
    end = branch.state.turns if turn is None else turn
    narrowed = only is not None and only.narrows
    if only is not None and narrowed:
        rows = only.select(index, branch, index.turns(branch.name, 1, end))
        rows = rows if limit is None else rows[max(0, len(rows) - limit) :]
    else:
        rows = index.turns(branch.name, 1 if limit is None else end - limit + 1, end)
    forks: dict[int, list[ForkEntry]] = {}
    for fork in sorted(index.forks_of(session), key=lambda fork: (fork.state.created, fork.name)):
        at = index.fork_place(fork)
        if fork.name != session and at is not None and (shared := last_shared_turn(index, branch.name, at)) <= end:
            cell = at.cell if at.branch == branch.name else ""
            forks.setdefault(shared, []).append(ForkEntry(fork, shared, cell, at))
    left: dict[int, list[SideBranch]] = {}
    for side in side_branches(index, branch):
        if side.turn <= end:
            left.setdefault(side.turn, []).append(side)
    merged: dict[int, list[str]] = {}
    if index.has_silent_merges(branch.name):
        with suppress(SessgitError):  # merges of a damaged history are not listed
            for theirs, number in list_merges(index.open_store(), branch):
                merged.setdefault(number, []).insert(0, theirs)
    return BranchLog(branch, rows, forks, left, merged, narrowed)


def last_shared_turn(index: Index, branch: str, left: ForkPlace) -> int:
    """Return the last turn that a fork shares with a branch of the session that it left, maybe from another branch."""
    if left.branch == branch:
        return left.turn
    last, count = index.left_behind(left.branch, branch)
    return min(left.turn, last) if count else left.turn


def side_branches(index: Index, branch: Branch) -> Iterator[SideBranch]:
    """Yield by name the side branches of the branch's session that have turns which the branch lacks."""
    others = [other for other in index.side_branches(branch.session) if other != branch.name]
    merged = index.merged_turns(branch.name) if others else {}
    for other in index.branches_named(others):
        last, count = index.left_behind(other.name, branch.name)
        if count:
            parts = merged.get(other.name, ())
            back = sum(any(number in part for part in parts) for number in range(last + 1, last + count + 1))
            yield SideBranch(other, last, count, back)


def list_merges(store: Store, branch: Branch) -> Iterator[tuple[str, int]]:
    """Yield the branches that were merged into a branch, each with the last turn that it had then; a fork has none of
    those of the session that it left."""
    waiting: list[str] = []
    for commit in store.repo.first_parents(branch.tip):
        message = store.message(commit.id)
        is_own = message.get("Session") == branch.name
        if is_own and message.get("Event") == "merge":
            named = message.get("Origin").partition("@")[0]
            merged = [store.message(parent).get("Session") for parent in commit.parents[1:]]
            waiting += [named if layout.session_of(named) == session else session for session in merged]
        if number := message.number("Turn"):
            yield from ((theirs, number) for theirs in waiting if theirs != branch.name)
            waiting = []
        if not is_own and not waiting:
            return


# Families


def grouped(outlines: Iterable[Outline], link: Literal["parent", "child_of", "above"]) -> dict[str, list[Outline]]:
    """Return the forks of each session, its children, or both, in their order."""
    above, groups = attrgetter(link), dict[str, list[Outline]]()
    for outline in outlines:
        if above(outline) and above(outline) != outline.name:
            groups.setdefault(above(outline), []).append(outline)
    return groups


def families(outlines: Iterable[Outline]) -> list[list[tuple[Outline, int]]]:
    """Return the families of the sessions, each as its sessions and their depth, every session before its forks and
    children and older ones first. A session whose parent is not among them is the first of a family.

    If sessions name each other as parents, as only in a damaged store, the first by name is the first of the family.
    """
    known = {outline.name: outline for outline in outlines}
    forks = grouped(known.values(), "above")
    for members in forks.values():
        members.sort(key=lambda fork: (fork.created, fork.name), reverse=True)
    found = []
    for root in dict.fromkeys(_family_roots(known).values()):
        family, waiting = [], [(known[root], 0)]
        while waiting:
            outline, depth = waiting.pop()
            family.append((outline, depth))
            waiting += [(fork, depth + 1) for fork in forks.get(outline.name, ()) if fork.name != root]
        found.append(family)
    return found


def session_family(index: Index, branch: Branch) -> list[tuple[Branch, int]]:
    """Return the sessions of the branch's family and their depth, every session before its forks."""
    session = branch.session
    own = next((one for one in families(index.outlines()) if any(member.name == session for member, _ in one)), [])
    branches = {found.name: found for found in index.branches_named([member.name for member, _ in own])}
    return [(branches[member.name], depth) for member, depth in own if member.name in branches]


def _family_roots(known: Mapping[str, Outline]) -> dict[str, str]:
    """Return the first session of each session's family, in the order of the sessions."""
    parents = {o.name: o.above for o in known.values() if o.above in known and o.above != o.name}
    roots: dict[str, str] = {}
    for start in known:
        path: dict[str, int] = {}
        name = start
        while name not in roots and name not in path and name in parents:
            path[name] = len(path)
            name = parents[name]
        root = roots.get(name) or (min(list(path)[path[name] :]) if name in path else name)
        roots.update(dict.fromkeys([*path, name], root))
    return {name: roots[name] for name in known}
