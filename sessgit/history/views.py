"""Reads turns, and tells sessions and turns as JSON.

The keys of `session_json` and `turn_json` are a contract: keys are only ever added.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sessgit import agents
from sessgit.errors import DamageError, NotFoundError, SessgitError
from sessgit.history import program_lines
from sessgit.model import canonical, prices, stored_fields
from sessgit.model.conversation.message import parse_tools
from sessgit.model.conversation.turn import Gist, Tokens, Turn
from sessgit.model.line_list import Bytes, file_of_split
from sessgit.model.prices import Price
from sessgit.model.progress import Progress, counted, no_progress
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row

if TYPE_CHECKING:
    from sessgit.agents.line import Line
    from sessgit.model.conversation.content import Piece
    from sessgit.model.conversation.session import Session
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
    return program_lines.add_to_turn(store, tip, row.prompt, body)


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
