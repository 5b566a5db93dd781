"""Which conversations are lost: the client had a transcript of them on this machine, and has none any more.

`status`, `show`, `doctor` and `restore --all-lost` all go by this one rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from sessgit.history import client_files
from sessgit.model.conversation.session import Session
from sessgit.store import layout
from sessgit.store.files import paths
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.sqlite import ancestry


def lost_sessions(index: Index, config: Path) -> list[str]:
    """The sessions with turns that are lost, by id; archived ones are left out. No state is read for that."""
    outlines = [outline for outline in index.outlines() if outline.turns and not outline.archived]
    paths = ancestry.session_transcripts(index, [outline.name for outline in outlines])
    states = [
        Session(one.name, one.agent_id, project=one.project, transcript=paths.get(one.name, "")) for one in outlines
    ]
    return sorted(state.id for state in _find_lost(states, config, layout.StorePaths(index.path)))


def is_lost(state: Session, config: Path, beside: StorePaths) -> bool:
    """Whether a session is lost: it had a transcript on this machine, and the client has none of it any more."""
    return any(_find_lost([state], config, beside))


def _find_lost(states: Iterable[Session], config: Path, beside: StorePaths) -> Iterator[Session]:
    """Those of the sessions that are lost; id, agent's id, project and transcript of each are enough."""
    held = cache(lambda: {path.name for path in (config / "projects").glob("*/*.jsonl")})
    made = cache(lambda: client_files.files_made_here(beside))
    for state in states:
        said = client_files.recorded_transcript_path(state, beside)
        if not said or paths.is_there(said):
            continue
        place = client_files.transcript_place(config, state, beside)
        if place is not None and (paths.is_there(place) or place.name in held()):
            continue
        if client_files.was_recorded_here(state, beside, made):
            yield state
