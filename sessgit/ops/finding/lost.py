"""Which conversations are lost: the client had a transcript of them on this machine, and has none any more.

`status`, `show`, `doctor` and `restore --all-lost` all go by this one rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from sessgit.agents.claude import home
from sessgit.model.conversation.session import Session
from sessgit.ops.finding import places
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.indexed import kin
from sessgit.store.layout import Beside


def sessions(index: Index, config: Path) -> list[str]:
    """The sessions with turns that are lost, by id; archived ones are left out. No state is read for that."""
    outlines = [outline for outline in index.outlines() if outline.turns and not outline.archived]
    paths = kin.transcripts(index, [outline.name for outline in outlines])
    states = [
        Session(one.name, one.agent_id, project=one.project, transcript=paths.get(one.name, "")) for one in outlines
    ]
    return sorted(state.id for state in _lost(states, config, layout.Beside(index.path)))


def is_lost(state: Session, config: Path, beside: Beside) -> bool:
    """Whether a session is lost: it had a transcript on this machine, and the client has none of it any more."""
    return any(_lost([state], config, beside))


def _lost(states: Iterable[Session], config: Path, beside: Beside) -> Iterator[Session]:
    """Those of the sessions that are lost; id, agent's id, project and transcript of each are enough."""
    held = cache(lambda: {path.name for path in (config / "projects").glob("*/*.jsonl")})
    made = cache(lambda: places.made_here(beside))
    for state in states:
        said = places.read_at(state, beside)
        if not said or home.is_there(said):
            continue
        place = places.place_of(config, state, beside)
        if place is not None and (home.is_there(place) or place.name in held()):
            continue
        if places.was_here(state, beside, made):
            yield state
