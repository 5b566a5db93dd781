"""Queries to the full-text index: which turns match, and which line of each matches best."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from sqlite3 import Connection

from sessgit.model.frozen import frozen
from sessgit.model.search_query import Query, Term, space_single_char_words
from sessgit.store.fulltext import LINE_BITS, LINE_MASK, TextIndex, plain, tool_word

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
    """The best line of a turn, by the turn's place on a branch; `left_behind` if only a rewound branch has it."""

    branch: str
    number: int
    line: int
    left_behind: bool


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
    name, number, block, _, side = min(places, key=lambda place: (place[4], not place[3], place[0]))
    return Hit(name, number, (block << LINE_BITS) + (row & LINE_MASK) + 1, side == 2)


def _match_expression(query: TextQuery, terms: Sequence[Term]) -> str:
    """Return the FTS5 expression for any of the terms. All that a user typed is quoted."""
    quoted = (f'"{plain(space_single_char_words(term.text))}"{" *" if term.prefix else ""}' for term in terms)
    match = f"{{{' '.join(query.columns)}}} : ({' OR '.join(quoted)})"
    return f'{match} AND tool : "{tool_word(query.tool)}"' if query.tool else match


def _json_array(values: Collection[object]) -> str:
    return json.dumps(list(values))
