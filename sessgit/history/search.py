"""Searches the texts of all conversations, and their names, titles, labels, descriptions, ids and scratchpads.

The full-text index says which turns match, and which line of each matches best. Before a search, it gets the turns that
branches got since the last one.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from sqlite3 import Connection
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.model import canonical, ids, json_strings
from sessgit.model.conversation.turn import Cell
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.model.search_query import (
    Query,
    Snippet,
    Term,
    as_beginnings,
    make_snippet,
    parse_query,
    space_single_char_words,
)
from sessgit.store import layout, project, refs
from sessgit.store.fulltext import LINE_BITS, LINE_MASK, Body, TextIndex, Texts, Turn, Words, plain, tool_word, words_of
from sessgit.store.index import Branch, Index, Outline, Row, is_damage
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.agents import Agent
    from sessgit.agents.values import Said

COLUMNS = ("asked", "answered", "did")
_WEIGHTS = "10.0, 4.0, 1.0, 0.0"
_MOST_ROWS = 5_000
"""Turns are not ranked by a word in more lines than this; the newest come first."""
_RECENCY_SECONDS = 30 * 86_400.0
_RERANKED = 500
_FEW_TURNS = 200
"""Up to this number each turn is searched for a frequent word; for more, all lines with the word are read."""
_EXTRA_TURNS = 50
"""Number of turns that are searched beyond the limit, since some may be on no branch."""
_SELECT_TURNS = "SELECT turn FROM blocks WHERE id IN (SELECT rowid >> ? FROM words WHERE words MATCH ?)"
_IN_BRANCHES = "name IN (SELECT value FROM json_each(?))"


@frozen
class TextQuery:
    """What to search for, and where: in which columns, in calls of which tool, on which branches, since when, in turns
    that end with which commits."""

    query: Query
    columns: Sequence[str] = COLUMNS
    tool: str = ""
    branches: Sequence[str] | None = None
    since: float | None = None
    commits: Collection[str] | None = None


@frozen
class Hit:
    """The best line of a turn, by the turn's place on a branch."""

    branch: str
    number: int
    line: int


@frozen
class TextHits:
    """The best turns, and how many match: at least so many if not `exact`."""

    hits: list[Hit]
    total: int
    exact: bool = True


def find_turns(text: TextIndex, query: TextQuery, limit: int) -> TextHits:
    """Return the best turns that match: each group of terms is in one of their lines.

    Turns rank higher that have a rare word often, in a prompt, or all words in one line; of similar turns the newest
    come first. If all words are frequent, the newest turns come first, and those long past are not counted.
    """
    db = text.db
    groups = [_match_expression(query, group) for group in query.query.groups]
    all_groups = " AND ".join(f"({group})" for group in groups) if len(groups) > 1 else ""
    newest = [_newest_rows(db, group) for group in groups]
    turn_of = [_turns_of_blocks(db, rows) if len(rows) <= _MOST_ROWS else None for rows in newest]
    rarest = min(range(len(groups)), key=lambda n: len(newest[n]))
    blocks, exact = turn_of[rarest], True
    best: dict[int, int] = {}
    if blocks is not None:
        lines = _lines_in_branches(db, query, blocks)
        best, ordered = _rank_turns(db, lines, groups[rarest], all_groups, _matching_turns(db, query, groups, turn_of))
    else:
        if query.branches is None and query.since is None and query.commits is None:
            without = [_newest_rows(db, _match_expression(query, (term,))) for term in query.query.without]
            best = _recent_matches(db, newest, without)
        exact = len(best) < limit
        ordered = _sort_by_time(db, _matching_turns(db, query, groups, turn_of) if exact else best)
        if exact:
            best = _first_matching_rows(db, query, ordered[: limit + _EXTRA_TURNS], groups[rarest])
    hits: list[Hit] = []
    for turn in ordered:
        if len(hits) == limit:
            break
        if turn in best and (hit := _locate_hit(db, best[turn], query)):
            hits.append(hit)
    return TextHits(hits, len(ordered), exact)


def find_branches(text: TextIndex, query: TextQuery) -> list[str]:
    """Return the branches with a turn that matches, the one with the newest such turn first."""
    groups = [_match_expression(query, group) for group in query.query.groups]
    sql = """SELECT name FROM json_each(?) JOIN placed ON turn = value JOIN branches ON branches.id = branch
        JOIN turns ON turns.id = value GROUP BY name ORDER BY max(time) DESC, name"""
    turns = _matching_turns(text.db, query, groups, [None] * len(groups))
    return [name for (name,) in text.db.execute(sql, (_json_array(turns),))]


def _newest_rows(db: Connection, match: str) -> list[int]:
    sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
    return [row for (row,) in db.execute(sql, (match, _MOST_ROWS + 1))]


def _matching_turns(
    db: Connection, query: TextQuery, groups: Sequence[str], turn_of: Sequence[Mapping[int, int] | None]
) -> set[int]:
    """Return the turns with a line of each group that fit the rest of the query. `turn_of` has the turns of the blocks
    of rare groups."""
    rare = [set(turns.values()) for turns in turn_of if turns is not None]
    turns = set.intersection(*rare) if rare else None
    parts, arguments = [], list[object]()
    for group, blocks in zip(groups, turn_of, strict=True):
        if blocks is None and turns is not None and len(turns) <= _FEW_TURNS:
            turns = {turn for turn in turns if _turn_matches(db, turn, group)}
        elif blocks is None:
            parts.append(_SELECT_TURNS)
            arguments += LINE_BITS, group
    if query.branches is not None:
        parts.append(f"SELECT turn FROM placed JOIN branches ON branch = id WHERE {_IN_BRANCHES}")
        arguments.append(_json_array(query.branches))
    if query.since is not None:
        parts.append("SELECT id FROM turns WHERE time >= ?")
        arguments.append(query.since)
    if query.commits is not None:
        parts.append("SELECT turn FROM placed WHERE lower(hex(at)) IN (SELECT value FROM json_each(?))")
        arguments.append(_json_array(query.commits))
    if parts:
        others = {turn for (turn,) in db.execute(" INTERSECT ".join(parts), arguments)}
        turns = others if turns is None else turns & others
    assert turns is not None
    turns.difference_update(turn for (turn,) in db.execute("SELECT turn FROM gone"))
    for term in query.query.without:
        without = db.execute(_SELECT_TURNS, (LINE_BITS, _match_expression(query, (term,))))
        turns.difference_update(turn for (turn,) in without)
    return turns


def _turn_matches(db: Connection, turn: int, match: str) -> bool:
    sql = "SELECT 1 FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? LIMIT 1"
    blocks = db.execute("SELECT id << ? FROM blocks WHERE turn = ?", (LINE_BITS, turn)).fetchall()
    return any(db.execute(sql, (match, first, first | LINE_MASK)).fetchone() for (first,) in blocks)


def _recent_matches(
    db: Connection, newest: Sequence[Sequence[int]], without: Sequence[Sequence[int]]
) -> dict[int, int]:
    """Return the turns with a line of each group and none of `without`, as far back as all those lines are known, with
    the line of each that matches most groups, or the first of these."""
    start = max(rows[-1] for rows in (*newest, *without) if len(rows) > _MOST_ROWS) >> LINE_BITS
    matches = Counter(row for rows in newest for row in rows if row >> LINE_BITS > start)
    turn_of = _turns_of_blocks(db, (*matches, *chain.from_iterable(without)))
    turns = set.intersection(*({turn_of.get(row >> LINE_BITS, 0) for row in rows} for rows in newest))
    turns.difference_update(turn_of.get(row >> LINE_BITS, 0) for rows in without for row in rows)
    turns.difference_update(turn for (turn,) in db.execute("SELECT turn FROM gone"))
    best: dict[int, int] = {}
    for row in sorted(matches, key=lambda row: (matches[row], -row)):
        turn = turn_of.get(row >> LINE_BITS, 0)
        if turn and turn in turns:
            best[turn] = row
    return best


def _turns_of_blocks(db: Connection, rows: Iterable[int]) -> dict[int, int]:
    """Return the turn of each block that has one of these rows."""
    sql = "SELECT id, turn FROM blocks WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(sql, (_json_array({row >> LINE_BITS for row in rows}),)))


def _lines_in_branches(db: Connection, query: TextQuery, turn_of: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Return the turn of each block, and how many of the block's lines are on the query's branches."""
    if query.branches is None:
        return {block: (turn, LINE_MASK + 1) for block, turn in turn_of.items()}
    sql = f"""SELECT blocks.id, turn, max(lines) - (blocks.number << ?) FROM blocks JOIN placed USING (turn, variant)
        JOIN branches ON branches.id = branch WHERE blocks.id IN (SELECT value FROM json_each(?))
        AND {_IN_BRANCHES} GROUP BY blocks.id"""
    rows = db.execute(sql, (LINE_BITS, _json_array(turn_of), _json_array(query.branches)))
    return {block: (turn, lines) for block, turn, lines in rows}


def _rank_turns(
    db: Connection, lines: Mapping[int, tuple[int, int]], rarest: str, all_groups: str, turns: set[int]
) -> tuple[dict[int, int], list[int]]:
    """Return each turn's best line of the rarest group, and the turns, the best first."""
    sql = f"SELECT rowid, -bm25(words, {_WEIGHTS}) FROM words WHERE words MATCH ?"
    rows = db.execute(sql, (rarest,)).fetchall()
    complete = {row for row, _ in db.execute(sql, (all_groups,))} if all_groups else set[int]()
    score: dict[int, float] = {}
    best: dict[int, int] = {}
    for row, rank in rows:
        turn, count = lines.get(row >> LINE_BITS, (0, 0))
        value = rank * 2 if row in complete else rank
        if turn in turns and row & LINE_MASK < count and value > score.get(turn, 0.0):
            score[turn], best[turn] = value, row
    ordered = sorted(score, key=lambda turn: (-score[turn], -turn))
    first = ordered[:_RERANKED]
    times = _turn_times(db, first)
    last = max(times.values(), default=0)
    score.update({t: score[t] * (1 + 0.5 * 2.0 ** ((times[t] - last) / _RECENCY_SECONDS)) for t in first if t in times})
    first.sort(key=lambda turn: (-score[turn], -turn))
    return best, first + ordered[_RERANKED:]


def _turn_times(db: Connection, turns: Collection[int]) -> dict[int, int]:
    sql = "SELECT id, time FROM turns WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(sql, (_json_array(turns),)))


def _sort_by_time(db: Connection, turns: Collection[int]) -> list[int]:
    times = _turn_times(db, turns)
    return sorted(turns, key=lambda turn: (-times.get(turn, 0), -turn))


def _first_matching_rows(db: Connection, query: TextQuery, turns: Sequence[int], match: str) -> dict[int, int]:
    """Return the first matching line of each turn, by one statement: the prefix of many words costs much."""
    sql = """SELECT words.rowid FROM words JOIN blocks ON blocks.id = words.rowid >> ?
        WHERE words MATCH ? AND turn IN (SELECT value FROM json_each(?)) ORDER BY words.rowid"""
    rows = [row for (row,) in db.execute(sql, (LINE_BITS, match, _json_array(turns)))]
    lines = _lines_in_branches(db, query, _turns_of_blocks(db, rows))
    best: dict[int, int] = {}
    for row in rows:
        turn, count = lines.get(row >> LINE_BITS, (0, 0))
        if row & LINE_MASK < count:
            best.setdefault(turn, row)
    return best


def _locate_hit(db: Connection, row: int, query: TextQuery) -> Hit | None:
    """Return the place of a line: in the session that it was recorded for, else in another one, else on the branch of
    another version, else on a rewound branch; None if it is on no branch."""
    sql = """SELECT name, placed.number, blocks.number, name = home,
        (instr(name, '.') > 0) + (instr(name, '.r-') > 0)
        FROM blocks JOIN placed USING (turn, variant) JOIN branches ON branches.id = branch
        JOIN turns ON turns.id = turn
        WHERE blocks.id = ? AND lines > ? + (blocks.number << ?)"""
    places = db.execute(sql, (row >> LINE_BITS, row & LINE_MASK, LINE_BITS)).fetchall()
    if query.branches is not None:
        places = [place for place in places if place[0] in query.branches]
    if not places:
        return None
    name, number, block, *_ = min(places, key=lambda place: (place[4], not place[3], place[0]))
    return Hit(name, number, (block << LINE_BITS) + (row & LINE_MASK) + 1)


def _match_expression(query: TextQuery, terms: Sequence[Term]) -> str:
    """Return the FTS5 expression for any of the terms. All that a user typed is quoted."""
    quoted = (f'"{plain(space_single_char_words(term.text))}"{" *" if term.prefix else ""}' for term in terms)
    match = f"{{{' '.join(query.columns)}}} : ({' OR '.join(quoted)})"
    return f'{match} AND tool : "{tool_word(query.tool)}"' if query.tool else match


def _json_array(values: Collection[object]) -> str:
    return json.dumps(list(values))


# Searches


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

    @property
    def left_behind(self) -> bool:
        """Whether only a rewound branch has the turn."""
        return layout.is_rewound_branch(self.branch.name)

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
    columns = COLUMNS_BY_PLACE.get(where.place, ("did",) if where.tool else COLUMNS)
    wanted = TextQuery(query, columns, where.tool, _branches_to_search(index, where), where.since, where.commits)
    best, behind = _query_fulltext(index, lambda words: find_turns(words, wanted, limit), progress)
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
        "title": state.display_title,
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
        "title": hit.branch.state.display_title,
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
        SearchHit(known[row.branch], row, 1, "prompt", "", 0, Snippet(canonical.one_line(index.title(row), length), ()))
        for row in rows[:limit]
        if row.branch in known
    ]
    return SearchResults(hits, len(rows), True, "", [], 0)


def sessions_with(index: Index, text: str, progress: Progress = no_progress) -> tuple[list[str], str]:
    """Return the sessions with a turn that matches, rewound or not, that with the newest turn first, then those whose
    metadata match; and why recent turns are missing, or ``""``. If there are none, words may begin like those."""
    wanted = TextQuery(parse_query(text))
    branches, behind = _query_fulltext(index, lambda words: find_branches(words, wanted), progress)
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
            if attempt or not is_damage(error):
                raise StoreError(f"cannot use the full-text index: {error}", "Try again later.") from error
            words.remove()
        finally:
            words.close()
    raise AssertionError


def _update_for_query(index: Index, words: TextIndex, progress: Progress) -> str:
    if is_up_to_date(index, words):
        return ""
    if words.read_only:
        return "cannot write the full-text index: the most recent turns are not searched"
    try:
        add_new_turns(index, words, progress)
    except sqlite3.OperationalError as error:
        if is_damage(error):
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
    return SearchHit(branch, row, hit.line, part.kind, tool, ordinal, shown)


def _cell_ordinal(cells: Sequence[Cell], call: str, line: int) -> int:
    """Return the ordinal of the cell of a tool's call, or of the model's message on a line, else 0."""
    for ordinal, cell in enumerate(cells, start=1):
        if cell.id == call if call else cell.type != "tool" and line in cell.lines:
            return ordinal
    return 0


# Updating the full-text index

_BATCH_SIZE = 8_000_000
"""Characters after which the index is committed: a process that is killed loses no more, and a search waits no longer
while another process adds turns."""
_GAP_SECONDS = 0.15
"""Seconds between two batches: SQLite lets a process that waits for the lock try ten times a second."""
_BULK_TURNS = 100
"""From this number of branches on, the segments of the index are merged at the end."""
_PARTS_BEFORE_MERGE = 12
"""From this number of batches on, their segments are merged: every search reads all segments."""
_TEXT_MARK = b'{"$text":"'
_COLUMN_BY_KIND = {"prompt": "asked", "answer": "answered", "thinking": "answered", "tool": "did", "notice": "did"}


def is_up_to_date(index: Index, text: TextIndex) -> bool:
    """Return whether the index has all branches as their refs are."""
    return text.level() == refs.refs_hash(index.path)


def add_new_turns(
    index: Index,
    text: TextIndex,
    progress: Progress = no_progress,
    seconds: float = float("inf"),
) -> bool:
    """Update the full-text index from the index, which must be up to date; returns False if the time was too short.
    `progress` counts branches.

    Every batch is committed, and the next update continues from there. A turn that cannot be read is skipped. Raises
    `sqlite3.Error` if the full-text index cannot be written.
    """
    if text.is_worn():
        text.clear()
    signature, wanted = refs.refs_hash(index.path), {name: tip for name, (tip, _) in refs.branches(index.path).items()}
    known, began = text.tips(), monotonic()
    changed = [branch for branch in wanted if known.get(branch) != wanted[branch]]
    updated = {one.name: one.updated for one in index.outlines()} if len(changed) > 1 else {}
    # Taken from the end: sessions by age, so that new turns get the highest row ids, then side branches.
    pending = sorted(changed, key=lambda name: (layout.is_side_branch(name), updated.get(name, ""), name), reverse=True)
    gone, count = known.keys() - wanted.keys(), len(pending)
    parts = 0
    if count:
        text.set_bulk_mode(much=count >= _BULK_TURNS)
    while (pending or gone) and monotonic() - began < seconds:
        progress(count - len(pending), count)
        sleep(_GAP_SECONDS if parts else 0)
        with text.writing():
            for branch in gone:
                text.drop(branch)
            gone, parts, room = set(), parts + 1, _BATCH_SIZE
            while pending and room > 0 and monotonic() - began < seconds:
                size, is_complete = _add_branch(index, text, pending[-1], room)
                room -= size
                if is_complete:
                    pending.pop()
    if pending:
        return False
    if text.level() != signature and all(text.tip(branch) == wanted[branch] for branch in changed):
        with text.writing():
            text.note_level(signature)
    if parts >= _PARTS_BEFORE_MERGE:
        text.join()
    return True


def _add_branch(index: Index, text: TextIndex, name: str, room: int) -> tuple[int, bool]:
    """Index a branch until `room` characters are added; return how many were, and whether that is all of it."""
    branch, size = index.branch(name), 0
    if branch is None or text.tip(name) == branch.tip:
        return 0, True

    def commit_of(number: int) -> str:
        row = index.turn(name, number)
        return row.commit if row else ""

    for row in index.turns(name, text.common(name, commit_of) + 1):
        if size >= room:
            return size, False
        body = text.body_at(row.commit)
        if body is None:
            body, added = _index_turn(index, text, row)
            size += added
        if body is not None:
            text.place(name, row.turn, row.commit, body)
    text.mark_indexed(name, branch.tip)
    return size, True


def _index_turn(index: Index, text: TextIndex, row: Row) -> tuple[Body | None, int]:
    """Return what is indexed of a turn, None if it cannot be read, and the number of characters that were added."""
    try:
        store = index.open_store()
        turn = TurnTexts(agents.of_turn(store, row), store, row.commit, row.turn)
        if known := text.body_of(row.prompt, turn.blob):
            return known, 0
        words = turn.words()
    except SessgitError:
        return None, 0
    home = row.trailer("Session") or layout.session_of(row.branch)
    return text.add(Turn(row.prompt, row.time, home), turn.blob, words), words.size


class TurnTexts:
    """The texts of one turn as of a commit. Long strings are read when they are needed."""

    def __init__(self, agent: Agent, store: Store, commit: str, number: int) -> None:
        self._agent, self._store = agent, store
        folder = store.folder(commit, number)
        self.blob = folder[layout.BODY][0] if layout.BODY in folder else ""
        """The id of the body's blob, or empty where the turn has none."""
        self._raw = store.objects.lines(self.blob, json_strings.LONGEST_LINE)[:-1] if self.blob else []
        self._stored = store.objects.tree(folder[layout.TEXTS][0]) if layout.TEXTS in folder else {}
        self._filled: dict[str, str] = {}

    def lines(self) -> list[Texts]:
        """Return the searchable texts of each line of the body."""
        tools: dict[str, str] = {}
        return [_make_texts(self.line(number), tools) for number in range(1, len(self._raw) + 1)]

    def words(self) -> Words:
        """Return the words to index."""
        return words_of(self.lines())

    def line(self, number: int) -> list[Said]:
        """Return the texts of a line of the body, counted from 1; none if there is no such line."""
        if not 0 < number <= len(self._raw):
            return []
        raw = self._raw[number - 1]
        line = self._agent.parsed([raw])[0]
        if _TEXT_MARK in raw and self._stored:
            line = replace(line, data=self._parsed(raw))
        return list(self._agent.content.texts(line, number))

    def _parsed(self, raw: bytes) -> dict[str, Any] | None:
        try:
            data = json.loads(raw, object_hook=self._fill)
        except (ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) else None

    def _fill(self, value: dict[str, Any]) -> Any:
        name = value.get("$text")
        if len(value) != 1 or not isinstance(name, str) or name not in self._stored:
            return value
        if name not in self._filled:
            text = json_strings.full_text(name, self._store.objects.blob(self._stored[name][0]))
            self._filled[name] = text.decode("utf-8", "replace")
        return self._filled[name]


def _make_texts(parts: Iterable[Said], tools: dict[str, str]) -> Texts:
    columns: dict[str, list[str]] = {"asked": [], "answered": [], "did": []}
    tool = ""
    for part in parts:
        columns[_COLUMN_BY_KIND[part.kind]].append(part.text)
        if part.tool:
            tools[part.call] = part.tool
        tool = tool or tools.get(part.call, "")
    asked, answered, did = map("\n".join, columns.values())
    return Texts(asked, answered, did, tool)
