"""Which conversations are lost: the client had a transcript of them on this machine, and has none any more.

`status`, `show`, `doctor` and `restore --all-lost` all go by this one rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from sessgit import agents
from sessgit.history import client_files
from sessgit.model.conversation.session import Session
from sessgit.model.homes import Homes
from sessgit.store import ancestry, layout
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import path_exists


def lost_sessions(index: Index, homes: Homes) -> list[str]:
    """Return the ids of the lost sessions, also of those without turns, but not of archived ones. No state is read."""
    outlines = [outline for outline in index.outlines() if not outline.archived]
    paths = ancestry.session_transcripts(index, [outline.name for outline in outlines])
    states = [
        Session(one.name, one.agent_id, project=one.project, transcript=paths.get(one.name, "")) for one in outlines
    ]
    return sorted(state.id for state in _find_lost(states, homes, layout.StorePaths(index.path)))


def is_lost(state: Session, homes: Homes, paths: StorePaths) -> bool:
    """Return whether a session is lost: it had a transcript on this machine, and the client has none now."""
    return any(_find_lost([state], homes, paths))


def _find_lost(states: Iterable[Session], homes: Homes, paths: StorePaths) -> Iterator[Session]:
    """Yield the lost sessions; only id, agent's id, project and transcript of each are needed."""
    existing = cache(lambda: {file.session for file in agents.transcripts(homes)})
    made = cache(lambda: client_files.files_made_here(paths))
    for state in states:
        recorded = client_files.recorded_transcript_path(state, paths)
        if not recorded or path_exists(recorded):
            continue
        place = client_files.transcript_place(homes, state, paths)
        if place is not None and (path_exists(place) or state.id in existing()):
            continue
        if client_files.was_recorded_here(state, paths, made):
            yield state
