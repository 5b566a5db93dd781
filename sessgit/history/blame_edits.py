"""The recorded edits of a file in all conversations: read from the turns once, kept in the index, found by path.

The texts of an edit are stored as compressed JSON: `[[[text, marks], …], gone, whole]`, one pair for each change. A
mark stands for each line of the text: `+` if the edit added it, `-` if it was there before, `?` if that is unknown.
`gone` are the lines that the edit took out, and `whole` says that the text is the whole file.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.values import FileEdit
from sessgit.errors import SessgitError
from sessgit.model import canonical, ids
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import parse_tools
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import CachedEdit, Row
from sessgit.store.store import Store

_BATCH = 256
"""Turns after which their edits are stored: a process that is killed loses no more."""
_MOST_COMPARED = 250_000
"""Pairs of lines that are compared to tell which lines an edit added; of larger texts equal lines were there before."""
_REDACTED = "[redacted:"


@frozen
class Block:
    """Lines that an edit wrote, and for each `+`, `-` or `?`: added, there before, or unknown."""

    lines: Sequence[str]
    marks: str


@frozen
class RecordedEdit:
    """An edit of a file in a conversation: the turn's last commit, its cell or 0, the subagent that made it or ``""``,
    the time, in seconds since 1970, the git branch, and what it wrote and took out. `root` is the folder to which the
    file's path is relative: one worktree. An edit that `is_whole` left nothing else in the file."""

    commit: str
    cell: int
    subagent: str
    time: float
    git_branch: str
    root: str
    blocks: Sequence[Block]
    gone: frozenset[str]
    is_whole: bool

    def removed(self, texts: Collection[str]) -> set[str]:
        """Return those of the texts that no line of the file can have had after the edit."""
        if self.is_whole:
            return set(texts).difference(*(block.lines for block in self.blocks))
        return set(self.gone.intersection(texts))


def update_edits(context: Context, progress: Progress = no_progress) -> None:
    """Read the edits of all turns that the index does not know; `progress` counts these. Damaged turns have none."""
    rows = context.index.without_edits()
    for start in range(0, len(rows), _BATCH):
        progress(start, len(rows))
        batch = rows[start : start + _BATCH]
        edits = [edit for row in batch for edit in _turn_edits(context.store, row)]
        context.index.store_edits([row.commit for row in batch], edits)


def _turn_edits(store: Store, row: Row) -> Iterator[CachedEdit]:
    try:
        agent = agents.of_turn(store, row)
        found = list(_read_edits(store, agent, row))
        cells = store.cells(row.commit, row.turn) if found else []
    except SessgitError:
        return
    for number, (edit, subagent) in enumerate(found):
        seconds, own, cell = canonical.seconds(edit.time), ids.cell_id(row.prompt, edit.call), 0
        if not subagent:
            by_id = [n for n, one in enumerate(cells, start=1) if one.id == own]
            on_line = [n for n, one in enumerate(cells, start=1) if one.type == "tool" and edit.line in one.lines[:1]]
            cell = (by_id or on_line or [0])[0]
        yield CachedEdit(
            row.commit, number, os.path.basename(edit.file), edit.file, edit.call, cell, subagent,  # noqa: PTH119
            float(row.time if seconds is None else seconds), edit.git_branch, _pack(edit),
        )  # fmt: skip


def _read_edits(store: Store, agent: Agent, row: Row) -> Iterator[tuple[FileEdit, str]]:
    """Yield the edits of a turn, each with the name of the subagent that made it."""
    if not agent.has("tools"):
        return
    used = parse_tools(row.trailer("Tools"))
    may_write = (agent.cells.kind(tool) in ("write", "subagent") for tool in used)
    if len(used) >= messages.MOST_TOOLS or any(may_write):
        yield from ((edit, "") for edit in agent.tools.edits(store.lines(row.commit, row.turn).body))
    if layout.SUBAGENTS in store.folder(row.commit, row.turn):
        for path, (oid, _) in sorted(store.side_files(store.folder(row.commit, row.turn)).items()):
            folder, _, name = path.rpartition("/")
            if folder == layout.SUBAGENTS:
                yield from ((edit, name.partition(".")[0]) for edit in agent.tools.edits(store.objects.lines(oid)))


def _pack(edit: FileEdit) -> bytes:
    blocks, gone = [], set[str]()
    for old, new in edit.changes:
        before, after = None if old is None else split_lines(old), split_lines(new)
        blocks.append(("\n".join(after), added_marks(before, after)))
        gone.update(set(before or ()).difference(after))
    value = (blocks, sorted(gone), edit.is_whole)
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their line breaks, CRLF or LF."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def added_marks(before: Sequence[str] | None, after: Sequence[str]) -> str:
    """Return a mark for each line after an edit, given the lines before it, None if these are unknown."""
    if before is None:
        return "?" * len(after)
    shortest = min(len(before), len(after))
    first = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    last = next((n for n in range(shortest - first) if before[-1 - n] != after[-1 - n]), shortest - first)
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    if len(old) * len(new) > _MOST_COMPARED:
        left = Counter(old)
        marks = []
        for line in new:
            left[line] -= 1
            marks.append("+" if left[line] < 0 else "-")
    else:
        marks = ["+"] * len(new)
        for _, start, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            marks[start : start + size] = "-" * size
    return "-" * first + "".join(marks) + "-" * last


def find_edits(context: Context, paths: Collection[str], root_of: Callable[[str], str | None]) -> list[RecordedEdit]:
    """Return the recorded edits of a file that had these paths, the oldest first; each call once, though forks repeat
    it. `root_of` returns the folder to which one of the paths is relative, given an edit's whole path, or None if it is
    of another file."""
    names = {os.path.basename(path) for path in paths}  # noqa: PTH119
    edits: list[RecordedEdit] = []
    known = set[tuple[str, bytes]]()
    for row in context.index.edits_of(names):
        root = root_of(row.path)
        key = (row.call, hashlib.sha256(row.texts).digest())
        if root is None or key in known:
            continue
        known.add(key)
        blocks, gone, is_whole = json.loads(zlib.decompress(row.texts))
        edits.append(
            RecordedEdit(
                row.commit,
                row.cell,
                row.subagent,
                row.time,
                row.git_branch,
                root,
                [Block(text.split("\n"), marks) for text, marks in blocks if marks],
                frozenset(gone),
                is_whole,
            )
        )
    return edits


@cache
def is_redacted(line: str) -> bool:
    """Return whether a line is not what the agent wrote, because a secret was replaced in it."""
    return _REDACTED in line
