"""A temporary worktree of the user's project, moved from commit to commit, for commands to be run in.

The user's own worktrees, branches and index are never touched, and no hook is run. git notes a worktree in the
repository for as long as it is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sessgit.branch import worktree as worktrees
from sessgit.branch.worktree import Worktree
from sessgit.errors import ROOM, SessgitError
from sessgit.history.code import git
from sessgit.history.code.git import Env, Head
from sessgit.store.files import tempdirs

_NO_SUBMODULES = ("-c", "submodule.recurse=false")


class BisectWorktree:
    """One worktree in a folder of its own. It is made when somebody goes to a commit for the first time."""

    def __init__(self, project: str, env: Env, room: Path) -> None:
        """`project` is a folder of the user's repository, `room` an empty one; raises NotFoundError without git."""
        self.found = git.find_checkout(project, env)
        self._project, self._env = project, env
        self._path = room / (Path(self.found.top).name or "project")
        self._planned: Worktree | None = None
        self._own: Path | None = None
        """What git keeps of the worktree in the repository."""

    def has(self, commit: str) -> bool:
        """Whether the repository still has the commit."""
        return git.has_object(self.found.top, self._env, f"{commit}^{{commit}}")

    def go(self, head: Head) -> str:
        """Brings the worktree to the commit and returns the folder to work in: that of the project, if the commit has
        it. What was changed or made there before is gone, but for what git is told to ignore."""
        if self._own is None:
            self._make(head)
        else:
            if not (self._path / ".git").is_file():
                raise SessgitError("the command deleted the worktree it ran in", "It ran in a temporary worktree.")
            self._git("checkout", "--quiet", "--force", "--detach", head.commit)
            self._git("clean", "-ffdq")
        inner = self._path / self.found.inner
        return str(inner if inner.is_dir() else self._path)

    def close(self) -> None:
        """Takes the worktree away; raises SessgitError where something of it stays."""
        tempdirs.delete_folder(self._path)
        if self._planned is None:
            return
        with suppress(SessgitError):
            worktrees.remove_worktree(self._planned, self._env)
        if self._own is not None and self._own.exists():
            raise SessgitError(
                f"git still has a worktree at {self._path}, which is gone",
                f"Run `git worktree prune` in {self.found.top}.",
            )

    def _make(self, head: Head) -> None:
        self._planned = worktrees.plan_worktree(self._project, head, self._path, "", self._env)
        worktrees.make_worktree(self._planned, self._env)
        said = git.read_output(str(self._path), self._env, "rev-parse", "--absolute-git-dir")
        self._own = Path(os.fsdecode(said.removesuffix(b"\n")))

    def _git(self, *arguments: str) -> None:
        # Named outright: were the worktree's own `.git` not what it was, git would look for one in the folders above.
        places = (f"--git-dir={self._own}", f"--work-tree={self._path}")
        git.run_change(str(self._path), self._env, *places, *_NO_SUBMODULES, *arguments)


@contextmanager
def bisect_worktree(project: str, env: Env) -> Iterator[BisectWorktree]:
    """A bench in a temporary folder, which is gone afterwards; where this is killed, the next `gc` takes it away."""
    with ExitStack() as stack:
        try:
            room = stack.enter_context(tempdirs.make_folder("sessgit-bisect-"))
        except OSError as error:
            raise SessgitError(f"cannot create a temporary folder: {error.strerror}", ROOM) from error
        made = BisectWorktree(project, env, room)
        stack.callback(made.close)
        yield made
    if room.exists():
        raise SessgitError(f"cannot remove {room}", "The command left something there that cannot be deleted.")
