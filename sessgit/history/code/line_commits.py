"""The commit that each line of a file comes from, as `git blame` says, and the commits that changed the file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.history.code import git
from sessgit.history.code.git import Env
from sessgit.model.frozen import frozen

MOST_FILES = 500
"""Files of a commit that are read."""
_NO_COMMIT = "0" * 40
_BINARY = 8000
"""Bytes at the start of a file among which git looks for a NUL, as in a binary file."""
_FORMAT = "%H%x09%at%x09%ct%x09%ae%x09%P"


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
class FileCommit:
    """A commit that changed a file: its author's address, its times, and the next older commits that changed it."""

    email: str
    author_time: int
    time: int
    parents: tuple[str, ...]


@dataclass(frozen=True)
class FileCommits:
    """The commits that changed a file, by id, the newest first."""

    commits: Mapping[str, FileCommit] = field(default_factory=dict)
    _ancestors: dict[str, frozenset[str]] = field(default_factory=dict)

    def ancestors(self, commit: str) -> frozenset[str]:
        """Return the commits that changed the file before a commit did, or all of them for ``""``."""
        if not commit:
            return frozenset(self.commits)
        if commit not in self._ancestors:
            found, waiting = set[str](), [commit]
            while waiting:
                known = self.commits.get(waiting.pop())
                new = [parent for parent in known.parents if parent not in found] if known else []
                found.update(new)
                waiting += new
            self._ancestors[commit] = frozenset(found)
        return self._ancestors[commit]


def blame_lines(top: str, path: str, env: Env, revision: str = "") -> list[FileLine]:
    """Return the lines of a file in the working tree at `top`, or at a revision or range of revisions; `path` is
    relative to `top`. Lines from before a range have the commit at its start. Raises SessgitError."""
    options = ("blame", "--porcelain", "--no-textconv", "--no-progress")
    output = git.read_output(top, env, *options, *([revision] if revision else []), "--", path)
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


def file_commits(top: str, paths: Iterable[str], env: Env, revision: str = "HEAD") -> FileCommits:
    """Return the commits up to a revision that changed one of the paths, relative to `top`; none before the first
    commit."""
    try:
        output = git.read_output(
            top, env, "--literal-pathspecs", "log", "--parents", f"--format={_FORMAT}", revision, "--", *paths
        )
    except SessgitError:
        return FileCommits()
    commits = {}
    for line in output.decode("utf-8", "replace").split("\n")[:-1]:
        oid, author_time, time, email, parents = line.split("\t")
        commits[oid] = FileCommit(email, _count(author_time), _count(time), tuple(parents.split()))
    return FileCommits(commits)


def resolve_commit(top: str, revision: str, env: Env) -> str:
    """Return the id of the commit that a revision names; raises NotFoundError."""
    name = f"{revision}^{{commit}}"
    try:
        output = git.read_output(top, env, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except SessgitError:
        raise NotFoundError(
            f"“{revision}” names no commit of the repository {top}", "`git log --oneline` lists its commits."
        ) from None
    return git.decode_name(output).strip()


def changed_files(top: str, commit: str, env: Env) -> list[str]:
    """Return the paths of the text files that a commit added or changed, at most `MOST_FILES`."""
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
    words = git.decode_name(git.read_output(top, env, *options, commit)).split("\0")
    changed = (word.split("\t", 2) for word in words if word.count("\t") >= 2)
    return list(dict.fromkeys(path for added, _, path in changed if added.isdecimal()))[:MOST_FILES]


def untracked_lines(file: str) -> list[FileLine]:
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
    lines = data.decode("utf-8", "replace").split("\n")
    return [
        FileLine(line.removesuffix("\r"), number=n) for n, line in enumerate(lines[: -1 if not lines[-1] else None], 1)
    ]


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0
