"""Runs git in the user's project, and tells the project's head at each turn, as it was recorded.

Commands that read take no lock of the repository and start nothing that the project's configuration names: no hooks, no
file watcher, no diff programs. git's own error messages are passed on.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import client_files
from sessgit.model.frozen import frozen
from sessgit.store import project
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store

Env = Mapping[str, str]
"""The caller's environment; git does not get its `GIT_*`, which could name another repository."""

_NO_HOOKS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_READ_COMMAND = ("git", "--no-optional-locks", *_NO_HOOKS)
_HEAD_TRAILER = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) \((\S+?)(, dirty)?\)")
_DETACHED = "(detached)"
_TIMEOUT = 2.0
_MOVED_HINT = "If it moved: `sessgit restore ID --project DIR`."


@frozen
class Head:
    """The head of a project: a commit, the branch or ``""`` if HEAD was detached, and whether tracked files differed
    from the commit."""

    commit: str
    branch: str
    dirty: bool

    def as_json(self) -> dict[str, object]:
        return {"commit": self.commit, "branch": self.branch or None, "dirty": self.dirty}


@frozen
class Checkout:
    """The top folder of a worktree, and the path of a folder in it, ``""`` or `sub/folder`."""

    top: str
    inner: str


def parse_head(trailer: str) -> Head | None:
    """Return the head in a `Project-Head` trailer, or None if it has none."""
    match = _HEAD_TRAILER.fullmatch(trailer)
    if match is None:
        return None
    return Head(match[1], "" if match[2] == _DETACHED else match[2], bool(match[3]))


def head_after_turn(store: Store, row: Row) -> Head | None:
    """Return the project's head at the end of a turn, as the last commit of the turn that has one recorded it, or None.

    A commit that was made after the client had ended has none.
    """
    known = parse_head(row.trailer("Project-Head"))
    earlier = (parse_head(store.message(commit).get("Project-Head")) for commit in reversed(row.commits[:-1]))
    return known or next((found for found in earlier if found), None)


def head_at(context: Context, branch: Branch, turn: int, cell: str = "") -> Head:
    """Return the project's head after a turn, or after a cell of it; raises NotFoundError if none is recorded.

    After a cell it is the last one recorded before that point: with the turn's own cells if cells were recorded, else
    with the turn before.
    """
    row = context.index.turn(branch.name, turn)
    if cell and row is not None:
        found = _head_of_cells(context.store, row, cell)
        if found is not None:
            return found
        turn, row = turn - 1, context.index.turn(branch.name, turn - 1)
    found = head_after_turn(context.store, row) if row is not None else None
    if found is None:
        known = [row.turn for row in context.index.turns(branch.name) if head_after_turn(context.store, row)]
        short = branch.short
        what = (
            f"the project's commit at turn {turn} of {short} is unknown"
            if turn
            else "nothing is recorded before turn 1"
        )
        nearest = min(known, key=lambda one: (abs(one - turn), one), default=0)
        raise NotFoundError(
            what,
            f"The nearest turn with a commit is {short}@{nearest}."
            if known
            else "Commits are recorded only while a conversation runs in a git repository, not by import.",
        )
    return found


def _head_of_cells(store: Store, row: Row, cell: str) -> Head | None:
    """Return the last head recorded with the turn's cells up to this one, an ordinal or an id."""
    if len(row.commits) == 1:
        return None
    ids = [one.id for one in store.cells(row.commit, row.turn)]
    last = int(cell) if cell.isdecimal() else ids.index(cell) + 1 if cell in ids else 0
    for commit in reversed(row.commits):
        message = store.message(commit)
        done = message.get("Cell")
        found = parse_head(message.get("Project-Head"))
        if found is not None and done in ids[:last]:
            return found
    return None


def project_head(folder: str, env: Env) -> str:
    """Return `commit (branch)` or `commit (branch, dirty)` of the project at a folder, or ``""`` if there is none.

    Waits two seconds at most.
    """
    with project_head_in_background(folder, env) as answer:
        return answer()


@contextmanager
def project_head_in_background(folder: str, env: Env) -> Iterator[Callable[[], str]]:
    """Start git for `project_head`; yields the function that waits for the answer."""
    if not project.is_repository(folder):  # known in a hundredth of the time
        yield lambda: ""
        return
    command = [
        *_READ_COMMAND,
        "status",
        "--porcelain=v2",
        "--branch",
        "--untracked-files=no",
        "--ignore-submodules=all",
    ]
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=_env_without_git(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError):
        yield lambda: ""
        return
    try:
        yield cache(lambda: _read_head(process))
    finally:
        with process:
            process.kill()


def _read_head(process: subprocess.Popen[bytes]) -> str:
    try:
        said = process.communicate(timeout=_TIMEOUT)[0]
    except subprocess.SubprocessError:
        return ""
    if process.returncode:
        return ""
    lines = said.decode("utf-8", "replace").splitlines()
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch.") and " " in line[2:])
    commit = facts.get("branch.oid", "")
    if not commit or commit == "(initial)":
        return ""
    dirty = ", dirty" if any(not line.startswith("#") for line in lines) else ""
    return f"{commit} ({facts.get('branch.head', _DETACHED)}{dirty})"


def find_checkout(folder: str, env: Env) -> Checkout:
    """Return the worktree of a folder; raises NotFoundError if the folder is gone or in no repository."""
    if not os.path.isabs(folder):  # noqa: PTH117 - it may be no path at all
        raise NotFoundError("the conversation's folder is unknown", _MOVED_HINT)
    if client_files.is_folder_gone(folder):
        raise NotFoundError(f"the project's folder is gone: {folder}", _MOVED_HINT)
    if project.project_key(folder) == folder:
        raise NotFoundError(f"{folder} is not in a git repository", "Its code at that time is unknown.")
    return Checkout(
        *(_decode_path(read_output(folder, env, "rev-parse", what)) for what in ("--show-toplevel", "--show-prefix"))
    )


def has_object(folder: str, env: Env, name: str) -> bool:
    """Return whether the repository at a folder has an object, without fetching it."""
    return not _run_git([*_READ_COMMAND, "cat-file", "-e", name], folder, env, GIT_NO_LAZY_FETCH="1").returncode


def read_output(folder: str, env: Env, *arguments: str, ok: Collection[int] = (0,)) -> bytes:
    """Return what git prints in a folder; raises SessgitError with git's message if it exits with another code."""
    done = _run_git([*_READ_COMMAND, *arguments], folder, env)
    _check_exit(done.returncode, done.stderr, ok)
    return done.stdout


def run_change(folder: str, env: Env, *arguments: str) -> None:
    """Run a git command that changes the repository at a folder, without hooks. Raises SessgitError with git's message.

    After an interruption it waits for git, which is interrupted as well and cleans up.
    """
    with _start_errors(folder, env):
        process = subprocess.Popen(
            ["git", *_NO_HOOKS, *arguments], cwd=folder, env=_env_without_git(env), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    try:
        said = process.communicate()[1]
    except BaseException:
        process.wait()
        raise
    _check_exit(process.returncode, said, (0,))


def decode_name(data: bytes) -> str:
    """Return a name or path as git prints it; bytes that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _run_git(command: list[str], folder: str, env: Env, **more: str) -> subprocess.CompletedProcess[bytes]:
    with _start_errors(folder, env):
        return subprocess.run(
            command, cwd=folder, env=_env_without_git(env) | more, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


@contextmanager
def _start_errors(folder: str, env: Env) -> Iterator[None]:
    """Turn the error that git could not be started into one that says why."""
    try:
        yield
    except OSError as error:
        if Path(folder).is_dir():
            from sessgit.store import git

            git.find_git(env.get("PATH", os.defpath))
            raise git.start_error(error) from error
        raise NotFoundError(f"cannot enter the project's folder {folder}: {error.strerror}") from error
    except ValueError as error:
        raise NotFoundError(f"there is no folder {folder!r}") from error


def _check_exit(code: int, stderr: bytes, ok: Collection[int]) -> None:
    if code in ok:
        return
    words = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    first = next((n for n, line in enumerate(words) if line.startswith(("fatal: ", "error: "))), 0)
    said = words[first].partition(": ")[2] or words[first] if words else f"exit code {code}"
    raise SessgitError(f"git: {said}", " ".join(words[first + 1 :]))


def _env_without_git(env: Env) -> dict[str, str]:
    kept = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0"}


def _decode_path(data: bytes) -> str:
    return os.fsdecode(data.removesuffix(b"\n")).rstrip("/") or ("/" if data.startswith(b"/") else "")
