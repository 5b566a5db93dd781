"""Which turns read or changed a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sessgit.errors import SessgitError
from sessgit.history.views import read_turn
from sessgit.model.conversation.turn import Gist
from sessgit.model.progress import Progress
from sessgit.store.index import Index

if TYPE_CHECKING:
    from sessgit.store.store import Store

_BATCH_SIZE = 500
_GLOB_CHARS = frozenset("*?[")


def commits_touching(
    index: Index, open_store: Callable[[], Store], paths: Sequence[str], cwd: str, progress: Progress
) -> set[str]:
    """The last commits of the turns in which a tool read or changed one of the files.

    A path is a file, a folder with all below it, or a pattern; what is not absolute lies in `cwd`, or stands so in the
    tool's own words.
    """
    fill_missing_gists(index, open_store, progress)
    found: set[str] = set()
    for path in paths:
        named = path if _GLOB_CHARS.intersection(path) else path.replace("[", "[[]")
        for place in {os.path.normpath(os.path.join(cwd, named)), os.path.normpath(named)}:  # noqa: PTH118
            found.update(index.commits_touching(place))
    return found


def fill_missing_gists(index: Index, open_store: Callable[[], Store], progress: Progress) -> None:
    """Reads the turns of which the index remembers nothing, as after it was made anew; a damaged one is passed over."""
    rows = index.without_gist()
    if not rows:
        return
    store = open_store()
    tips = {branch.name: branch.tip for branch in index.branches()}
    for start in range(0, len(rows), _BATCH_SIZE):
        progress(start, len(rows))
        some = rows[start : start + _BATCH_SIZE]
        read: dict[str, Gist] = {}
        for row in some:
            with suppress(SessgitError):  # of a damaged turn nothing is known, and the others are found
                read[row.commit] = read_turn(store, tips[row.branch], row).told.gist
        index.remember(read)
    progress(len(rows), len(rows))
