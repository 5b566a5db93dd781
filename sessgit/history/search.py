"""Searches the texts of all conversations, and their names, titles, labels, descriptions, ids and scratchpads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.history import fulltext_update
from sessgit.history.fulltext_update import TurnTexts
from sessgit.history.resolve import session_title
from sessgit.model import canonical, ids
from sessgit.model.conversation.turn import Cell
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.model.search_query import Query, Snippet, as_beginnings, make_snippet, parse_query
from sessgit.store import cache_file, fulltext_search, layout, project
from sessgit.store.fulltext import TextIndex
from sessgit.store.fulltext_search import Hit, TextQuery
from sessgit.store.index import Branch, Index, Outline, Row

COLUMNS_BY_PLACE = {"prompts": ("asked",), "answers": ("answered",), "tools": ("did",)}
"""The columns of the full-text index for each place that can be searched."""
METADATA_FIELDS = ("name", "title", "label", "description", "source", "pad")
"""The fields of a conversation that are searched besides its turns, the most important first."""
_LOCK_WAIT = 60.0
"""Seconds to wait while another process adds a batch of turns to the full-text index."""
_KINDS_BY_COLUMN = {"asked": ("prompt",), "answered": ("answer", "thinking"), "did": ("tool", "notice")}

T = TypeVar("T")


@frozen
class SearchHit:
    """A turn that matches: its best line, the `kind` of that (prompt, answer, thinking, tool or notice), the tool's
    name, and the ordinal of the line's cell, or 0."""

    branch: Branch
    row: Row
    line: int
    kind: str
    tool: str
    cell: int
    snippet: Snippet
    left_behind: bool

    @property
    def place(self) -> str:
        """The turn, or the cell if the line is in one: `7`, `7.3`."""
        return f"{self.row.turn}.{self.cell}" if self.cell else str(self.row.turn)


@frozen
class MetadataHit:
    """A conversation whose name, title, labels, description, id in the system that it was imported from, and scratchpad
    match.

    `matched` are the fields that match any part of the query, the best first; `snippet` is a part of that one.
    """

    branch: Branch
    matched: tuple[str, ...]
    snippet: Snippet


@frozen
class SearchResults:
    """The best turns; `total` is the number of turns that match, a minimum if not `exact`. `behind` says why recent
    turns are missing, if they are. `searched` is the query that found them, if it is not the one asked
    for. `conversations` are the newest of the `total_conversations` whose metadata match."""

    turns: list[SearchHit]
    total: int
    exact: bool
    behind: str
    conversations: list[MetadataHit]
    total_conversations: int
    searched: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.total and not self.total_conversations


@frozen
class SearchScope:
    """Where to search: one branch or all branches of a session, or all sessions `without` one, the project at a folder,
    sessions with a label or with an agent, `prompts`, `answers` or `tools`, calls of a tool, turns since a time, and
    turns that end with one of some commits."""

    session: str = ""
    without: str = ""
    folder: str = ""
    label: str = ""
    agent: str = ""
    place: str = ""
    tool: str = ""
    since: float | None = None
    commits: Collection[str] | None = None


def search(index: Index, text: str, where: SearchScope, limit: int, length: int, progress: Progress) -> SearchResults:
    """Return what matches, the best first, with snippets of about `length` characters; if nothing does, what has words
    that begin like those of the query. The index must be up to date."""
    results = _search_words(index, text, where, limit, length, progress)
    if not results.is_empty or not (beginnings := as_beginnings(text)):
        return results
    wider = _search_words(index, beginnings, where, limit, length, progress)
    return results if wider.is_empty else replace(wider, searched=beginnings)


def _search_words(
    index: Index, text: str, where: SearchScope, limit: int, length: int, progress: Progress
) -> SearchResults:  # fmt: skip
    query = parse_query(text)
    columns = COLUMNS_BY_PLACE.get(where.place, ("did",) if where.tool else fulltext_search.COLUMNS)
    wanted = TextQuery(query, columns, where.tool, _branches_to_search(index, where), where.since, where.commits)
    best, behind = _query_fulltext(index, lambda words: fulltext_search.find_turns(words, wanted, limit), progress)
    matching = (
        []
        if where.place or where.tool or where.commits is not None
        else _metadata_matches(index, query, wanted.branches, where.since)
    )
    newest = matching[:limit]
    names = [*(hit.branch for hit in best.hits), *(titles.session for titles, _ in newest)]
    branches = {branch.name: branch for branch in index.branches_named(names)}
    hits = (
        _search_hit(index, branches[hit.branch], hit, wanted, length) for hit in best.hits if hit.branch in branches
    )
    conversations = list[MetadataHit]()
    for titles, texts in newest:
        if titles.session in branches:
            held = {kind: query.held(text) for kind, text in zip(METADATA_FIELDS, texts, strict=True)}
            matched = sorted(filter(held.get, held), key=lambda kind: -held[kind])
            shown = make_snippet(texts[METADATA_FIELDS.index(matched[0])], query, length)
            conversations.append(MetadataHit(branches[titles.session], tuple(matched), shown))
    turns = [hit for hit in hits if hit]
    return SearchResults(turns, best.total, best.exact, behind, conversations, len(matching))


def results_json(query: str, results: SearchResults) -> dict[str, Any]:
    """Return what `search --json` prints."""
    return {
        "query": query,
        "searched": results.searched or query,
        "total": results.total,
        "exact": results.exact and not results.behind,
        "hits": [_turn_json(hit) for hit in results.turns],
        "total_conversations": results.total_conversations,
        "conversations": [_conversation_json(hit) for hit in results.conversations],
    }


def _conversation_json(hit: MetadataHit) -> dict[str, Any]:
    state = hit.branch.state
    return {
        "id": hit.branch.name,
        "updated": state.updated or None,
        "project": state.project,
        "title": session_title(state),
        "matched": list(hit.matched),
        **_snippet_json(hit.snippet),
    }


def _turn_json(hit: SearchHit) -> dict[str, Any]:
    return {
        "address": f"{hit.branch.name}@{hit.place}",
        "session_id": hit.branch.session,
        "turn": hit.row.turn,
        "cell": hit.cell or None,
        "line": hit.line,
        "time": canonical.rfc3339(hit.row.time),
        "project": hit.branch.state.project,
        "title": session_title(hit.branch.state),
        "kind": hit.kind,
        "tool": hit.tool or None,
        "left_behind": hit.left_behind,
        **_snippet_json(hit.snippet),
    }


def _snippet_json(snippet: Snippet) -> dict[str, Any]:
    return {"snippet": snippet.text, "matches": [list(span) for span in snippet.matches]}


def turns_at(index: Index, where: SearchScope, limit: int, length: int) -> SearchResults:
    """Return the turns of the scope's commits that are on its branches since its time, whatever was said in them, the
    newest first."""
    branches = _branches_to_search(index, where)
    places = index.turns_of_commits(list(where.commits or ()))
    rows = [row for name, turn in places.values() if (row := index.turn(name, turn))]
    rows = [row for row in rows if (branches is None or row.branch in branches) and row.time >= (where.since or 0)]
    rows.sort(key=lambda row: (-row.time, row.branch, -row.turn))
    known = {branch.name: branch for branch in index.branches_named([row.branch for row in rows[:limit]])}
    hits = [
        SearchHit(
            known[row.branch], row, 1, "prompt", "", 0, Snippet(canonical.one_line(index.title(row), length), ()),
            layout.is_rewound_branch(row.branch),
        )
        for row in rows[:limit]
        if row.branch in known
    ]  # fmt: skip
    return SearchResults(hits, len(rows), True, "", [], 0)


def sessions_with(index: Index, text: str, progress: Progress = no_progress) -> tuple[list[str], str]:
    """Return the sessions with a turn that matches, rewound or not, that with the newest turn first, then those whose
    metadata match; and why recent turns are missing, or ``""``. If there are none, words may begin like those."""
    wanted = TextQuery(parse_query(text))
    branches, behind = _query_fulltext(index, lambda words: fulltext_search.find_branches(words, wanted), progress)
    sessions = [*map(layout.session_of, branches)]
    sessions += [titles.session for titles, _ in _metadata_matches(index, wanted.query)]
    beginnings = as_beginnings(text)
    return sessions_with(index, beginnings) if beginnings and not sessions else (list(dict.fromkeys(sessions)), behind)


def update_fulltext(
    index: Index,
    progress: Progress = no_progress,
) -> str:
    """Update the full-text index; returns why that failed, or ``""``."""
    try:
        return _query_fulltext(index, lambda _: None, progress)[1]
    except StoreError as error:
        return str(error)


def _query_fulltext(
    index: Index,
    question: Callable[[TextIndex], T],
    progress: Progress,
) -> tuple[T, str]:
    """Update the full-text index and return its answer, and why it may lack turns. A damaged index is rebuilt."""
    for attempt in (0, 1):
        try:
            words = TextIndex(index.path, _LOCK_WAIT)
        except sqlite3.Error as error:
            raise StoreError(f"cannot create the full-text index: {error}", "It needs SQLite with FTS5.") from error
        try:
            behind = _update_for_query(index, words, progress)
            return question(words), behind
        except sqlite3.Error as error:
            if attempt or not cache_file.is_damage(error):
                raise StoreError(f"cannot use the full-text index: {error}", "Try again later.") from error
            words.remove()
        finally:
            words.close()
    raise AssertionError


def _update_for_query(index: Index, words: TextIndex, progress: Progress) -> str:
    if fulltext_update.is_up_to_date(index, words):
        return ""
    if words.read_only:
        return "cannot write the full-text index: the most recent turns are not searched"
    try:
        fulltext_update.update_fulltext(index, words, progress)
    except sqlite3.OperationalError as error:
        if cache_file.is_damage(error):
            raise
        return f"the full-text index is behind: {error}"
    return ""


def _branches_to_search(index: Index, where: SearchScope) -> list[str] | None:
    """Return the branches to search, or None for all."""
    if not any((where.session, where.without, where.folder, where.label, where.agent)):
        return None
    every, key = index.branch_outlines(), cache(project.project_key)
    heads = [one for one in every if one.name == one.session]
    labelled = {head.name for head in heads if where.label and where.label in json.loads(head.labels)}
    return sorted(
        one.name
        for one in every
        if where.session in ("", one.name, one.session)
        and one.session != where.without
        and (not where.folder or (one.project and key(one.project) == key(where.folder)))
        and (not where.label or one.session in labelled)
        and where.agent in ("", one.agent)
    )


def _metadata_matches(
    index: Index, query: Query, branches: Collection[str] | None = None, since: float | None = None
) -> list[tuple[Outline, Sequence[str]]]:
    """Return the sessions whose metadata together match, the newest first, each with these texts, in the order of
    `METADATA_FIELDS`."""
    noted = index.noted()
    moment = "" if since is None else canonical.rfc3339(since)
    among = None if branches is None else set(branches)
    sessions = [one for one in index.outlines() if (among is None or one.name in among) and one.updated >= moment]
    texts = (
        (one.authored_name, one.title, ", ".join(json.loads(one.labels)), one.description,
         *noted.get(one.name, ("", "")))
        for one in sessions
    )  # fmt: skip
    return [(one, each) for one, each in zip(sessions, texts, strict=True) if query.fits(each)]


def _search_hit(index: Index, branch: Branch, hit: Hit, wanted: TextQuery, length: int) -> SearchHit | None:
    row = index.turn(hit.branch, hit.number)
    if row is None:
        return None
    kinds = {kind for column in wanted.columns for kind in _KINDS_BY_COLUMN[column]}
    try:
        store = index.open_store()
        texts = TurnTexts(agents.of_turn(store, row), store, row.commit, row.turn)
        parts = [part for part in texts.line(hit.line) if part.kind in kinds]
        if not parts:
            return None
        part = max(parts, key=lambda part: wanted.query.held(part.text))
        cells = [] if part.kind == "prompt" else store.cells(row.commit, row.turn)
    except (SessgitError, ValueError):
        return None
    ordinal = _cell_ordinal(cells, ids.cell_id(row.prompt, part.call) if part.call else "", hit.line)
    tool = cells[ordinal - 1].operation if part.call and ordinal else part.tool
    shown = make_snippet(part.text, wanted.query, length)
    return SearchHit(branch, row, hit.line, part.kind, tool, ordinal, shown, hit.left_behind)


def _cell_ordinal(cells: Sequence[Cell], call: str, line: int) -> int:
    """Return the ordinal of the cell of a tool's call, or of the model's message on a line, else 0."""
    for ordinal, cell in enumerate(cells, start=1):
        if cell.id == call if call else cell.type != "tool" and line in cell.lines:
            return ordinal
    return 0
