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

_NO_HOOKS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_READ_COMMAND = ("git", "--no-optional-locks", *_NO_HOOKS)
_HEAD_TRAILER = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) \((\S+?)(, dirty)?\)")
_DETACHED = "(detached)"
_TIMEOUT = 2.0
_MOVED_HINT = "If it moved: `sessgit restore ID --project DIR`."


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


def parse_head(noted: str) -> Head | None:
    """The head that a `Project-Head` trailer notes, or None for a text that is none."""
    match = _HEAD_TRAILER.fullmatch(noted)
    if match is None:
        return None
    return Head(match[1], "" if match[2] == _DETACHED else match[2], bool(match[3]))


def project_head(folder: str, env: Env) -> str:
    """`commit (branch)` or `commit (branch, dirty)` of the project at a folder, or ``""`` where there is none.

    Waits two seconds at most.
    """
    with project_head_in_background(folder, env) as answer:
        return answer()


@contextmanager
def project_head_in_background(folder: str, env: Env) -> Iterator[Callable[[], str]]:
    """Lets git look for `project_head` beside whatever else is done; yields the function that waits for the answer."""
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
    """The worktree that a folder lies in; raises NotFoundError where the folder is gone or in no repository."""
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
    """Whether the repository at a folder has an object; nothing is fetched for that."""
    command = [*_READ_COMMAND, "cat-file", "-e", name]
    return _run_git(command, folder, {**_env_without_git(env), "GIT_NO_LAZY_FETCH": "1"}).returncode == 0


def read_output(folder: str, env: Env, *arguments: str, ok: Collection[int] = (0,)) -> bytes:
    """What git prints in a folder; raises SessgitError with git's words where it leaves with another code."""
    done = _run_git([*_READ_COMMAND, *arguments], folder, _env_without_git(env))
    _check_exit(done.returncode, done.stderr, ok)
    return done.stdout


def run_change(folder: str, env: Env, *arguments: str) -> None:
    """Lets git change the repository at a folder; no hook is run. Raises SessgitError with git's words.

    An interruption waits for git, which gets it as well and takes away what it began.
    """
    given = _env_without_git(env)
    with _start_errors(folder, given):
        process = subprocess.Popen(
            ["git", *_NO_HOOKS, *arguments], cwd=folder, env=given, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    try:
        said = process.communicate()[1]
    except BaseException:
        process.wait()
        raise
    _check_exit(process.returncode, said, (0,))


def decode_name(data: bytes) -> str:
    """Names and paths as git prints them; bytes that are no UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _run_git(command: list[str], folder: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    with _start_errors(folder, env):
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL)


@contextmanager
def _start_errors(folder: str, env: Env) -> Iterator[None]:
    """Says in words of ours why git could not be started."""
    try:
        yield
    except OSError as error:
        if Path(folder).is_dir():
            from sessgit.store import git

            git.find_git(env.get("PATH", os.defpath))
            raise git.git_start_error(error) from error
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
