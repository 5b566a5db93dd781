"""Updates the full-text index with the turns that branches got since the last update."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from sessgit import agents
from sessgit.errors import SessgitError
from sessgit.model import json_strings
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout, refs
from sessgit.store.fulltext import Body, TextIndex, Texts, Turn, Words, words_of
from sessgit.store.index import Index, Row
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.agents.base import Agent
    from sessgit.agents.values import Said

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


def update_fulltext(
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
