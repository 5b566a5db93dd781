"""What options that choose conversations and turns amount to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sessgit.cli.invocation import Invocation


def since(here: Invocation, text: str) -> float | None:
    """The moment in seconds since 1970, or None where no option was given."""
    from sessgit.cli.arguments import moments

    return moments.since(text, here.now) if text else None


def touching(here: Invocation, paths: Sequence[str]) -> set[str]:
    """The last commits of the turns that read or changed one of the paths."""
    from sessgit.cli import render
    from sessgit.history import file_access

    with render.progress(here, "Reading turns", unit="turns") as progress:
        return file_access.commits_touching(here.index, lambda: here.store, paths, here.cwd, progress)


def among(here: Invocation, *, search: str, paths: Sequence[str]) -> tuple[Collection[str], ...]:
    """The sessions that a search and paths choose, one collection for each that was given."""
    chosen: list[Collection[str]] = []
    if search:
        from sessgit.cli import render
        from sessgit.history.search import sessions_with

        with render.progress(here, "Searching", unit="turns") as progress:
            sessions, behind = sessions_with(here.index, search, progress)
        if behind:
            render.tell(f"({behind})")
        chosen.append(set(sessions))
    if paths:
        chosen.append(here.index.sessions_holding(touching(here, paths)))
    return tuple(chosen)
