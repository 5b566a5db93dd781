"""git, run in the user's project: nothing else of sessgit does that.

What only reads takes no lock of the repository and starts nothing that the project's configuration names: no hooks, no
file watcher, no programs that show differences. What git says on its errors is told in its own words.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import client_files
from sessgit.store import project

Env = Mapping[str, str]
"""The environment of the caller; its `GIT_*` could lead git to another repository, and is left out."""

_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_READING = ("git", "--no-optional-locks", *_QUIET)
_HEAD = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) \((\S+?)(, dirty)?\)")
_DETACHED = "(detached)"
_PATIENCE = 2.0
_MOVED = "If it moved: `sessgit restore ID --project DIR`."


@dataclass(frozen=True, slots=True)
class Head:
    """What a project was at: a commit, the branch or ``""`` where HEAD was detached, and whether tracked files
    differed from the commit."""

    commit: str
    branch: str
    dirty: bool

    def as_json(self) -> dict[str, object]:
        return {"commit": self.commit, "branch": self.branch or None, "dirty": self.dirty}


@dataclass(frozen=True, slots=True)
class Checkout:
    """The top folder of a worktree, and where in it a folder lies: ``""`` or `sub/folder`."""

    top: str
    inner: str


def parse(noted: str) -> Head | None:
    """The head that a `Project-Head` trailer notes, or None for a text that is none."""
    match = _HEAD.fullmatch(noted)
    if match is None:
        return None
    return Head(match[1], "" if match[2] == _DETACHED else match[2], bool(match[3]))


def head(folder: str, env: Env) -> str:
    """`commit (branch)` or `commit (branch, dirty)` of the project at a folder, or ``""`` where there is none.

    Waits two seconds at most.
    """
    with asking(folder, env) as answer:
        return answer()


@contextmanager
def asking(folder: str, env: Env) -> Iterator[Callable[[], str]]:
    """Lets git look for `head` beside whatever else is done; yields the function that waits for the answer."""
    if not project.is_repository(folder):  # known in a hundredth of the time
        yield lambda: ""
        return
    command = [*_READING, "status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all"]
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=_without_git(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError):
        yield lambda: ""
        return
    try:
        yield cache(lambda: _head(process))
    finally:
        with process:
            process.kill()


def _head(process: subprocess.Popen[bytes]) -> str:
    try:
        said = process.communicate(timeout=_PATIENCE)[0]
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


def checkout(folder: str, env: Env) -> Checkout:
    """The worktree that a folder lies in; raises NotFoundError where the folder is gone or in no repository."""
    if not os.path.isabs(folder):  # noqa: PTH117 - it may be no path at all
        raise NotFoundError("the conversation's folder is unknown", _MOVED)
    if client_files.is_gone(folder):
        raise NotFoundError(f"the project's folder is gone: {folder}", _MOVED)
    if project.key(folder) == folder:
        raise NotFoundError(f"{folder} is not in a git repository", "Its code at that time is unknown.")
    return Checkout(*(_path(read(folder, env, "rev-parse", what)) for what in ("--show-toplevel", "--show-prefix")))


def has(folder: str, env: Env, name: str) -> bool:
    """Whether the repository at a folder has an object; nothing is fetched for that."""
    command = [*_READING, "cat-file", "-e", name]
    return _run(command, folder, {**_without_git(env), "GIT_NO_LAZY_FETCH": "1"}).returncode == 0


def read(folder: str, env: Env, *arguments: str, ok: Collection[int] = (0,)) -> bytes:
    """What git prints in a folder; raises SessgitError with git's words where it leaves with another code."""
    done = _run([*_READING, *arguments], folder, _without_git(env))
    _check(done.returncode, done.stderr, ok)
    return done.stdout


def write(folder: str, env: Env, *arguments: str) -> None:
    """Lets git change the repository at a folder; no hook is run. Raises SessgitError with git's words.

    An interruption waits for git, which gets it as well and takes away what it began.
    """
    given = _without_git(env)
    with _starting(folder, given):
        process = subprocess.Popen(
            ["git", *_QUIET, *arguments], cwd=folder, env=given, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    try:
        said = process.communicate()[1]
    except BaseException:
        process.wait()
        raise
    _check(process.returncode, said, (0,))


def text(data: bytes) -> str:
    """Names and paths as git prints them; bytes that are no UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _run(command: list[str], folder: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    with _starting(folder, env):
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL)


@contextmanager
def _starting(folder: str, env: Env) -> Iterator[None]:
    """Says in words of ours why git could not be started."""
    try:
        yield
    except OSError as error:
        if Path(folder).is_dir():
            from sessgit.store import git

            git.program(env.get("PATH", os.defpath))
            raise git.not_run(error) from error
        raise NotFoundError(f"cannot enter the project's folder {folder}: {error.strerror}") from error
    except ValueError as error:
        raise NotFoundError(f"there is no folder {folder!r}") from error


def _check(code: int, stderr: bytes, ok: Collection[int]) -> None:
    if code in ok:
        return
    words = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    first = next((n for n, line in enumerate(words) if line.startswith(("fatal: ", "error: "))), 0)
    said = words[first].partition(": ")[2] or words[first] if words else f"exit code {code}"
    raise SessgitError(f"git: {said}", " ".join(words[first + 1 :]))


def _without_git(env: Env) -> dict[str, str]:
    kept = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0"}


def _path(data: bytes) -> str:
    return os.fsdecode(data.removesuffix(b"\n")).rstrip("/") or ("/" if data.startswith(b"/") else "")
