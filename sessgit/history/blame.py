"""Who wrote each line of a file: a turn of a conversation, or else a commit of the project.

git says which commit each line comes from and what the file was called, the index which calls edited it in any
conversation. Which call wrote which line follows from texts and commits alone: a line is an *anchor* if its text is
distinctive and once in the file, and exactly one edit can have put it there: one that added it, before the line was
committed and after the commit before that. From an anchor on, the edit's other lines are recognized as long as they
follow without a gap. An anchor is certain, and so is what lies between two anchors of one edit; what lies beyond the
last one is probable, since a line like `}` may be another's.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from sessgit.errors import NotFoundError, UsageError
from sessgit.history import blame_edits
from sessgit.history.blame_edits import RecordedEdit, is_redacted
from sessgit.history.code import git, line_commits
from sessgit.history.code.git import Env
from sessgit.history.code.line_commits import FileCommits, FileLine, LineCommit
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import project
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row

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
class EditedLine:
    """The edit that wrote a line, and how certain that is; or None and the reason."""

    edit: RecordedEdit | None
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


def edited_lines(
    lines: Sequence[FileLine], commits: FileCommits, edits: Sequence[RecordedEdit], now: float
) -> list[EditedLine]:
    """Return for each line of a file the edit that last wrote it, if that is known. The edits are in order of time."""
    return _Matcher(lines, commits, edits, now).match()


def is_distinctive(text: str) -> bool:
    """Return whether a line has enough letters and digits not to be written twice by chance."""
    return len(_WORD.findall(text)) >= _LEAST_WORD_CHARS


class _Matcher:
    def __init__(
        self, lines: Sequence[FileLine], commits: FileCommits, edits: Sequence[RecordedEdit], now: float
    ) -> None:
        self.lines, self.commits, self.edits, self.now = lines, commits, edits, now
        self.counts = Counter(line.text for line in lines)
        self.places = self._find_places()
        self.removals = self._find_removals()
        self.lies_between = cache(self._lies_between)
        self.texts_before = cache(self._texts_before)

    def _find_places(self) -> Mapping[str, list[_Place]]:
        """Return where edits wrote the texts that can be anchors. A file that was written as a whole may have had the
        line before: if an earlier edit wrote it, that is the one."""
        wanted = {text for text, count in self.counts.items() if count == 1 and is_distinctive(text)}
        places: dict[str, list[_Place]] = {}
        for number, edit in enumerate(self.edits):
            for block_number, block in enumerate(edit.blocks):
                for place, text in enumerate(block.lines):
                    if text not in wanted or block.marks[place] == "-" or is_redacted(text):
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

    def match(self) -> list[EditedLine]:
        found = [self._anchor(line) for line in self.lines]
        groups = self._grouped(found)
        out = [EditedLine(None, None, None if isinstance(one, _Place) else one) for one in found]
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
                out[start] = EditedLine(None, None, "elsewhere")
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

    def _name(self, out: list[EditedLine], anchor: _Place, span: tuple[int, int], certainty: Certainty) -> None:
        """Name the edit of the lines from one anchor to another, and of those around them that it added too."""
        edit, before = self.edits[anchor.edit], self.texts_before(anchor.edit, anchor.block)
        first, last = span
        for line in range(first, last + 1):
            out[line] = EditedLine(edit, certainty)
        for beyond in (range(first - 1, -1, -1), range(last + 1, len(out))):
            for line in beyond:
                is_other = out[line].edit is not None or self.lines[line].text in before
                if is_other or not self._continues(anchor, first, line):
                    break
                out[line] = EditedLine(edit, "run")

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
            and not is_redacted(block.lines[place])
        )

    def _anchor(self, line: FileLine) -> _Place | Silence:
        """Return the line of an edit that alone can be this one, or why there is none."""
        if not is_distinctive(line.text):
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
        is_created = place.edit == 0 and not self.commits.ancestors(line.commit.id if line.commit else "")
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
        others = (self.commits.commits[oid] for oid in self.commits.ancestors(commit.id if commit else ""))
        return any(
            time < other.author_time
            and (commit is None or (other.author_time < commit.author_time and other.email == commit.email))
            for other in others
        )


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
class BlamedLine:
    """A line, its number in the file, and the edit that wrote it, if that is known."""

    number: int
    line: FileLine
    edited: EditedLine


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
        edit = line.edited.edit
        return self.authors.get(edit.commit) if edit else None


def blame(context: Context, path: str, revision: str, env: Env, progress: Progress = no_progress) -> Blame:
    """Return who wrote each line of a file, given by its absolute path: as it is now, or at a revision.

    `progress` counts the turns whose edits are not in the index yet. Raises NotFoundError, UsageError, SessgitError.
    """
    file = locate_file(os.path.realpath(path), env)
    if revision and not file.top:
        raise UsageError(f"{path} is not in a git repository, so it has no revisions", "Leave out REV.")
    commit = line_commits.resolve_commit(file.top, revision, env) if revision else ""
    blame_edits.update_edits(context, progress)
    return _blame_file(context, file, commit, commit, env)


@frozen
class CommitTurn:
    """A turn with edits that a commit of the project brought, and the number of their lines by the file's path."""

    author: Author
    lines: Mapping[str, int]


def commit_turns(
    context: Context, folder: str, revision: str, env: Env, progress: Progress = no_progress
) -> tuple[str, list[CommitTurn]]:
    """Return the id of a commit of the project at a folder, and the turns that wrote lines which it added, the oldest
    first. `progress` is as in `blame`."""
    top = git.find_checkout(os.path.realpath(folder), env).top
    commit = line_commits.resolve_commit(top, revision, env)
    blame_edits.update_edits(context, progress)
    lines: dict[str, dict[str, int]] = {}
    authors: dict[str, Author] = {}
    for path in line_commits.changed_files(top, commit, env):
        found = _blame_file(context, BlamedFile(top, path), commit, f"{commit}^!", env)
        authors.update(found.authors)
        for line in found.lines:
            edit, own = line.edited.edit, line.line.commit
            if edit is not None and own is not None and own.id == commit and edit.commit in authors:
                counts = lines.setdefault(edit.commit, {})
                counts[path] = counts.get(path, 0) + 1
    turns = [CommitTurn(authors[own], counts) for own, counts in lines.items()]
    return commit, sorted(turns, key=lambda turn: (turn.author.row.time, turn.author.row.branch, turn.author.row.turn))


def _blame_file(context: Context, file: BlamedFile, commit: str, span: str, env: Env) -> Blame:
    """Return who wrote each line of a file at a commit, or now for ``""``; of lines from before a span of commits only
    the commit at its start is known."""
    lines, commits = _read_lines(file, commit, span, env)
    is_tracked = bool(file.top) and (bool(commits.commits) or any(line.commit for line in lines))
    names = {line.path for line in lines if line.path} | {file.path}
    edits = blame_edits.find_edits(context, names, _root_finder(context, file, names))
    found = edited_lines(lines, commits, edits, context.now())
    blamed = [BlamedLine(n, line, edited) for n, (line, edited) in enumerate(zip(lines, found, strict=True), start=1)]
    places = context.index.turns_of_commits(sorted({one.edit.commit for one in found if one.edit}))
    branches = {one.name: one for one in context.index.branches_named(sorted({name for name, _ in places.values()}))}
    authors = dict[str, Author]()
    for own, (name, turn) in places.items():
        row = context.index.turn(name, turn)
        if row is not None and name in branches:
            authors[own] = Author(branches[name], row, context.index.title(row))
    return Blame(file, commit, blamed, authors, is_tracked)


def locate_file(path: str, env: Env) -> BlamedFile:
    """Return where a file is; its folder must exist, the file need not."""
    folder, name = os.path.split(path)
    if not Path(folder).is_dir():
        raise NotFoundError(f"there is no folder {folder}", "Name a file relative to this folder.")
    if not project.is_repository(folder):
        return BlamedFile("", path)
    checkout = git.find_checkout(folder, env)
    return BlamedFile(checkout.top, f"{checkout.inner}/{name}".lstrip("/"))


def _read_lines(file: BlamedFile, commit: str, span: str, env: Env) -> tuple[list[FileLine], FileCommits]:
    """Return the lines of a file, and the commits that changed it."""
    if commit and not git.has_object(file.top, env, f"{commit}:{file.path}"):
        raise NotFoundError(
            f"{file.path} is not in commit {commit[:8]}",
            f"`git log --follow -- {file.path}` lists the commits with it.",
        )
    if not commit:
        lines = line_commits.untracked_lines(file.whole)
        if not file.top or not git.has_object(file.top, env, f"HEAD:{file.path}"):
            return lines, FileCommits()
    lines = line_commits.blame_lines(file.top, file.path, env, span)
    paths = {line.path for line in lines} | {file.path}
    return lines, line_commits.file_commits(file.top, sorted(paths), env, commit or "HEAD")


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
