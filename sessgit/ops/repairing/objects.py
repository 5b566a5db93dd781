"""Objects that a store lacks, looked for where they can be had again: in what the client's file gives when it is
recorded once more, and on remotes.

An object is named after its content. So whatever has that name is the one that was lost, wherever it comes from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sessgit.agents.claude import home
from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.model.session import Session
from sessgit.ops.finding.places import place_of
from sessgit.ops.programs.world import World
from sessgit.ops.recording.record import record
from sessgit.ops.recording.source import Rules, Source
from sessgit.store import rooms
from sessgit.store import store as stores
from sessgit.store.damage import objects
from sessgit.store.index import Index
from sessgit.store.remote.remotes import Link
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class Place:
    """Where objects were found, in words, and their content by id."""

    name: str
    found: Mapping[str, tuple[str, bytes]]


def look(world: World, states: Sequence[Session], lost: Collection[str], links: Sequence[Link]) -> Iterator[Place]:
    """Where objects that are lost can be had: first the client's files of these sessions, then the remotes."""
    left = set(lost)
    for name, fill in [("the client's file", _from_files(world, states)), *_remote(states, links)]:
        if not left:
            return
        with rooms.room("repair-", world.store.beside.state) as folder:
            scratch = folder / "store"
            try:
                fill(scratch)
                found = {oid: one for oid in left if (one := objects.read(scratch, oid)) is not None}
            except SessgitError:
                continue  # it cannot be reached or read: the next one
        if found:
            left -= found.keys()
            yield Place(name, found)


def put(store: Store, found: Mapping[str, tuple[str, bytes]]) -> None:
    """Puts objects in their places; what lay there damaged is kept aside, under `state/damaged/`."""
    aside = store.beside.state / "damaged"
    for oid, (kind, data) in found.items():
        objects.put(store.path, oid, kind, data, aside)


def _from_files(world: World, states: Sequence[Session]) -> Callable[[Path], None]:
    def fill(scratch: Path) -> None:
        stores.create(scratch)
        made = Store(scratch)
        if world.store.beside.key.exists():
            shutil.copyfile(world.store.beside.key, made.beside.key)
        with closing(Index(scratch, lambda: made)) as index:
            for state in states:
                path = _file_of(world, state)
                if path is None:
                    continue
                source = Source(path, path.stem, world.config, final=True)
                record(made, index, source, Rules(world.rules.granularity, bool(state.rules.get("redact"))))

    return fill


def _file_of(world: World, state: Session) -> Path | None:
    """The client's file of a session, by its state or by its name."""
    said = place_of(world.config, state, world.store.beside)
    if said is not None and home.is_there(said):
        return said
    every = home.transcripts(world.config)
    return next((path for path in every if ids.session_id(path.stem) == state.id), None)


def _remote(states: Sequence[Session], links: Sequence[Link]) -> list[tuple[str, Callable[[Path], None]]]:
    def filling(link: Link) -> Callable[[Path], None]:
        return lambda scratch: objects.fetch(scratch, link, [state.id for state in states])

    return [(f"the remote {link.remote.name}", filling(link)) for link in links]


def family(store: Store, session: str, tips: Collection[str]) -> list[Session]:
    """The states of the sessions whose turns this one has, the first one first, as far as they can be read."""
    found: dict[str, Session] = {}
    for tip in tips:
        try:
            state = store.state(tip)
        except SessgitError:
            continue
        chain = [state]
        while (origin := chain[-1].origin) is not None and len(chain) < 100:
            try:
                chain.append(store.state(origin.commit))
            except SessgitError:
                break
        found.update((one.id, one) for one in reversed(chain))
    found.setdefault(session, Session(session, session))
    return list(found.values())
