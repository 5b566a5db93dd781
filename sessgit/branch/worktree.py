"""A git worktree of the project at the commit that it had at a turn, for a fork to be continued in.

It has what was committed: no uncommitted changes, no untracked files, and nothing from outside of the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sessgit.branch.fork import ForkPlan, ForkResult, fork_session
from sessgit.branch.undo import UndoResult
from sessgit.errors import ROOM, ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.history import project_git
from sessgit.history.client_files import LocalPath
from sessgit.history.project_git import Env, Head
from sessgit.history.resolve import ForkPoint
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.store import layout, project, refs
from sessgit.store.store import Store


@frozen
class Worktree:
    """A worktree that can be made, or was: `path` is its top, `folder` the project in it, where the conversation
    continues.

    `source` is the checkout that git is run in to make it, `branch` the new branch that it is on, or empty.
    """

    source: str
    path: Path
    folder: str
    head: Head
    has_submodules: bool
    branch: str

    def as_json(self) -> dict[str, object]:
        return {"path": str(self.path), **self.head.as_json(), "new_branch": self.branch or None}


def plan_worktree(folder: str, head: Head, path: Path | None, name: str, env: Env, branch: str = "") -> Worktree:
    """Return the worktree that `make_worktree` makes, after all checks; nothing is changed.

    `folder` is the project. Without a path it is next to the project's own folder, as `<project>-<name>`. Raises
    NotFoundError where the project or the commit is gone, ConflictError where something is at the path or the new
    branch exists, UsageError for a name that git does not take for a branch.
    """
    checkout = project_git.find_checkout(folder, env)
    short = head.commit[:8]
    if not project_git.has_object(checkout.top, env, f"{head.commit}^{{commit}}"):
        raise NotFoundError(
            f"the project's commit {short} is not in {checkout.top}",
            "`git fetch` brings it if another clone still has it. Without --worktree, the fork needs no commit.",
        )
    if branch:
        _check_branch(checkout.top, branch, env)
    if path is None:  # next to the main worktree, so that the worktrees of one project are siblings
        main = Path(project.project_root(folder))
        main = main if (main / ".git").exists() else Path(checkout.top)
        path = main.parent / f"{main.name}-{name}"
    _check_path_free(path)
    is_there = checkout.inner and project_git.has_object(checkout.top, env, f"{head.commit}:{checkout.inner}/")
    inner = path / checkout.inner if is_there else path
    has_submodules = project_git.has_object(checkout.top, env, f"{head.commit}:.gitmodules")
    return Worktree(checkout.top, path, str(inner), head, has_submodules, branch)


def make_worktree(planned: Worktree, env: Env) -> None:
    """Make the worktree, on its new branch or with HEAD detached. If git fails, nothing of it is left."""
    on = ("-b", planned.branch) if planned.branch else ("--detach",)
    try:
        project_git.run_change(
            planned.source, env, "worktree", "add", "--quiet", *on, *_add_arguments(planned), planned.head.commit
        )
    except KeyboardInterrupt:
        with suppress(SessgitError):  # git may have been done by then
            remove_worktree(planned, env)
        raise


def remove_worktree(planned: Worktree, env: Env) -> None:
    """Remove the worktree that `make_worktree` has just made, and its branch."""
    project_git.run_change(planned.source, env, "worktree", "remove", "--force", *_add_arguments(planned))
    if planned.branch:
        project_git.run_change(planned.source, env, "branch", "--quiet", "-D", "--", planned.branch)


def fork_into_worktree(
    store: Store, head: Session, point: ForkPoint, plan: ForkPlan, planned: Worktree, env: Env
) -> ForkResult:
    """Make a fork as `fork_session` does, in a worktree that is made first, and removed again if there is no fork in
    the end."""
    make_worktree(planned, env)
    try:
        return fork_session(store, head, point, replace(plan, project=planned.folder))
    except BaseException:
        # Where the session is there and only its files are not, `restore` writes them: for that folder.
        if not refs.read(store.path, layout.head_ref(plan.id)):
            remove_worktree(planned, env)
        raise


def worktrees_of_fork(store: Store, done: UndoResult, local_path: LocalPath) -> Iterator[tuple[str, str]]:
    """Yield the worktree in which an undone fork continued, and the folder of its repository; nothing for other
    operations.

    Only one of the repository that the fork came from, and that is still there.
    """
    gone = [move.old for move in done.moves if move.old and not move.new] if done.operation.command == "fork" else []
    for commit in gone:
        state = store.state(commit)
        if state.origin is None or not os.path.isabs(state.project):  # noqa: PTH117 - it may be no path at all
            continue
        before = local_path(store.state(state.origin.commit).project)
        top = project.linked_worktree(state.project)
        if top and project.linked_worktree(before) != top and project.project_key(before) == project.project_key(top):
            yield top, project.project_root(top)


def _add_arguments(planned: Worktree) -> tuple[str, str]:
    return "--", str(planned.path)


def _check_branch(top: str, name: str, env: Env) -> None:
    """Raise UsageError if git takes the name for no branch, ConflictError if the branch exists."""
    try:
        project_git.read_output(top, env, "check-ref-format", "--branch", name)
    except SessgitError as error:
        raise UsageError(
            f"“{name}” is not a valid name for a branch.", "Choose another with `--branch NAME`."
        ) from error
    if project_git.has_object(top, env, f"refs/heads/{name}"):
        raise ConflictError(f"the project already has a branch {name}", "Choose another with `--branch NAME`.")


def _check_path_free(path: Path) -> None:
    """Raise ConflictError if the path exists, SessgitError if nothing can be created there."""
    try:
        if not os.path.lexists(path):
            above = next(folder for folder in path.parents if os.path.lexists(folder))
            if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
                raise SessgitError(f"cannot create {path} in {above}", ROOM)
            return
        if path.is_dir() and not any(path.iterdir()):
            return
    except OSError as error:
        raise SessgitError(f"{path} cannot be read: {error.strerror}") from error
    raise ConflictError(f"{path} already exists", "Choose another place with `--worktree PATH`.")
