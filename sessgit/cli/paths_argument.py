"""The paths behind `--`: files, folders and globs that a tool read or changed."""

from __future__ import annotations

from collections.abc import Sequence

from sessgit.cli import render
from sessgit.cli.invocation import Invocation
from sessgit.history.views import commits_touching


def commits(here: Invocation, paths: Sequence[str]) -> set[str]:
    """Return the last commits of the turns that read or changed one of the paths."""
    with render.progress(here, "Reading turns", unit="turns") as progress:
        return commits_touching(here.context, paths, here.cwd, progress)
