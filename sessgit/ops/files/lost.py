"""Conversations that the client has deleted, brought back all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.agents.claude import home
from sessgit.errors import SessgitError
from sessgit.model.progress import Progress
from sessgit.ops import restore
from sessgit.ops.finding import places
from sessgit.ops.finding.places import Here
from sessgit.ops.restore import Outcome
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.indexed.rows import Branch
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class Failure:
    """A session that could not be written, and why."""

    session: str
    error: SessgitError


@dataclass(frozen=True, slots=True)
class Brought:
    """The sessions that are back, and those that could not be written."""

    back: tuple[tuple[str, Outcome], ...]
    errors: tuple[Failure, ...]


def lost(index: Index, config: Path) -> Iterator[Branch]:
    """The sessions with turns whose transcript was a file here and is none any more, archived ones left out."""
    beside = layout.Beside(index.path)
    for branch in index.branches():
        state = branch.state
        if layout.is_side(branch.name) or branch.archived or not state.turns or not state.transcript:
            continue
        place = places.place_of(config, state, beside)
        if home.is_there(state.transcript) or not places.was_here(config, state, beside):
            continue
        if place is not None and (home.is_there(place) or places.copies(config, place)):
            continue
        yield branch


def restore_all(store: Store, sessions: Sequence[str], config: Path, progress: Progress, here: Here = str) -> Brought:
    """Restores each session, as `restore` does; one that cannot be is named in the result, and the others go on."""
    back, errors = list[tuple[str, Outcome]](), list[Failure]()
    for number, session in enumerate(sessions):
        progress(number, len(sessions))
        try:
            back.append((session, restore.restore(store, session, config, here=here)))
        except SessgitError as error:
            errors.append(Failure(session, error))
    progress(len(sessions), len(sessions))
    return Brought(tuple(back), tuple(errors))
