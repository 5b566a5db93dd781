"""Packing the store with git itself.

libgit2's own packing takes fifteen times as long and leaves the loose objects behind. Nothing unreachable is ever
deleted here: a recorder may be about to move a ref to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sessgit.errors import StoreError

LOOSE_LIMIT = 2_000
"""So many loose objects are worth a packing; each takes a block of the disk, whatever its size."""


def git_env() -> dict[str, str]:
    """The environment for git children: none of `GIT_*`, whoever set it."""
    return {"PATH": os.defpath, "LC_ALL": "C", "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}


def loose_estimate(store: Path) -> int:
    """About how many loose objects there are: one folder of 256 is counted, as git's own `gc --auto` does."""
    try:
        return 256 * sum(1 for _ in (store / "objects" / "17").iterdir())
    except OSError:
        return 0


def pack(store: Path, *, full: bool = False, git: str | None = None) -> bool:
    """Packs loose objects if there are many, or everything where `full`; returns whether it did.

    Raises StoreError where git is missing or fails; the store is whole all the same.
    """
    if not full and loose_estimate(store) < LOOSE_LIMIT:
        return False
    git = git or shutil.which("git")
    if git is None:
        raise StoreError("git is missing", "Install git 2.30 or later: the store is packed with it.")
    scope = ["-a", "-d", "-f", "-F", "--keep-unreachable"] if full else ["-d"]
    for command in (["repack", "--quiet", *scope], ["pack-refs", "--all"]):
        _run([git, "--git-dir", str(store), *command])
    return True


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, env=git_env(), check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd="/")
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise StoreError(f"git could not pack the store: {said}") from error
    except OSError as error:
        raise StoreError(f"git could not be run: {error}") from error
