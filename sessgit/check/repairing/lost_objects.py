"""Objects that a store lacks, looked for where they can be had again: in what the client's file gives when it is
recorded once more, and on remotes.

An object is named after its content. So whatever has that name is the one that was lost, wherever it comes from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit import agents
from sessgit.errors import SessgitError
from sessgit.history.client_files import transcript_place
from sessgit.model import ids
from sessgit.model.conversation.session import Session
from sessgit.record import fork_detection as copies
from sessgit.record.bulk import families
from sessgit.record.bulk.families import ImportFailure, TranscriptFile
from sessgit.record.context import RecordContext
from sessgit.record.recording import record
from sessgit.record.source import RecordRules
from sessgit.store import store as stores
from sessgit.store.damage import objects
from sessgit.store.files import paths, tempdirs
from sessgit.store.index import Index
from sessgit.store.recorder import cursor as cursors
from sessgit.store.remote.remotes import Connection
from sessgit.store.store import Store

_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where objects were found, in words, and their content by id; none where it could not be reached or read."""

    name: str
    found: Mapping[str, tuple[str, bytes]]


def look(
    world: RecordContext,
    states: Sequence[Session],
    lost: Collection[str],
    links: Sequence[Connection],
    copy: Path | None = None,
) -> Iterator[Place]:
    """Where objects that are lost can be had, with all that these lead to and the store lacks as well: first the files
    of these sessions, of which `copy` may be the last one's, then the remotes."""
    left = set(lost)
    for name, fill in [*_local(world, states, copy), *_remote(states, links)]:
        if not left:
            return
        with tempdirs.make_folder("repair-", world.store.beside.state) as folder:
            scratch = folder / "store"
            found: dict[str, tuple[str, bytes]] = {}
            is_read = False
            with suppress(SessgitError):  # what cannot be reached or read: the next one
                fill(scratch)
                is_read = True
                there = objects.reachable_objects(scratch, left)
                wanted = [oid for oid in there if oid in left or world.store.repo.read_problem(oid)]
                found = dict(objects.read_all(scratch, wanted))
        if found or not is_read:
            left -= found.keys()
            yield Place(name, found)


def put(store: Store, found: Mapping[str, tuple[str, bytes]]) -> None:
    """Puts objects in their places; what lay there damaged is kept aside, under `state/damaged/`."""
    aside = store.beside.state / "damaged"
    for oid, (kind, data) in found.items():
        objects.write_loose_object(store.path, oid, kind, data, aside)


def file_of(world: RecordContext, state: Session) -> Path | None:
    """The file that a session was recorded from: where the client has it by the session's state or by its name, or
    where it was read last."""
    said = transcript_place(world.config, state, world.store.beside)
    if said is not None and paths.is_there(said):
        return said
    every = agents.of(state).home.transcripts(world.config)
    named = next((path for path in every if ids.session_id(path.stem) == state.id), None)
    known = cursors.load_cursor(world.store.beside, state.id)
    return named or (_plain(known.path) if known else None)


def _plain(said: str) -> Path | None:
    """The path where a file lies there, and no link."""
    path = Path(said)
    try:
        return path if path.is_absolute() and path.is_file() and not path.is_symlink() else None
    except (OSError, ValueError):
        return None


_Fill = tuple[str, Callable[[Path], None]]


def _local(world: RecordContext, states: Sequence[Session], copy: Path | None) -> Iterator[_Fill]:
    """The files of sessions, and of those that begin as they do: what they share is told apart by all of them."""
    own: dict[str, tuple[TranscriptFile, Session]] = {}
    for state in states:
        path = copy if copy is not None and state is states[-1] else file_of(world, state)
        if path is not None:
            own[state.id] = _file(path, state), state
    roots = {file.root for file, _ in own.values()} - {""}
    for path in sorted(world.store.beside.state.glob("*.json")) if roots else ():
        if path.stem in own or not ids.is_branch(path.stem):
            continue
        state = Session(path.stem, path.stem, rules=states[-1].rules)
        place = file_of(world, state)
        if place is not None and (file := _file(place, state)).root in roots:
            own[path.stem] = file, state
    if not own:
        return
    is_copied = copy is not None
    outside = [file for file, _ in own.values() if not file.path.is_relative_to(world.config)]
    name = "the file that was given" if is_copied else "the file that it was imported from"
    name = name if outside else "the client's file"
    yield name, _recorded(world, list(own.values()))
    folders = {file.path: file.path.parents[2] for file in outside if file.path.parent.parent.name == "projects"}
    if folders:
        beside = [
            (TranscriptFile(file.path, file.agent_id, file.size, file.root, folders.get(file.path)), state)
            for file, state in own.values()
        ]
        yield name, _recorded(world, beside)


def _file(path: Path, state: Session) -> TranscriptFile:
    root = ""
    with suppress(SessgitError, OSError):
        root = copies.first_prompt(path)
    is_named = state.agent_id == state.id and ids.session_id(path.stem) == state.id
    return TranscriptFile(path, path.stem if is_named else state.agent_id, 0, root)


def _recorded(world: RecordContext, files: Sequence[tuple[TranscriptFile, Session]]) -> Callable[[Path], None]:
    """Records files into a store that is made, as an import does: parents come before their forks."""

    def fill(scratch: Path) -> None:
        stores.create_store(scratch)
        made = Store(scratch)
        for name in ("key", "forbidden"):
            with suppress(OSError):
                shutil.copyfile(getattr(world.store.beside, name), getattr(made.beside, name))
        states = dict(files)
        failures: list[ImportFailure] = []
        with closing(Index(scratch, lambda: made)) as index:
            for members in families.group_by_prompt(list(states)):
                for file in families.sort_parents_first(members, failures):
                    redact = bool(states[file].rules.get("redact", world.rules.redact))
                    with suppress(SessgitError):
                        record(made, index, file.source(world.config, ()), RecordRules(world.rules.granularity, redact))

    return fill


def _remote(states: Sequence[Session], links: Sequence[Connection]) -> list[_Fill]:
    def filling(link: Connection) -> Callable[[Path], None]:
        return lambda scratch: objects.fetch(scratch, link, [state.id for state in states])

    return [(f"the remote {link.remote.name}", filling(link)) for link in links]


def family(store: Store, session: str, tips: Collection[str]) -> list[Session]:
    """The states of the sessions whose turns this one has, the first one first and this one last. Of one that cannot be
    read it is only its id."""
    found: dict[str, Session] = {}
    for tip in tips:
        try:
            state = store.state(tip)
        except SessgitError:
            continue
        chain = [state]
        while (origin := chain[-1].origin) is not None and len(chain) < _DEEPEST:
            try:
                chain.append(store.state(origin.commit))
            except SessgitError:
                chain.append(Session(origin.session, origin.session, rules=state.rules))
        found.update((one.id, one) for one in reversed(chain))
    own = found.pop(session, None) or Session(session, session)
    return [*found.values(), own]
