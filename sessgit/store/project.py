"""The project that a folder belongs to: its git repository with all worktrees and subfolders, else the folder.

Clones of one project on several machines have the same remote.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_LONGEST_PATH = 4096
"""Linux's limit for paths; a document may hold a longer one, with thousands of parent folders."""


def project_key(folder: str) -> str:
    """Return what identifies a folder's project: its repository's own folder, else the folder, which may be gone.

    git's files are read here, since git itself would take longer than the command.
    """
    repository = _repository(folder)
    return str(repository[1]) if repository else folder


def project_root(folder: str) -> str:
    """Return the project's folder: the repository's main worktree, a bare repository itself, else the folder."""
    folder = _real_path(folder)
    repository = _repository(folder)
    if repository is None:
        return folder
    top, common = repository
    if common.name == ".git":
        return str(common.parent)
    # A worktree of a bare repository is one of many; what is left is a submodule, which keeps its own elsewhere.
    return str(common if (common / "worktrees").is_dir() else top)


def project_paths(folder: str) -> tuple[str, ...]:
    """Return every path that names the project of a folder: the folder, with and without links, and the project's own.

    A path that is not absolute counts as `/`.
    """
    if not os.path.isabs(folder):  # noqa: PTH117 - it may be no path at all
        return ("/",)
    return tuple(dict.fromkeys((os.path.normpath(folder), _real_path(folder), project_root(folder))))


def is_repository(folder: str) -> bool:
    """Return whether the folder is in a worktree."""
    return _repository(_real_path(folder)) is not None


def common_folder(folder: str) -> Path | None:
    """Return the folder of the repository that a folder is in, which all its worktrees share, or None."""
    repository = _repository(folder)
    return repository[1] if repository else None


def linked_worktree(folder: str) -> str:
    """Return the top of the linked worktree that a folder is in, or ``""`` if it is in the main one or in none."""
    repository = _repository(folder)
    if repository is None:
        return ""
    top, common = repository
    try:
        own = _own_folder(top / ".git") if (top / ".git").is_file() else None
    except (OSError, ValueError, RuntimeError):
        return ""
    return str(top) if own is not None and own.parent == common / "worktrees" else ""


def checked_out_branch(folder: str) -> str:
    """Return the branch that is checked out in the worktree of a folder, or ``""`` if there is none."""
    repository = _repository(folder)
    try:
        dot_git = repository[0] / ".git" if repository else None
        own = _own_folder(dot_git) if dot_git is not None and dot_git.is_file() else dot_git
        head = (own / "HEAD").read_text("utf-8", "replace").strip() if own is not None else ""
    except (OSError, ValueError, RuntimeError):
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _repository(folder: str) -> tuple[Path, Path] | None:
    """Return the worktree that a folder is in, and the folder of its repository."""
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
    """Return the repository that a worktree's `.git` file leads to (gitrepository-layout(5))."""
    own = _own_folder(dot_git)
    if own is None:
        return None
    common = own / "commondir"
    return (own / common.read_text().strip()).resolve() if common.is_file() else own


def _own_folder(dot_git: Path) -> Path | None:
    """Return the folder that git keeps for one worktree, which its `.git` file names."""
    line = dot_git.read_text("utf-8", "replace").strip()
    if not line.startswith("gitdir: "):
        return None
    return (dot_git.parent / line.removeprefix("gitdir: ")).resolve()


def _real_path(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder


# The remote of a project

_SECTION = re.compile(r'\s*\[\s*(\w+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_URL = re.compile(r"(?:\[[^]]*\])?\s*url\s*=\s*\"?([^\s\"#;]+)", re.IGNORECASE)
_WITH_SCHEME = re.compile(r"(?:https?|ssh|git|git\+ssh)://(?:[^/@]*@)?([^/:@]+)(?::\d+)?/(.+)", re.IGNORECASE)
_LIKE_SCP = re.compile(r"(?:[^/:@]+@)?([^/:@]+):(?!//)(.+)")
_LONGEST_CONFIG = 1 << 20


def project_remote(folder: str) -> str:
    """Return the remote of a folder's project, such as `github.com/anna/shop`: `origin`, else the only one; or ``""``.

    git's file is read here, since git itself would take longer than the command.
    """
    repository = common_folder(folder)
    if repository is None:
        return ""
    try:
        with (repository / "config").open(encoding="utf-8", errors="replace") as file:
            urls = _remote_urls(file.read(_LONGEST_CONFIG))
    except (OSError, ValueError):
        return ""
    url = urls.get("origin") or (next(iter(urls.values())) if len(urls) == 1 else "")
    return normalized_url(url)


def normalized_url(url: str) -> str:
    """Return a URL without scheme, user, port and `.git`, or ``""`` for one that names no other machine.

    A password in it is left out with the user.
    """
    match = _WITH_SCHEME.fullmatch(url) or _LIKE_SCP.fullmatch(url)
    if match is None:
        return ""
    path = match[2].strip("/").removesuffix(".git").rstrip("/")
    return f"{match[1].lower()}/{path}" if path else ""


def _remote_urls(config: str) -> dict[str, str]:
    """Return the first URL of each remote."""
    urls, remote = dict[str, str](), ""
    for line in config.split("\n"):
        if section := _SECTION.match(line):
            remote = section[2] or "" if section[1].lower() == "remote" else ""
        if remote and (url := _URL.match(line.strip())):
            urls.setdefault(remote, url[1])
    return urls
