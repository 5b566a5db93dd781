"""Search over what was said and done in all conversations, and over what they are called."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.history import fulltext_update
from sessgit.history.fulltext_update import TurnTexts
from sessgit.model import canonical, ids
from sessgit.model.conversation.turn import Cell
from sessgit.model.progress import Progress, no_progress
from sessgit.model.search_query import Query, Snippet, make_snippet, parse_query
from sessgit.store import layout, project
from sessgit.store.fulltext import lookup
from sessgit.store.fulltext.index import TextIndex
from sessgit.store.fulltext.lookup import Hit, TextQuery
from sessgit.store.index import Index
from sessgit.store.sqlite import cache_file
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.sqlite.titles import Titles, titles

COLUMNS_BY_PLACE = {"prompts": ("asked",), "answers": ("answered",), "tools": ("did",)}
"""The columns in which each place where one can search stands."""
METADATA_FIELDS = ("name", "title", "label", "description")
"""What of a conversation is searched besides its turns, the most telling first."""
_KINDS_BY_COLUMN = {"asked": ("prompt",), "answered": ("answer", "thinking"), "did": ("tool", "notice")}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A turn in which something was found: its best line, told by `kind` (prompt, answer, thinking, tool or notice),
    the tool's name, and the ordinal of the cell that it belongs to, or 0."""

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
        """The turn, and the cell if it is in one: `7`, `7.3`."""
        return f"{self.row.turn}.{self.cell}" if self.cell else str(self.row.turn)


@dataclass(frozen=True, slots=True)
class MetadataHit:
    """A conversation whose name, title, labels and description hold what was searched for.

    `matched` are those of `METADATA_FIELDS` that hold any of it, the best one first, of which `snippet` is a part.
    """

    branch: Branch
    matched: tuple[str, ...]
    snippet: Snippet


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The best turns; `total` is how many there are, or at least so many if not `exact`. `behind` says why turns that
    were recorded lately are left out, if they are. `called` are the conversations that are called so, the one written
    last first, of `total_called`."""

    found: list[SearchHit]
    total: int
    exact: bool
    behind: str
    called: list[MetadataHit]
    total_called: int

    @property
    def is_empty(self) -> bool:
        return not self.total and not self.total_called


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Where to search: in one branch or all branches of a session, in the project at a folder, in sessions with a
    label, in `prompts`, `answers` or `tools`, in calls of a tool, and since when."""

    session: str = ""
    folder: str = ""
    label: str = ""
    place: str = ""
    tool: str = ""
    since: float | None = None


def search(index: Index, text: str, where: SearchScope, limit: int, length: int, progress: Progress) -> SearchResults:
    """What is found, the best first, with snippets of about `length` characters. The index is level with the refs."""
    query = parse_query(text)
    columns = COLUMNS_BY_PLACE.get(where.place, ("did",) if where.tool else lookup.COLUMNS)
    wanted = TextQuery(query, columns, where.tool, _branches_to_search(index, where), where.since)
    found, behind = _query_fulltext(index, lambda words: lookup.find_turns(words, wanted, limit), progress)
    results = (_search_hit(index, hit, wanted, length) for hit in found.hits)
    called = [] if where.place or where.tool else _metadata_matches(index, query, wanted.branches, where.since)
    shown = list(_metadata_hits(index, called[:limit], query, length))
    return SearchResults([one for one in results if one], found.total, found.exact, behind, shown, len(called))


def sessions_with(index: Index, text: str, progress: Progress = no_progress) -> tuple[list[str], str]:
    """The sessions that have a turn, left behind or not, in which the text is found, of the newest turn first, then
    those that are called so. And why turns that were recorded lately are left out, if they are, or ``""``."""
    wanted = TextQuery(parse_query(text))
    found, behind = _query_fulltext(index, lambda words: lookup.find_branches(words, wanted), progress)
    sessions = [*map(layout.session_of, found), *(one.session for one in _metadata_matches(index, wanted.query))]
    return list(dict.fromkeys(sessions)), behind


def update_fulltext(
    index: Index,
    progress: Progress = no_progress,
    at_hand: fulltext_update.PendingTurnAt = fulltext_update.no_pending_turn,
) -> str:
    """Brings the text index level with the store, with what is at hand of its turns; why that could not be done, or
    ``""``."""
    try:
        return _query_fulltext(index, lambda _: None, progress, at_hand)[1]
    except StoreError as error:
        return str(error)


def _query_fulltext(
    index: Index,
    question: Callable[[TextIndex], T],
    progress: Progress,
    at_hand: fulltext_update.PendingTurnAt = fulltext_update.no_pending_turn,
) -> tuple[T, str]:
    """The answer of the text index, level with the refs, and why it may not be; a damaged one is made anew."""
    for attempt in (0, 1):
        words = _open_fulltext(index)
        try:
            behind = _update_for_query(index, words, progress, at_hand)
            return question(words), behind
        except sqlite3.Error as error:
            if attempt or not cache_file.is_damage(error):
                raise StoreError(f"cannot use the full-text index: {error}", "Try again later.") from error
            words.remove()
        finally:
            words.close()
    raise AssertionError


def _open_fulltext(index: Index) -> TextIndex:
    try:
        return TextIndex(index.path)
    except sqlite3.Error as error:
        raise StoreError(f"cannot create the full-text index: {error}", "It needs SQLite with FTS5.") from error


def _update_for_query(
    index: Index, words: TextIndex, progress: Progress, at_hand: fulltext_update.PendingTurnAt
) -> str:
    if fulltext_update.is_up_to_date(index, words):
        return ""
    if words.read_only:
        return "cannot write the full-text index: the most recent turns are not searched"
    try:
        fulltext_update.update_fulltext(index, words, progress, at_hand=at_hand)
    except sqlite3.OperationalError as error:
        if cache_file.is_damage(error):
            raise
        return f"the full-text index is behind: {error}"
    return ""


def _branches_to_search(index: Index, where: SearchScope) -> list[str] | None:
    """The branches to search in, or None for all."""
    chosen: list[Collection[str]] = []
    names = [] if not (where.session or where.folder or where.label) else index.names()
    if where.session:
        own = layout.session_of(where.session)
        chosen.append(
            [name for name, *_ in names if name == where.session or (own == where.session == layout.session_of(name))]
        )
    if where.folder:
        here = project.project_key(where.folder)
        keys = {folder: project.project_key(folder) for folder in {row[4] for row in names} if folder}
        chosen.append([row[0] for row in names if keys.get(row[4]) == here])
    if where.label:
        labelled = {outline.name for outline in index.outlines() if where.label in json.loads(outline.labels)}
        chosen.append([name for name, *_ in names if layout.session_of(name) in labelled])
    return sorted(set.intersection(*map(set, chosen))) if chosen else None


def _metadata_matches(
    index: Index, query: Query, branches: Collection[str] | None = None, since: float | None = None
) -> list[Titles]:
    """The sessions whose name, title, labels and description together hold all of it, the one written last first."""
    moment = "" if since is None else canonical.rfc3339(since)
    among = None if branches is None else set(branches)
    return [
        one
        for one in titles(index)
        if (among is None or one.session in among)
        and one.updated >= moment
        and query.fits((one.name, one.title, *one.labels, one.description))
    ]


def _metadata_hits(index: Index, found: Sequence[Titles], query: Query, length: int) -> Iterator[MetadataHit]:
    for one in found:
        branch = index.branch(one.session)
        texts = (one.name, one.title, ", ".join(one.labels), one.description)
        held = {kind: count for kind, text in zip(METADATA_FIELDS, texts, strict=True) if (count := query.held(text))}
        matched = tuple(sorted(held, key=lambda kind: -held[kind]))
        if branch is not None:
            yield MetadataHit(branch, matched, make_snippet(texts[METADATA_FIELDS.index(matched[0])], query, length))


def _search_hit(index: Index, hit: Hit, wanted: TextQuery, length: int) -> SearchHit | None:
    branch, row = index.branch(hit.branch), index.turn(hit.branch, hit.number)
    if branch is None or row is None:
        return None
    try:
        store = index.open_store()
        parts = TurnTexts(agents.of_turn(store, row), store, row.commit, row.turn).line(hit.line)
        cells = store.cells(row.commit, row.turn)
    except (SessgitError, ValueError):
        return None
    kinds = {kind for column in wanted.columns for kind in _KINDS_BY_COLUMN[column]}
    parts = [part for part in parts if part.kind in kinds]
    if not parts:
        return None
    part = max(parts, key=lambda part: wanted.query.held(part.text))
    ordinal = _cell_ordinal(cells, ids.cell_id(row.prompt, part.call) if part.call else "", hit.line)
    tool = cells[ordinal - 1].operation if part.call and ordinal else part.tool
    shown = make_snippet(part.text, wanted.query, length)
    return SearchHit(branch, row, hit.line, part.kind, tool, ordinal, shown, hit.left_behind)


def _cell_ordinal(cells: Sequence[Cell], call: str, line: int) -> int:
    """The ordinal of the cell of a tool's call, or of the model's message on a line, else 0."""
    for ordinal, cell in enumerate(cells, start=1):
        if cell.id == call if call else cell.type != "tool" and line in cell.lines:
            return ordinal
    return 0
