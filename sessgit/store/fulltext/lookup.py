"""Questions to the text index: which turns hold what a person looks for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from sqlite3 import Connection

from sessgit.model.search_query import Query, Term, space_single_char_words
from sessgit.store.fulltext.index import LINE_BITS, LINE_MASK, TextIndex, plain, tool_word

COLUMNS = ("asked", "answered", "did")
_WEIGHTS = "10.0, 4.0, 1.0, 0.0"
_MOST_ROWS = 5_000
"""A word that stands in more lines than this says little: turns are not ranked by it, and the newest go first."""
_RECENCY_SECONDS = 30 * 86_400.0
_RERANKED = 500
_FEW_TURNS = 200
"""Of so few turns each is asked whether it holds a frequent word; of more all lines with the word are gone through."""
_ROWS = "SELECT rowid FROM words WHERE words MATCH ?"
_SELECT_TURNS = "SELECT turn FROM blocks WHERE id IN (SELECT rowid >> ? FROM words WHERE words MATCH ?)"
_EXTRA_TURNS = 50
"""So many turns more are looked at, since some may turn out to be held by no branch."""


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What is looked for, and where: in which columns, calls of which tool, turns of which branches, since when."""

    query: Query
    columns: Sequence[str] = COLUMNS
    tool: str = ""
    branches: Sequence[str] | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """The best line of a turn, where the turn stands in a branch; `left_behind` says that only a rewound one has it."""

    branch: str
    number: int
    line: int
    left_behind: bool


@dataclass(frozen=True, slots=True)
class TextHits:
    """The best turns, and how many there are in all: at least so many, if not `exact`."""

    hits: list[Hit]
    total: int
    exact: bool = True


def find_turns(text: TextIndex, wanted: TextQuery, limit: int) -> TextHits:
    """The turns that hold what is wanted: a turn counts where all of it is in its lines, wherever that is.

    Those are first that hold a rare word often, or in what a person said, or all words in one line; of turns that
    are alike the newest. Where all words are frequent, the newest go first and those long past are not counted.
    """
    db = text.db
    groups = [_match_expression(wanted, group) for group in wanted.query.groups]
    together = " AND ".join(f"({group})" for group in groups) if len(groups) > 1 else ""
    newest = [_newest_rows(db, group) for group in groups]
    turn_of = [_turns_of_blocks(db, rows) if len(rows) <= _MOST_ROWS else None for rows in newest]
    rarest = min(range(len(groups)), key=lambda n: len(newest[n]))
    known, exact = turn_of[rarest], True
    best: dict[int, int] = {}
    if known is not None:
        held = _lines_in_branches(db, wanted, known)
        best, ordered = _rank_turns(db, held, groups[rarest], together, _matching_turns(db, wanted, groups, turn_of))
    else:
        if wanted.branches is None and wanted.since is None:
            best = _recent_matches(
                db, newest, [_newest_rows(db, _match_expression(wanted, (term,))) for term in wanted.query.without]
            )
        exact = len(best) < limit
        ordered = _sort_by_time(db, _matching_turns(db, wanted, groups, turn_of) if exact else best)
        if exact:
            best = _first_matching_rows(db, wanted, ordered[: limit + _EXTRA_TURNS], groups[rarest])
    hits: list[Hit] = []
    for turn in ordered:
        if len(hits) == limit:
            break
        hit = _locate_hit(db, best[turn], wanted) if turn in best else None
        hits += [hit] if hit else []
    return TextHits(hits, len(ordered), exact)


def find_branches(text: TextIndex, wanted: TextQuery) -> list[str]:
    """The branches that hold a turn with what is wanted, the one whose turn is newest first."""
    groups = [_match_expression(wanted, group) for group in wanted.query.groups]
    query = """SELECT name FROM json_each(?) JOIN placed ON turn = value JOIN branches ON branches.id = branch
        JOIN turns ON turns.id = value GROUP BY name ORDER BY max(time) DESC, name"""
    turns = _matching_turns(text.db, wanted, groups, [None] * len(groups))
    return [name for (name,) in text.db.execute(query, (_json_array(turns),))]


def _newest_rows(db: Connection, match: str) -> list[int]:
    query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
    return [row for (row,) in db.execute(query, (match, _MOST_ROWS + 1))]


def _matching_turns(
    db: Connection, wanted: TextQuery, groups: Sequence[str], turn_of: Sequence[Mapping[int, int] | None]
) -> set[int]:
    """The turns that hold a line of each group, and fit all else that is wanted; for groups whose blocks are known
    the turns of these."""
    known = [set(turns.values()) for turns in turn_of if turns is not None]
    turns = set.intersection(*known) if known else None
    parts, arguments = [], list[object]()
    for group, blocks in zip(groups, turn_of, strict=True):
        if blocks is None and turns is not None and len(turns) <= _FEW_TURNS:
            turns = {turn for turn in turns if _turn_matches(db, turn, group)}
        elif blocks is None:
            parts.append(_SELECT_TURNS)
            arguments += LINE_BITS, group
    if wanted.branches is not None:
        parts.append(
            "SELECT turn FROM placed JOIN branches ON branch = id WHERE name IN (SELECT value FROM json_each(?))"
        )
        arguments.append(_json_array(wanted.branches))
    if wanted.since is not None:
        parts.append("SELECT id FROM turns WHERE time >= ?")
        arguments.append(wanted.since)
    if parts:
        others = {turn for (turn,) in db.execute(" INTERSECT ".join(parts), arguments)}
        turns = others if turns is None else turns & others
    assert turns is not None
    turns.difference_update(turn for (turn,) in db.execute("SELECT turn FROM gone"))
    for term in wanted.query.without:
        turns.difference_update(
            turn for (turn,) in db.execute(_SELECT_TURNS, (LINE_BITS, _match_expression(wanted, (term,))))
        )
    return turns


def _turn_matches(db: Connection, turn: int, match: str) -> bool:
    query = "SELECT 1 FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? LIMIT 1"
    blocks = db.execute("SELECT id FROM blocks WHERE turn = ?", (turn,)).fetchall()
    return any(
        db.execute(query, (match, block << LINE_BITS, block << LINE_BITS | LINE_MASK)).fetchone() for (block,) in blocks
    )


def _recent_matches(
    db: Connection, newest: Sequence[Sequence[int]], without: Sequence[Sequence[int]]
) -> dict[int, int]:
    """The turns that hold a line of each group and none of what must not be there, as far back as all those lines are
    known; of each turn the line that holds most groups, and of those the first."""
    start = max(rows[-1] for rows in (*newest, *without) if len(rows) > _MOST_ROWS) >> LINE_BITS
    held = Counter(row for rows in newest for row in rows if row >> LINE_BITS > start)
    turn_of = _turns_of_blocks(db, (*held, *chain.from_iterable(without)))
    shared = set.intersection(*({turn_of.get(row >> LINE_BITS, 0) for row in rows} for rows in newest))
    shared.difference_update(turn_of.get(row >> LINE_BITS, 0) for rows in without for row in rows)
    best: dict[int, int] = {}
    for row in sorted(held, key=lambda row: (held[row], -row)):
        turn = turn_of.get(row >> LINE_BITS, 0)
        if turn and turn in shared:
            best[turn] = row
    for (gone,) in db.execute("SELECT turn FROM gone"):
        best.pop(gone, None)
    return best


def _turns_of_blocks(db: Connection, rows: Iterable[int]) -> dict[int, int]:
    """The turn of each of the blocks in which lines stand."""
    query = "SELECT id, turn FROM blocks WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(query, (_json_array({row >> LINE_BITS for row in rows}),)))


def _lines_in_branches(db: Connection, wanted: TextQuery, turn_of: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """The turn of each of the blocks, and how many of the block's lines the branches that are wanted have."""
    if wanted.branches is None:
        return {block: (turn, LINE_MASK + 1) for block, turn in turn_of.items()}
    query = """SELECT blocks.id, turn, max(lines) - (blocks.number << ?) FROM blocks JOIN placed USING (turn, variant)
        JOIN branches ON branches.id = branch WHERE blocks.id IN (SELECT value FROM json_each(?))
        AND name IN (SELECT value FROM json_each(?)) GROUP BY blocks.id"""
    found = db.execute(query, (LINE_BITS, _json_array(turn_of), _json_array(wanted.branches)))
    return {block: (turn, lines) for block, turn, lines in found}


def _rank_turns(
    db: Connection, held: Mapping[int, tuple[int, int]], rarest: str, together: str, turns: set[int]
) -> tuple[dict[int, int], list[int]]:
    """Of each turn the best line that holds the rarest of what is wanted, and the turns, the best one first."""
    query = f"SELECT rowid, -bm25(words, {_WEIGHTS}) FROM words WHERE words MATCH ?"
    rows = db.execute(query, (rarest,)).fetchall()
    same = {row for (row,) in db.execute(_ROWS, (together,))} if together else set[int]()
    score: dict[int, float] = {}
    best: dict[int, int] = {}
    for row, fits in rows:
        turn, lines = held.get(row >> LINE_BITS, (0, 0))
        worth = fits * 2 if row in same else fits
        if turn in turns and row & LINE_MASK < lines and worth > score.get(turn, 0.0):
            score[turn], best[turn] = worth, row
    ordered = sorted(score, key=lambda turn: (-score[turn], -turn))
    first = ordered[:_RERANKED]
    times = _turn_times(db, first)
    last = max(times.values(), default=0)
    score.update({t: score[t] * (1 + 0.5 * 2.0 ** ((times[t] - last) / _RECENCY_SECONDS)) for t in first if t in times})
    first.sort(key=lambda turn: (-score[turn], -turn))
    return best, first + ordered[_RERANKED:]


def _turn_times(db: Connection, turns: Collection[int]) -> dict[int, int]:
    query = "SELECT id, time FROM turns WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(query, (_json_array(turns),)))


def _sort_by_time(db: Connection, turns: Collection[int]) -> list[int]:
    times = _turn_times(db, turns)
    return sorted(turns, key=lambda turn: (-times.get(turn, 0), -turn))


def _first_matching_rows(db: Connection, wanted: TextQuery, turns: Sequence[int], match: str) -> dict[int, int]:
    """Of each turn the first line that holds something, all found in one go: a beginning of many words is dear."""
    query = """SELECT words.rowid FROM words JOIN blocks ON blocks.id = words.rowid >> ?
        WHERE words MATCH ? AND turn IN (SELECT value FROM json_each(?)) ORDER BY words.rowid"""
    rows = [row for (row,) in db.execute(query, (LINE_BITS, match, _json_array(turns)))]
    held = _lines_in_branches(db, wanted, _turns_of_blocks(db, rows))
    best: dict[int, int] = {}
    for row in rows:
        turn, lines = held.get(row >> LINE_BITS, (0, 0))
        if row & LINE_MASK < lines:
            best.setdefault(turn, row)
    return best


def _locate_hit(db: Connection, row: int, wanted: TextQuery) -> Hit | None:
    """Where a line stands: in the session that it was recorded for, else in one that has it, else on a machine
    branch, else where a rewind left it; None where no branch has it."""
    query = """SELECT name, placed.number, blocks.number, name = home,
        (instr(name, '.') > 0) + (instr(name, '.r-') > 0)
        FROM blocks JOIN placed USING (turn, variant) JOIN branches ON branches.id = branch
        JOIN turns ON turns.id = turn
        WHERE blocks.id = ? AND lines > ? + (blocks.number << ?)"""
    found = db.execute(query, (row >> LINE_BITS, row & LINE_MASK, LINE_BITS)).fetchall()
    if wanted.branches is not None:
        allowed = set(wanted.branches)
        found = [place for place in found if place[0] in allowed]
    if not found:
        return None
    name, number, block, _, side = min(found, key=lambda place: (place[4], not place[3], place[0]))
    return Hit(name, number, (block << LINE_BITS) + (row & LINE_MASK) + 1, side == 2)


def _match_expression(wanted: TextQuery, terms: Sequence[Term]) -> str:
    """What FTS5 is asked for one of several terms. All that a person typed stands in quotes."""
    quoted = (f'"{plain(space_single_char_words(term.text))}"{" *" if term.prefix else ""}' for term in terms)
    match = f"{{{' '.join(wanted.columns)}}} : ({' OR '.join(quoted)})"
    return f'{match} AND tool : "{tool_word(wanted.tool)}"' if wanted.tool else match


def _json_array(values: Collection[object]) -> str:
    return json.dumps(list(values))
