"""The folder in which cells run again: the code as it was then, and nothing of the user's own files.

The code comes out of the project's repository as a clone that shares its objects: whatever git does in it, a commit or
a rebase, it does there, and the repository is only read. Without a repository, or a commit, the folder is empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import project_git
from sessgit.history.project_git import Head
from sessgit.model.frozen import frozen
from sessgit.replay.sandbox.processes import Confinement, is_below
from sessgit.store import tempdirs
from sessgit.store.context import Context
from sessgit.store.index import Branch

_INHERITED_ENV = ("PATH",)
_PATH_END = r"(?![\w-]|\.\w)"
_PATH_START = r"(?:(?<![\w./-])|(?<=[\s\"'=(]-[A-Za-z]))"


@frozen
class Sandbox:
    """A folder `project` that replaces the recorded one, `source`, and the confinement of what runs in it: there the
    home folder is hidden, and the folders of git's objects that the clone shares can be read.

    `head` is the commit that it holds, None where it holds none, and then `why` says so; `before` is the turn at whose
    end the commit was recorded.
    """

    project: str
    source: str
    confinement: Confinement
    head: Head | None
    why: str
    before: int
    to_sandbox: Callable[[str], str]
    """Returns a text with the sandbox in place of the recorded folder."""
    to_recorded: Callable[[str], str]
    """Returns a text with the recorded folder in place of the sandbox."""

    def is_inside(self, path: str) -> bool:
        """Return whether a recorded absolute path lies in the recorded folder; links are not resolved."""
        return is_below(os.path.normpath(path), self.source)


def _head_before(context: Context, branch: Branch, first: int) -> tuple[Head | None, int]:
    """Return the project's commit at the end of the turn before `first`, else at its own end, and that turn."""
    for turn in (first - 1, first):
        with suppress(NotFoundError):
            return project_git.head_at(context, branch, turn), turn
    return None, 0


@contextmanager
def make_sandbox(
    context: Context, branch: Branch, first: int, project: str, env: Mapping[str, str], confinement: Confinement
) -> Iterator[Sandbox]:
    """Yield a sandbox for the turns from `first` on, which exists for the block; `project` is the branch's on this
    machine, `confinement` has the limits and what is allowed besides."""
    with tempdirs.make_folder("sessgit-replay-") as base:
        for name in ("home", "tmp"):
            (base / name).mkdir()
        folder = str(base / "project")
        head, turn = _head_before(context, branch, first)
        why, source = _fill_folder(head, branch.state.project, project, folder, env)
        own = {name: env[name] for name in _INHERITED_ENV if name in env}
        own |= {"HOME": str(base / "home"), "TMPDIR": str(base / "tmp"), "LANG": "C.UTF-8", "SESSGIT_OFF": "1"}
        writable = (folder, own["HOME"], own["TMPDIR"])
        hidden = (env["HOME"],) if env.get("HOME", "/").strip("/") else ()
        readable = tuple(_alternate_folders(Path(folder, ".git/objects")))
        confinement = replace(confinement, writable=writable, env=own, readable=readable, hidden=hidden)
        head, turn = (None, 0) if why else (head, turn)
        replacers = path_replacer(source, folder), path_replacer(folder, source)
        yield Sandbox(folder, source, confinement, head, why, turn, *replacers)


def sandboxed_root(recorded: str, folder: str, env: Mapping[str, str]) -> str:
    """Return the recorded folder that a sandbox replaces: the top of the repository, else the project."""
    try:
        return _recorded_top(recorded, project_git.find_checkout(folder, env).inner)
    except SessgitError:
        return recorded


# Inside


def _fill_folder(
    head: Head | None, recorded: str, project: str, folder: str, env: Mapping[str, str]
) -> tuple[str, str]:
    """Fill the folder with the project at a commit; return the reason why it stays empty, or "", and the recorded
    folder that it replaces."""
    path, source, why = Path(folder), recorded, ""
    try:
        checkout = project_git.find_checkout(project, env)
        source = _recorded_top(recorded, checkout.inner)
        if head is None:
            raise NotFoundError("the project's commit is unknown")
        if not project_git.has_object(checkout.top, env, f"{head.commit}^{{commit}}"):
            raise NotFoundError(f"the project's commit {head.commit[:8]} is not in {checkout.top}")
        _clone_repository(checkout.top, head, folder, env)
    except SessgitError as error:
        why = str(error)
        if path.exists():
            tempdirs.delete_folder(path)
        path.mkdir()
    return why, source


def _clone_repository(top: str, head: Head, folder: str, env: Mapping[str, str]) -> None:
    project_git.run_change(top, env, "clone", "--quiet", "--shared", "--no-checkout", "--template=", "--", top, folder)
    project_git.run_change(folder, env, "remote", "remove", "origin")
    if head.branch and not head.branch.startswith("-"):
        with suppress(SessgitError):
            project_git.run_change(folder, env, "checkout", "--quiet", "-B", head.branch, head.commit, "--")
            return
    project_git.run_change(folder, env, "checkout", "--quiet", "--detach", head.commit, "--")


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
    """Return the top of the repository as the conversation names it."""
    shorter = recorded.rstrip("/").removesuffix(f"/{inner.rstrip('/')}") if inner else recorded
    return shorter or "/"


def path_replacer(old: str, new: str) -> Callable[[str], str]:
    """Return a function that replaces one folder by another in a text, also under the path to which its links lead."""
    places = {old.rstrip("/"), os.path.realpath(old).rstrip("/")} - {""}
    if not places:
        return str
    either = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    pattern = re.compile(f"{_PATH_START}(?:{either}){_PATH_END}")
    return lambda text: pattern.sub(lambda _: new, text)
