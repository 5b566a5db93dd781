"""Who wrote each line of a file: a turn of a conversation, or else a commit of the project.

git says which commit each line comes from and what the file was called, the index which calls edited it in any
conversation, and `blame_anchors` which call wrote which line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from sessgit.errors import NotFoundError, UsageError
from sessgit.history import blame_edits
from sessgit.history.blame_anchors import EditedLine, edited_lines
from sessgit.history.code import git, line_commits
from sessgit.history.code.git import Env
from sessgit.history.code.line_commits import FileCommits, FileLine
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import project
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row


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
