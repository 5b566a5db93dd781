"""The folder in which cells run again: the code as it was then, and nothing of the person's own.

The code comes out of the project's repository as a clone that shares its objects: whatever git does in it, a commit or
a rebase, it does there, and the repository is only read. Without a repository, or a commit, the folder is empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.history.code import git
from sessgit.history.code.git import Head
from sessgit.model.homes import Homes
from sessgit.replay.sandbox.isolation import is_below
from sessgit.store import project, tempdirs
from sessgit.store.context import Context
from sessgit.store.index import Branch

_INHERITED_ENV = ("PATH",)
_PATH_END = r"(?![\w-]|\.\w)"
_PATH_START = r"(?:(?<![\w./-])|(?<=[\s\"'=(]-[A-Za-z]))"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`project` is the folder that stands for the recorded one, `source`; `writable` are all in which may be written.

    `head` is the commit that it holds, None where it holds none, and then `why` says so.
    """

    project: str
    source: str
    writable: tuple[str, ...]
    env: Mapping[str, str]
    head: Head | None = None
    why: str = ""
    given: bool = False
    readable: tuple[str, ...] = ()
    """Folders of git's objects that the clone shares."""
    hidden: tuple[str, ...] = ()
    """The home folder."""
    before: int = 0
    """The turn at whose end the commit was noted."""
    _inward: Callable[[str], str] = field(default=str, compare=False)
    _outward: Callable[[str], str] = field(default=str, compare=False)

    def to_sandbox(self, text: str) -> str:
        """The text with the sandbox in place of the recorded folder."""
        return self._inward(text)

    def to_recorded(self, text: str) -> str:
        """The text with the recorded folder in place of the sandbox."""
        return self._outward(text)

    def is_inside(self, path: str) -> bool:
        """Whether an absolute path as it is recorded lies in the recorded folder, links aside."""
        return is_below(os.path.normpath(path), self.source)


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """Where the code is to come from: the recorded folder of the project, the folder here that stands for it, and what
    it was at, after which turn."""

    recorded: str
    folder: str
    head: Head | None = None
    turn: int = 0


def code_origin(context: Context, branch: Branch, first: int, folder: str) -> CodeOrigin:
    """Where the code of turn `first` is to come from: as the project was noted at the end of the turn before, else at
    that turn's own; `folder` is the project here."""
    for turn in (first - 1, first):
        with suppress(NotFoundError):
            return CodeOrigin(branch.state.project, folder, git.head_at(context, branch, turn), turn)
    return CodeOrigin(branch.state.project, folder)


@contextmanager
def make_sandbox(origin: CodeOrigin, env: Mapping[str, str], chosen: str = "") -> Iterator[Sandbox]:
    """A sandbox that is there for the block; `chosen` is a folder of the person's to be it, which stays."""
    with tempdirs.make_folder("sessgit-replay-") as base:
        for name in ("home", "tmp"):
            (base / name).mkdir()
        folder = chosen or str(base / "project")
        if chosen:
            head, why, source = None, "", sandboxed_root(origin.recorded, origin.folder, env)
        else:
            head, why, source = _fill_folder(origin, folder, env)
        own = {name: env[name] for name in _INHERITED_ENV if name in env}
        own |= {"HOME": str(base / "home"), "TMPDIR": str(base / "tmp"), "LANG": "C.UTF-8", "SESSGIT_OFF": "1"}
        writable = (folder, own["HOME"], own["TMPDIR"])
        hidden = (env["HOME"],) if env.get("HOME", "/").strip("/") else ()
        yield Sandbox(
            folder, source, writable, own, head, why, bool(chosen),
            tuple(_alternate_folders(Path(folder, ".git/objects"))),
            hidden, origin.turn if head else 0, path_replacer(source, folder), path_replacer(folder, source),
        )  # fmt: skip


def check_given_folder(folder: str, guarded: Sequence[str]) -> str:
    """The folder with its links resolved; raises NotFoundError where it is none, UsageError where something that is
    guarded lies in it, or it in that."""
    real = os.path.realpath(folder)
    if not Path(real).is_dir():
        raise NotFoundError(f"there is no folder {folder}", "--in needs an existing folder.")
    for other in filter(None, guarded):
        place = os.path.realpath(other)
        if real == "/" or is_below(real, place) or is_below(place, real):
            raise UsageError(
                f"--in {folder} is not safe: what runs there could change {place}",
                "Name an empty folder, or leave out --in.",
            )
    return real


def sandboxed_root(recorded: str, folder: str, env: Mapping[str, str]) -> str:
    """The folder, as it is recorded, for which a sandbox stands: the top of the repository, else the project's."""
    try:
        return _recorded_top(recorded, git.find_checkout(folder, env).inner)
    except SessgitError:
        return recorded


# Inside


def _fill_folder(origin: CodeOrigin, folder: str, env: Mapping[str, str]) -> tuple[Head | None, str, str]:
    """What the folder holds now, or why it is empty; and the recorded folder that it stands for."""
    path = Path(folder)
    try:
        found = git.find_checkout(origin.folder, env)
    except SessgitError as error:
        path.mkdir()
        return None, str(error), origin.recorded
    source = _recorded_top(origin.recorded, found.inner)
    try:
        if origin.head is None:
            raise NotFoundError("the project's commit is unknown")
        if not git.has_object(found.top, env, f"{origin.head.commit}^{{commit}}"):
            raise NotFoundError(f"the project's commit {origin.head.commit[:8]} is not in {found.top}")
        _clone_repository(found.top, origin.head, folder, env)
    except SessgitError as error:
        if path.exists():
            tempdirs.delete_folder(path)
        path.mkdir()
        return None, str(error), source
    return origin.head, "", source


def _clone_repository(top: str, head: Head, folder: str, env: Mapping[str, str]) -> None:
    git.run_change(top, env, "clone", "--quiet", "--shared", "--no-checkout", "--template=", "--", top, folder)
    git.run_change(folder, env, "remote", "remove", "origin")
    if head.branch and not head.branch.startswith("-"):
        with suppress(SessgitError):
            git.run_change(folder, env, "checkout", "--quiet", "-B", head.branch, head.commit, "--")
            return
    git.run_change(folder, env, "checkout", "--quiet", "--detach", head.commit, "--")


def _alternate_folders(objects: Path) -> Iterator[str]:
    """Yield the folders whose objects a repository shares, and those that these share in turn."""
    waiting, met = [objects], {objects}
    while waiting:
        folder = waiting.pop()
        with suppress(OSError):
            for line in (folder / "info/alternates").read_text("utf-8", "surrogateescape").splitlines():
                other = Path(os.path.normpath(folder / line))
                if other not in met:
                    met.add(other)
                    waiting.append(other)
                    yield str(other)


def _recorded_top(recorded: str, inner: str) -> str:
    """The top of the repository, as the paths of the conversation have it."""
    shorter = recorded.rstrip("/").removesuffix(f"/{inner.rstrip('/')}") if inner else recorded
    return shorter or "/"


def path_replacer(old: str, new: str) -> Callable[[str], str]:
    """A function that puts one folder in place of another in a text, also by the path to which links lead."""
    places = {old.rstrip("/"), os.path.realpath(old).rstrip("/")} - {""}
    if not places:
        return str
    either = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    found = re.compile(f"{_PATH_START}(?:{either}){_PATH_END}")
    return lambda text: found.sub(lambda _: new, text)


def protected_folders(folder: str, store: Path, homes: Homes) -> tuple[str, ...]:
    """What no sandbox may be, hold or lie in: the project, the store, the clients' folders."""
    found = project.linked_worktree(folder) or project.project_root(folder) if folder else ""
    return (found, str(store), *map(str, homes.folders.values()))
