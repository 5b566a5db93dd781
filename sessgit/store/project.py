"""The project that a folder belongs to: its git repository with all worktrees and subfolders, else the folder."""

from __future__ import annotations

import os
from pathlib import Path

_LONGEST_PATH = 4096
"""Characters of a path, as Linux has it; a state may say more, with thousands of folders to look into."""


def project_key(folder: str) -> str:
    """What two folders of one project have in common: the repository's own folder, else the folder itself.

    Read from git's files, since git itself would take longer than the command that asks; a folder that is gone
    stands for itself.
    """
    found = _repository(folder)
    return str(found[1]) if found else folder


def project_root(folder: str) -> str:
    """The project's own folder: its repository's main worktree, the repository where that is bare, else the folder."""
    folder = _real_path(folder)
    found = _repository(folder)
    if found is None:
        return folder
    top, common = found
    if common.name == ".git":
        return str(common.parent)
    # A worktree of a bare repository is one of many; what is left is a submodule, which keeps its own elsewhere.
    return str(common if (common / "worktrees").is_dir() else top)


def project_paths(folder: str) -> tuple[str, ...]:
    """Every path by which the project of a folder can be named: the folder, what links lead to, the project's own.

    A folder that is no absolute path is nowhere, and stands for `/`.
    """
    if not os.path.isabs(folder):  # noqa: PTH117 - it may be no path at all
        return ("/",)
    return tuple(dict.fromkeys((os.path.normpath(folder), _real_path(folder), project_root(folder))))


def is_repository(folder: str) -> bool:
    """Whether the folder lies in a worktree."""
    return _repository(_real_path(folder)) is not None


def linked_worktree(folder: str) -> str:
    """The top of the linked worktree that a folder lies in, or ``""`` where it lies in the main one or in none."""
    found = _repository(folder)
    if found is None:
        return ""
    top, common = found
    try:
        own = _own_folder(top / ".git") if (top / ".git").is_file() else None
    except (OSError, ValueError, RuntimeError):
        return ""
    return str(top) if own is not None and own.parent == common / "worktrees" else ""


def _repository(folder: str) -> tuple[Path, Path] | None:
    """The worktree that a folder lies in and the folder of its repository, read from git's files."""
    if len(folder) > _LONGEST_PATH:
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
    own = _own_folder(dot_git)
    if own is None:
        return None
    common = own / "commondir"
    return (own / common.read_text().strip()).resolve() if common.is_file() else own


def _own_folder(dot_git: Path) -> Path | None:
    """The folder that git keeps for a worktree alone, which its `.git` file names."""
    line = dot_git.read_text("utf-8", "replace").strip()
    if not line.startswith("gitdir: "):
        return None
    return (dot_git.parent / line.removeprefix("gitdir: ")).resolve()


def _real_path(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder
