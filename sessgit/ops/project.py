"""The project that a folder belongs to: its git repository with all worktrees and subfolders, else the folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_LONGEST = 4096
"""Characters of a path, as Linux has it; a state may say more, with thousands of folders to look into."""
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")


def key(folder: str) -> str:
    """What two folders of one project have in common: the repository's own folder, else the folder itself.

    Read from git's files, since git itself would take longer than the command that asks; a folder that is gone
    stands for itself.
    """
    found = _repository(folder)
    return str(found[1]) if found else folder


def root(folder: str) -> str:
    """The project's own folder: its repository's main worktree, the repository where that is bare, else the folder."""
    folder = _real(folder)
    found = _repository(folder)
    if found is None:
        return folder
    top, common = found
    if common.name == ".git":
        return str(common.parent)
    # A worktree of a bare repository is one of many; what is left is a submodule, which keeps its own elsewhere.
    return str(common if (common / "worktrees").is_dir() else top)


def folders(folder: str) -> tuple[str, ...]:
    """Every path by which the project of a folder can be named: the folder, what links lead to, the project's own.

    A folder that is no absolute path is nowhere, and stands for `/`.
    """
    if not os.path.isabs(folder):  # noqa: PTH117 - it may be no path at all
        return ("/",)
    return tuple(dict.fromkeys((os.path.normpath(folder), _real(folder), root(folder))))


def head(folder: str, env: dict[str, str]) -> str:
    """`commit (branch)` or `commit (branch, dirty)` of the project at a folder, or ``""`` where there is none.

    Reads the project without taking a lock of its repository. `env` must hold no `GIT_*` variable.
    """
    command = [*_GIT, "status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all"]
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, timeout=2, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch.") and " " in line[2:])
    commit = facts.get("branch.oid", "")
    if not commit or commit == "(initial)":
        return ""
    dirty = ", dirty" if any(not line.startswith("#") for line in lines) else ""
    return f"{commit} ({facts.get('branch.head', 'detached')}{dirty})"


def _repository(folder: str) -> tuple[Path, Path] | None:
    """The worktree that a folder lies in and the folder of its repository, read from git's files."""
    if len(folder) > _LONGEST:
        return None
    path = Path(folder)
    try:
        for above in (path, *path.parents):
            dot_git = above / ".git"
            if dot_git.is_dir():
                return above.resolve(), dot_git.resolve()
            if dot_git.is_file():
                common = _common_folder(dot_git)
                return (above.resolve(), common) if common else None
    except (OSError, ValueError, RuntimeError):  # ValueError: NUL in a path; RuntimeError: links in a circle
        return None
    return None


def _common_folder(dot_git: Path) -> Path | None:
    """The repository that a worktree's `.git` file leads to (gitrepository-layout(5))."""
    line = dot_git.read_text("utf-8", "replace").strip()
    if not line.startswith("gitdir: "):
        return None
    own = (dot_git.parent / line.removeprefix("gitdir: ")).resolve()
    common = own / "commondir"
    return (own / common.read_text().strip()).resolve() if common.is_file() else own


def _real(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder
