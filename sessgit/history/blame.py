"""Who wrote each line of a file: a turn of a conversation, or else a commit of the project.

git says which commit each line comes from and what the file was called, the index which calls edited it in any
conversation. Which call wrote which line follows from texts and commits alone: a line is an *anchor* if its text is
distinctive and once in the file, and exactly one edit can have put it there: one that added it, before the line was
committed and after the commit before that. From an anchor on, the edit's other lines are recognized as long as they
follow without a gap. An anchor is certain, and so is what lies between two anchors of one edit; what lies beyond the
last one is probable, since a line like `}` may be another's.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.values import FileEdit
from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.history import project_git
from sessgit.history.project_git import Env
from sessgit.model import canonical, ids
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import parse_tools
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout, project
from sessgit.store.context import Context
from sessgit.store.index import Branch, CachedEdit, Row
from sessgit.store.store import Store

Certainty = Literal["exact", "run"]
Silence = Literal[
    "no-edit", "short", "repeated", "several-edits", "later-edit", "commit-between", "removed", "elsewhere",
    "overwritten",
]  # fmt: skip
"""Why no edit is named: none wrote such a line; the line is too short, or more than once in the file, to tell whose it
is; several edits can have written it; those that wrote it came after its commit, or before an earlier one, a later edit
took the line out, or they wrote it elsewhere in the file; or the whole file was overwritten, and it is not known with
what in it before."""
_CLOCK_SKEW = 120
"""Seconds that an edit may seem later than the commit with its lines."""
_WORD = re.compile(r"\w")
_LEAST_WORD_CHARS = 8
"""Letters, digits and underscores that a distinctive line has at least."""
_LONG_WORD = re.compile(r"\w{3,}")
_LEAST_WORDS = 3
"""Words of a line that tells its edit without a line next to it."""
_NEAR = 8
"""Lines within which two distinctive lines of one edit confirm each other."""


@frozen
class BlamedLine:
    """A line, its number in the file, the edit that wrote it, and how certain that is; or no edit and the reason."""

    number: int
    line: FileLine
    edit: RecordedEdit | None = None
    certainty: Certainty | None = None
    silence: Silence | None = None


@frozen
class _Place:
    """A line of an edit: the edit's number, its block, and the line in that."""

    edit: int
    block: int
    line: int

    def after(self, lines: int) -> _Place:
        return _Place(self.edit, self.block, self.line + lines)


def _is_distinctive(text: str) -> bool:
    """Return whether a line has enough letters and digits not to be written twice by chance."""
    return len(_WORD.findall(text)) >= _LEAST_WORD_CHARS


class _Matcher:
    """Finds for each line of a file the edit that last wrote it, if that is known; `commits` are those that changed the
    file, the edits are in order of time."""

    def __init__(
        self, lines: Sequence[FileLine], commits: Mapping[str, _FileCommit], edits: Sequence[RecordedEdit], now: float
    ) -> None:
        self.lines, self.commits, self.edits, self.now = lines, commits, edits, now
        self.counts = Counter(line.text for line in lines)
        self.places = self._find_places()
        self.removals = self._find_removals()
        self.ancestors = cache(self._ancestors)
        self.lies_between = cache(self._lies_between)
        self.texts_before = cache(self._texts_before)

    def _find_places(self) -> Mapping[str, list[_Place]]:
        """Return where edits wrote the texts that can be anchors. A file that was written as a whole may have had the
        line before: if an earlier edit wrote it, that is the one."""
        wanted = {text for text, count in self.counts.items() if count == 1 and _is_distinctive(text)}
        places: dict[str, list[_Place]] = {}
        for number, edit in enumerate(self.edits):
            for block_number, block in enumerate(edit.blocks):
                for place, text in enumerate(block.lines):
                    if text not in wanted or block.marks[place] == "-" or _is_redacted(text):
                        continue
                    known = places.setdefault(text, [])
                    if block.marks[place] == "+" or not known:
                        known.append(_Place(number, block_number, place))
        return places

    def _find_removals(self) -> Mapping[str, list[RecordedEdit]]:
        """Return the edits that took these texts out of the file."""
        removals: dict[str, list[RecordedEdit]] = {}
        for edit in self.edits:
            for text in edit.removed(self.places.keys()):
                removals.setdefault(text, []).append(edit)
        return removals

    def match(self) -> list[BlamedLine]:
        found = [self._anchor(line) for line in self.lines]
        groups = self._grouped(found)
        out = [
            BlamedLine(number, line, silence=None if isinstance(one, _Place) else one)
            for number, (line, one) in enumerate(zip(self.lines, found, strict=True), start=1)
        ]
        start = 0
        while start < len(found):
            anchor = groups.get(start) or found[start]
            if not isinstance(anchor, _Place):
                start += 1
                continue
            last = end = start
            while end < len(found) and self._continues(anchor, start, end):
                other = groups.get(end) or found[end]
                if isinstance(other, _Place):
                    if other != anchor.after(end - start):
                        break
                    last = end
                end += 1
            support = "exact" if last > start or start in groups else self._support(anchor, start, found)
            if support == "exact" and "?" in self.edits[anchor.edit].blocks[anchor.block].marks:
                support = "run"
            if support is not None:
                self._name(out, anchor, (start, last), support)
            else:
                out[start] = replace(out[start], silence="elsewhere")
            start = last + 1
        return out

    def _support(self, anchor: _Place, at: int, found: Sequence[_Place | Silence]) -> Certainty | None:
        """Return how certain an anchor is that has no other one next to it: certain next to a line as the edit had it,
        else none if it has few words, or if a line next to it came with its commit from no known edit, and so from the
        hand that may have typed both, else probable."""
        block, commit = self.edits[anchor.edit].blocks[anchor.block], self.lines[at].commit
        sides = [side for side in (-1, 1) if 0 <= at + side < len(self.lines)]
        written = {side: block.lines[line] for side in sides if 0 <= (line := anchor.line + side) < len(block.lines)}
        if any(self.lines[at + side].text == text for side, text in written.items()):
            return "exact"
        if len(_LONG_WORD.findall(self.lines[at].text)) < _LEAST_WORDS:
            return None
        strangers = (at + side for side in sides if not isinstance(found[at + side], _Place))
        return None if commit and any(self.lines[line].commit == commit for line in strangers) else "run"

    def _name(self, out: list[BlamedLine], anchor: _Place, span: tuple[int, int], certainty: Certainty) -> None:
        """Name the edit of the lines from one anchor to another, and of those around them that it added too."""
        edit, before = self.edits[anchor.edit], self.texts_before(anchor.edit, anchor.block)
        first, last = span
        for line in range(first, last + 1):
            out[line] = BlamedLine(line + 1, self.lines[line], edit, certainty)
        for beyond in (range(first - 1, -1, -1), range(last + 1, len(out))):
            for line in beyond:
                is_other = out[line].edit is not None or self.lines[line].text in before
                if is_other or not self._continues(anchor, first, line):
                    break
                out[line] = BlamedLine(line + 1, self.lines[line], edit, "run")

    def _texts_before(self, edit: int, block: int) -> set[str]:
        """Return the lines of a block that the edit did not add, and those that it took out."""
        written = self.edits[edit].blocks[block]
        kept = {text for text, mark in zip(written.lines, written.marks, strict=True) if mark == "-"}
        return kept | self.edits[edit].gone

    def _grouped(self, found: Sequence[_Place | Silence]) -> dict[int, _Place]:
        """Return the lines that have others of the same edit near them, in its order and from the same commit. Against
        such lines a commit in between does not speak: the edit was on another branch then, which was squashed. But two
        lines that do not touch, a person may have typed again."""
        groups: dict[int, _Place] = {}
        candidates = {
            number: place
            for number, one in enumerate(found)
            if (isinstance(one, _Place) or one == "commit-between") and (place := self._only_place(self.lines[number]))
        }
        for number, place in candidates.items():
            for distance in range(1, _NEAR):
                other = candidates.get(number + distance)
                if (
                    other is not None
                    and (other.edit, other.block) == (place.edit, place.block)
                    and place.line < other.line <= place.line + 2 * _NEAR
                    and self.lines[number].commit == self.lines[number + distance].commit
                ):
                    groups |= {number: place, number + distance: other}
        return {
            number: place
            for number, place in groups.items()
            if found[number] != "commit-between" or self._has_company(groups, number)
        }

    def _has_company(self, groups: Mapping[int, _Place], number: int) -> bool:
        """Return whether a line next to this one is the same edit's too, or two others of the group are near."""
        place = groups[number]
        if any(
            self._continues(place, number, line) for line in (number - 1, number + 1) if 0 <= line < len(self.lines)
        ):
            return True
        near = (groups.get(line) for line in range(number - _NEAR + 1, number + _NEAR))
        return sum(other is not None and other.edit == place.edit for other in near) > 2

    def _only_place(self, line: FileLine) -> _Place | None:
        places = self.places.get(line.text, ())
        return places[0] if len(places) == 1 else None

    def _continues(self, anchor: _Place, at: int, line: int) -> bool:
        """Return whether the edit with an anchor at line `at` added another line too."""
        block = self.edits[anchor.edit].blocks[anchor.block]
        place = anchor.line + line - at
        return (
            0 <= place < len(block.lines)
            and block.lines[place] == self.lines[line].text
            and block.marks[place] != "-"
            and self.lines[line].commit == self.lines[at].commit
            and not _is_redacted(block.lines[place])
        )

    def _anchor(self, line: FileLine) -> _Place | Silence:
        """Return the line of an edit that alone can be this one, or why there is none."""
        if not _is_distinctive(line.text):
            return "short"
        if self.counts[line.text] > 1:
            return "repeated"
        silence: Silence = "no-edit"
        possible = list[_Place]()
        for place in self.places.get(line.text, ()):
            obstacle = self._obstacle(place, line)
            silence = obstacle or silence
            possible += [place] if obstacle is None else []
        if len(possible) > 1 or (possible and len(self.places[line.text]) > 1):
            return "several-edits"
        return possible[0] if possible else silence

    def _obstacle(self, place: _Place, line: FileLine) -> Silence | None:
        """Return why the edit cannot have put the line there, or None if it can."""
        edit = self.edits[place.edit]
        is_created = place.edit == 0 and not self.ancestors(line.commit)
        if edit.blocks[place.block].marks[place.line] == "?" and not is_created:
            return "overwritten"
        latest = (line.commit.time if line.commit else self.now) + _CLOCK_SKEW
        if edit.time > latest:
            return "later-edit"
        if self.lies_between(edit.time, line.commit):
            return "commit-between"
        for other in self.removals.get(line.text, ()):
            is_same_branch = edit.git_branch == other.git_branch or not (edit.git_branch and other.git_branch)
            if edit.time < other.time <= latest and edit.root == other.root and is_same_branch:
                return "removed"
        return None

    def _lies_between(self, time: float, commit: LineCommit | None) -> bool:
        """Return whether a commit of the same author changed the file after a time and before the commit did; of any
        author, if the line is not committed."""
        others = (self.commits[oid] for oid in self.ancestors(commit))
        return any(
            time < other.author_time
            and (commit is None or (other.author_time < commit.author_time and other.email == commit.email))
            for other in others
        )

    def _ancestors(self, commit: LineCommit | None) -> Collection[str]:
        """Return the commits that changed the file before a commit did, or all of them if the line is not committed."""
        if commit is None:
            return self.commits.keys()
        found, waiting = set[str](), [commit.id]
        while waiting:
            known = self.commits.get(waiting.pop())
            new = [parent for parent in known.parents if parent not in found] if known else []
            found.update(new)
            waiting += new
        return found


# The lines of a file and their authors


@frozen
class BlamedFile:
    """A file on this machine: the top of its worktree and its path in that; ``""`` and the whole path if it is in no
    repository."""

    top: str
    path: str

    @property
    def whole(self) -> str:
        """The absolute path."""
        return os.path.join(self.top, self.path)  # noqa: PTH118 - as the agent has it


@frozen
class Author:
    """The turn with an edit, as a branch has it."""

    branch: Branch
    row: Row
    prompt: str

    @property
    def model(self) -> str:
        """The model, or ``""``."""
        return self.row.trailer("Model")


@frozen
class Blame:
    """The lines of a file with their authors, these by the turn's last commit. `revision` is a commit's id, or ``""``
    for the working tree; `is_tracked` says whether git knows the file."""

    file: BlamedFile
    revision: str
    lines: Sequence[BlamedLine]
    authors: Mapping[str, Author]
    is_tracked: bool

    def author(self, line: BlamedLine) -> Author | None:
        """Return the author of a line, or None if none is recorded."""
        return self.authors.get(line.edit.commit) if line.edit else None


def blame(context: Context, path: str, revision: str, env: Env, progress: Progress = no_progress) -> Blame:
    """Return who wrote each line of a file, given by its absolute path: as it is now, or at a revision.

    `progress` counts the turns whose edits are not in the index yet. Raises NotFoundError, UsageError, SessgitError.
    """
    file = _locate_file(os.path.realpath(path), env)
    if revision and not file.top:
        raise UsageError(f"{path} is not in a git repository, so it has no revisions", "Leave out REV.")
    commit = _resolve_commit(file.top, revision, env) if revision else ""
    _update_edits(context, progress)
    return _blame_file(context, file, commit, commit, env)


@frozen
class CommitTurn:
    """A turn with edits that a commit of the project brought, and the number of their lines by the file's path."""

    author: Author
    lines: Mapping[str, int]


def commit_turns(
    context: Context, folder: str, revision: str, env: Env, progress: Progress
) -> tuple[str, list[CommitTurn]]:
    """Return the id of a commit of the project at a folder, and the turns that wrote lines which it added, the oldest
    first. `progress` is as in `blame`."""
    top = project_git.find_checkout(os.path.realpath(folder), env).top
    commit = _resolve_commit(top, revision, env)
    _update_edits(context, progress)
    lines: dict[str, dict[str, int]] = {}
    authors: dict[str, Author] = {}
    for path in _changed_files(top, commit, env):
        found = _blame_file(context, BlamedFile(top, path), commit, f"{commit}^!", env)
        authors.update(found.authors)
        for line in found.lines:
            edit, own = line.edit, line.line.commit
            if edit is not None and own is not None and own.id == commit and edit.commit in authors:
                counts = lines.setdefault(edit.commit, {})
                counts[path] = counts.get(path, 0) + 1
    turns = [CommitTurn(authors[own], counts) for own, counts in lines.items()]
    return commit, sorted(turns, key=lambda turn: (turn.author.row.time, turn.author.row.branch, turn.author.row.turn))


def _blame_file(context: Context, file: BlamedFile, commit: str, span: str, env: Env) -> Blame:
    """Return who wrote each line of a file at a commit, or now for ``""``; of lines from before a span of commits only
    the commit at its start is known."""
    lines, commits = _read_lines(file, commit, span, env)
    is_tracked = bool(file.top) and (bool(commits) or any(line.commit for line in lines))
    names = {line.path for line in lines if line.path} | {file.path}
    edits = _find_edits(context, names, _root_finder(context, file, names))
    blamed = _Matcher(lines, commits, edits, context.now()).match()
    places = context.index.turns_of_commits(sorted({one.edit.commit for one in blamed if one.edit}))
    branches = {one.name: one for one in context.index.branches_named(sorted({name for name, _ in places.values()}))}
    authors = dict[str, Author]()
    for own, (name, turn) in places.items():
        row = context.index.turn(name, turn)
        if row is not None and name in branches:
            authors[own] = Author(branches[name], row, context.index.title(row))
    return Blame(file, commit, blamed, authors, is_tracked)


def _locate_file(path: str, env: Env) -> BlamedFile:
    """Return where a file is; its folder must exist, the file need not."""
    folder, name = os.path.split(path)
    if not Path(folder).is_dir():
        raise NotFoundError(f"there is no folder {folder}", "Name a file relative to this folder.")
    if not project.is_repository(folder):
        return BlamedFile("", path)
    checkout = project_git.find_checkout(folder, env)
    return BlamedFile(checkout.top, f"{checkout.inner}/{name}".lstrip("/"))


def _read_lines(file: BlamedFile, commit: str, span: str, env: Env) -> tuple[list[FileLine], dict[str, _FileCommit]]:
    """Return the lines of a file, and the commits that changed it."""
    if commit and not project_git.has_object(file.top, env, f"{commit}:{file.path}"):
        raise NotFoundError(
            f"{file.path} is not in commit {commit[:8]}",
            f"`git log --follow -- {file.path}` lists the commits with it.",
        )
    if not commit:
        lines = _untracked_lines(file.whole)
        if not file.top or not project_git.has_object(file.top, env, f"HEAD:{file.path}"):
            return lines, {}
    lines = _committed_lines(file.top, file.path, env, span)
    paths = {line.path for line in lines} | {file.path}
    return lines, _file_commits(file.top, sorted(paths), env, commit or "HEAD")


def _root_finder(context: Context, file: BlamedFile, paths: Collection[str]) -> Callable[[str], str | None]:
    """Return a function that says in which worktree of the file's repository an edit's path is one of these paths; for
    a file in no repository, whether it is the file."""
    if not file.top:
        own = {file.path, os.path.realpath(file.path)}
        return lambda path: "/" if context.index.local_path(path) in own else None
    key = project.project_key(file.top)
    endings = sorted((f"/{path}" for path in paths), key=len, reverse=True)

    @cache
    def is_root(folder: str) -> bool:
        if Path(folder).is_dir():
            return (Path(folder) / ".git").exists() and project.project_key(folder) == key
        return project.project_key(folder) == key

    def root(path: str) -> str | None:
        here = context.index.local_path(path)
        folders = (here.removesuffix(ending) for ending in endings if here.endswith(ending))
        return next((folder for folder in folders if is_root(folder)), None)

    return root


# The recorded edits
#
# They are read from the turns once, kept in the index, and found by path. The texts of an edit are stored as compressed
# JSON: `[[[text, marks], …], gone, whole]`, one pair for each change. A mark stands for each line of the text: `+` if
# the edit added it, `-` if it was there before, `?` if that is unknown. `gone` are the lines that the edit took out;
# `whole` says that the text is the whole file.

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


def _update_edits(context: Context, progress: Progress) -> None:
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
        before, after = None if old is None else _split_lines(old), _split_lines(new)
        blocks.append(("\n".join(after), _added_marks(before, after)))
        gone.update(set(before or ()).difference(after))
    value = (blocks, sorted(gone), edit.is_whole)
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text without their line breaks, CRLF or LF."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _added_marks(before: Sequence[str] | None, after: Sequence[str]) -> str:
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


def _find_edits(context: Context, paths: Collection[str], root_of: Callable[[str], str | None]) -> list[RecordedEdit]:
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
def _is_redacted(line: str) -> bool:
    """Return whether a line is not what the agent wrote, because a secret was replaced in it."""
    return _REDACTED in line


# Lines and commits, as git has them

_MOST_FILES = 500
"""Files of a commit that are read."""
_NO_COMMIT = "0" * 40
_BINARY = 8000
"""Bytes at the start of a file among which git looks for a NUL, as in a binary file."""
_FORMAT = "%H%x09%at%x09%ae%x09%P"


@frozen
class LineCommit:
    """A commit of the project with a line of a file; times are in seconds since 1970."""

    id: str
    author: str
    email: str
    author_time: int
    time: int
    summary: str


@frozen
class FileLine:
    """A line of a file without its line break, its commit or None if it is not committed, and the number of the line
    and the path of the file in that commit."""

    text: str
    commit: LineCommit | None = None
    number: int = 0
    path: str = ""


@frozen
class _FileCommit:
    """A commit that changed a file: its author's address and time, and the next older commits that changed it."""

    email: str
    author_time: int
    parents: tuple[str, ...]


def _committed_lines(top: str, path: str, env: Env, revision: str) -> list[FileLine]:
    """Return the lines of a file in the working tree at `top`, or at a revision or range of revisions; `path` is
    relative to `top`. Lines from before a range have the commit at its start. Raises SessgitError."""
    options = ("blame", "--porcelain", "--no-textconv", "--no-progress")
    output = project_git.read_output(top, env, *options, *([revision] if revision else []), "--", path)
    facts: dict[str, dict[str, str]] = {}
    commits: dict[str, LineCommit] = {}
    lines: list[FileLine] = []
    own: dict[str, str] = {}
    oid, number = "", 0
    for raw in output.decode("utf-8", "replace").split("\n")[:-1]:
        if raw.startswith("\t"):
            if oid not in commits:
                email = own.get("author-mail", "").removeprefix("<").removesuffix(">")
                times = _count(own.get("author-time", "")), _count(own.get("committer-time", ""))
                commits[oid] = LineCommit(oid, own.get("author", ""), email, *times, own.get("summary", ""))
            commit = None if oid == _NO_COMMIT else commits[oid]
            lines.append(FileLine(raw[1:].removesuffix("\r"), commit, number, own.get("filename", path)))
            oid = ""
        elif not oid:
            oid, old, *_ = raw.split(" ")
            number, own = int(old), facts.setdefault(oid, {})
        else:
            key, _, value = raw.partition(" ")
            own[key] = value
    return lines


def _file_commits(top: str, paths: Iterable[str], env: Env, revision: str) -> dict[str, _FileCommit]:
    """Return by id the commits up to a revision that changed one of the paths, relative to `top`, the newest first;
    none before the first commit."""
    try:
        output = project_git.read_output(
            top, env, "--literal-pathspecs", "log", "--parents", f"--format={_FORMAT}", revision, "--", *paths
        )
    except SessgitError:
        return {}
    commits = {}
    for line in output.decode("utf-8", "replace").split("\n")[:-1]:
        oid, author_time, email, parents = line.split("\t")
        commits[oid] = _FileCommit(email, _count(author_time), tuple(parents.split()))
    return commits


def _resolve_commit(top: str, revision: str, env: Env) -> str:
    """Return the id of the commit that a revision names; raises NotFoundError."""
    name = f"{revision}^{{commit}}"
    try:
        output = project_git.read_output(top, env, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except SessgitError:
        raise NotFoundError(
            f"“{revision}” names no commit of the repository {top}", "`git log --oneline` lists its commits."
        ) from None
    return project_git.decode_name(output).strip()


def _changed_files(top: str, commit: str, env: Env) -> list[str]:
    """Return the paths of the text files that a commit added or changed, at most `_MOST_FILES`."""
    options = (
        "diff-tree",
        "--root",
        "-r",
        "-m",
        "--no-commit-id",
        "--numstat",
        "-z",
        "--no-renames",
        "--diff-filter=AM",
    )
    words = project_git.decode_name(project_git.read_output(top, env, *options, commit)).split("\0")
    changed = (word.split("\t", 2) for word in words if word.count("\t") >= 2)
    return list(dict.fromkeys(path for added, _, path in changed if added.isdecimal()))[:_MOST_FILES]


def _untracked_lines(file: str) -> list[FileLine]:
    """Return the lines of a file that git does not know. Raises SessgitError if it cannot be read or is binary."""
    try:
        if not stat.S_ISREG(mode := os.stat(file).st_mode) and not stat.S_ISDIR(mode):  # noqa: PTH116 - a pipe blocks
            raise UsageError(f"{file} is not a regular file", "blame shows the lines of text files.")
        with open(file, "rb") as opened:  # noqa: PTH123 - of a path as the user typed it
            data = opened.read()
    except IsADirectoryError as error:
        raise UsageError(f"{file} is a folder", "Name a file in it.") from error
    except OSError as error:
        hint = "`sessgit blame FILE REV` shows a deleted file as it was in a commit."
        raise NotFoundError(f"cannot read {file}: {error.strerror}", hint) from error
    if b"\0" in data[:_BINARY]:
        raise UsageError(f"{file} is a binary file", "blame shows the lines of text files.")
    return [FileLine(line, number=n) for n, line in enumerate(_split_lines(data.decode("utf-8", "replace")), start=1)]


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0
