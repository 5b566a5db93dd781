"""The project that a folder belongs to: its git repository with all worktrees and subfolders, else the folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")


def key(folder: str) -> str:
    """What two folders of one project have in common: the repository's own folder, else the folder itself.

    Read from git's files, since git itself would take longer than the command that asks; a folder that is gone
    stands for itself.
    """
    path = Path(folder)
    try:
        for above in (path, *path.parents):
            dot_git = above / ".git"
            if dot_git.is_dir():
                return str(dot_git.resolve())
            if dot_git.is_file():
                return str(_common_folder(dot_git) or path)
    except OSError:
        return folder
    return folder


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


def _common_folder(dot_git: Path) -> Path | None:
    """The repository that a worktree's `.git` file leads to (gitrepository-layout(5))."""
    line = dot_git.read_text("utf-8", "replace").strip()
    if not line.startswith("gitdir: "):
        return None
    own = (dot_git.parent / line.removeprefix("gitdir: ")).resolve()
    common = own / "commondir"
    return (own / common.read_text().strip()).resolve() if common.is_file() else own
