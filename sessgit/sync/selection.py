"""The sessions that a command selects: nothing else leaves this machine."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.history import resolve
from sessgit.history.resolve import CallerContext
from sessgit.model.frozen import frozen
from sessgit.record import privacy
from sessgit.store import layout
from sessgit.store.index import Index, Outline
from sessgit.store.settings import Privacy, RecordConfig, label_of

_SHORTEST = resolve.SHORTEST_PREFIX


@frozen
class SessionChoice:
    """What options choose: sessions with all of the labels, of the project at a folder, or all; archived ones too."""

    labels: tuple[str, ...] = ()
    folder: str | None = None
    everything: bool = False


def chosen_sessions(index: Index, choice: SessionChoice) -> list[str]:
    """Return the sessions that fit all parts of the choice. Raises NotFoundError if there are none, except of all:
    deletions are pushed even if no session is left."""
    outlines = index.outlines()
    if choice.folder is not None:
        outlines = resolve.outlines_in_project(outlines, choice.folder)
    names = [outline.name for outline in outlines if set(choice.labels) <= _label_set(outline)]
    if not names and not choice.everything:
        raise NotFoundError("no conversation matches", "`sessgit ls --all` lists all conversations and their labels.")
    return names


def included_sessions(index: Index, include: Sequence[str], recorded: Privacy) -> list[str]:
    """Return the sessions that `sync.include` names by their project or a label, except in projects that `recorded`
    excludes: what is not even recorded here must not leave the machine because of a setting.
    """
    labels = {label for item in include if (label := label_of(item))}
    globs = tuple(item for item in include if not label_of(item))
    named = Privacy(RecordConfig(include=globs), recorded.home)
    fits: dict[str, tuple[bool, bool]] = {}

    def fit(folder: str) -> tuple[bool, bool]:
        """Return whether a folder is recorded, and whether a glob names it."""
        if folder not in fits:
            by_glob = bool(globs) and privacy.verdict(named, folder).recorded
            fits[folder] = (privacy.verdict(recorded, folder).recorded, by_glob)
        return fits[folder]

    included = list[str]()
    for outline in index.outlines():
        is_recorded, by_glob = fit(outline.project or "/")
        if is_recorded and (by_glob or labels & _label_set(outline)):
            included.append(outline.name)
    return included


def remote_sessions(index: Index, refs: Collection[str], words: Sequence[str], where: CallerContext) -> list[str]:
    """Return the sessions of a remote that the words name: ids and beginnings of ids as it has them, else what an
    address means here. Raises NotFoundError and AmbiguousError."""
    known = sorted({layout.session_of(name) for space, name in map(layout.split_ref, refs) if space != layout.TAGS})
    return list(dict.fromkeys(_find_one(index, known, word, where) for word in words))


def _find_one(index: Index, known: Sequence[str], word: str, where: CallerContext) -> str:
    fitting = [word] if word in known else [name for name in known if name.startswith(word)]
    if len(fitting) > 1 and len(word) >= _SHORTEST:
        raise AmbiguousError(
            f"{len(fitting)} conversations there start with “{word}”: {', '.join(fitting[:_SHORTEST])}",
            "Type more of the id.",
        )
    if len(fitting) == 1 and len(word) >= _SHORTEST:
        return fitting[0]
    here = {
        layout.session_of(branch)
        for branch in resolve.branches_by_name(index, word, where) or resolve.sessions_by_title(index, word, where)
    }
    here &= set(known)
    if len(here) == 1:
        return here.pop()
    raise NotFoundError(
        f"the remote has no conversation “{word}”",
        "Name its id, or the first four letters. Without an id, pull fetches all conversations.",
    )


def _label_set(outline: Outline) -> set[str]:
    return set(json.loads(outline.labels))
