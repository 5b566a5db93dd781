"""Objects that a store lost, restored from broken packs, from transcripts that are recorded again, and from remotes.

An object is named after its content, so an object with the right name is the lost one, wherever it is found.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sessgit import agents
from sessgit.check import store_checks, verify
from sessgit.errors import SessgitError, StoreError
from sessgit.history.client_files import transcript_place
from sessgit.model import ids
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.record import fork_detection, import_files
from sessgit.record.import_files import ImportFailure, TranscriptFile
from sessgit.record.recording import record
from sessgit.store import layout, locks, maintenance, object_scan, recorder_state, refs, remotes, tempdirs
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.object_scan import GitObject
from sessgit.store.private_files import path_exists
from sessgit.store.remotes import Connection
from sessgit.store.settings import Privacy
from sessgit.store.store import Store

_WAIT = 30.0
_MOST_ROUNDS = 8

_Fill = Callable[[Path], None]
"""Makes a repository at a path that may have the lost objects."""


@dataclass
class Search:
    """The number of objects restored from each source, those found nowhere, the sources that could not be reached, and
    the findings about the session afterwards."""

    restored: Counter[str] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    unreachable: list[str] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()


def restore_objects(
    context: Context, session: str, links: Sequence[Connection] = (), copy: Path | None = None, *, dry_run: bool = False
) -> Search:
    """Search for the lost objects of a session, and write what is found to the store. Restored objects may refer to
    other lost ones, so the search is repeated. `links` are remotes to search, `copy` is another file of the session.
    Raises StoreError if packs may not be read, since their objects may not be lost."""
    search, store = Search(), context.store
    for _ in range(_MOST_ROUNDS):
        search.findings = verify.verify_session(store, session).findings
        search.lost = {oid for one in search.findings for oid in one.objects}
        tips = refs.branches(store.path, session).items()
        search.lost |= {tip for branch, (tip, _) in tips if ids.is_branch(branch) and store.repo.read_problem(tip)}
        search.unreachable, count = [], search.restored.total()
        if not search.lost:
            break
        if closed := object_scan.unreadable_packs(store.path):
            what = f"no permission to read {closed[0]}, whose contents may be intact"
            raise StoreError(what, "`sessgit doctor` shows how to make it readable.")
        if not dry_run:
            search.restored.update(store_checks.mend_packs(store))
            search.lost = {oid for oid in search.lost if store.repo.read_problem(oid)}
        _search_sources(context, _sources(context, session, links, copy), search, dry_run=dry_run)
        if dry_run or search.restored.total() == count:
            break
        store.repo.release()
        with suppress(SessgitError), locks.maintenance_lock(store.paths, _WAIT) as lock:
            if lock:  # git would read damaged copies in packs
                maintenance.pack_store(store.path, lock, full=True)
        store.repo.refresh_packs()
    return search


def find_transcript(context: Context, state: Session) -> Path | None:
    """Return the file that a session was recorded from: where its state or its id says that the client has it, or
    where it was read last."""
    place = transcript_place(context.homes, state, context.store.paths)
    if place is not None and path_exists(place):
        return place
    named = next((file.path for file in agents.transcripts(context.homes) if file.session == state.id), None)
    cursor = recorder_state.load_cursor(context.store.paths, state.id)
    if named or not cursor:
        return named
    path = Path(cursor.path)
    with suppress(OSError, ValueError):
        return path if path.is_absolute() and path.is_file() and not path.is_symlink() else None
    return None


def known_commits(context: Context, branch: str) -> list[str]:
    """Return the commits of a branch's turns that the cursor and the index know, the latest first."""
    cursor = recorder_state.load_cursor(context.store.paths, branch.partition(".")[0])
    rows = reversed(context.index.turns(branch))
    return [*([cursor.commit] if cursor else ()), *(commit for row in rows for commit in reversed(row.commits))]


def _search_sources(context: Context, sources: Iterator[tuple[str, _Fill]], search: Search, *, dry_run: bool) -> None:
    store = context.store
    for name, fill in sources:
        if not search.lost:
            return
        objects, is_reachable = list[GitObject](), False
        with tempdirs.make_folder("repair-", store.paths.state) as folder:
            scratch = folder / "store"
            with suppress(SessgitError):
                fill(scratch)
                is_reachable = True
                reachable = object_scan.reachable_objects(scratch, search.lost)
                missing = [oid for oid in reachable if oid in search.lost or store.repo.read_problem(oid)]
                objects = list(object_scan.intact_objects(scratch, missing))
        if not objects:
            search.unreachable += [] if is_reachable else [name]
            continue
        search.restored[name] += len(objects)
        search.lost -= {one.id for one in objects}
        if not dry_run:
            store_checks.write_objects(store, objects)


# Sources


def _sources(
    context: Context, session: str, links: Sequence[Connection], copy: Path | None
) -> Iterator[tuple[str, _Fill]]:
    """Yield the sources in the order in which they are searched: files, then remotes."""
    states = _family(context, session)
    files = {
        file: state for state in states if (file := _transcript(context, state, copy if state is states[-1] else None))
    }
    if files:
        outside = [file for file in files if not context.homes.hold(file.path)]
        name = "the client's file"
        if outside:
            name = "the file that was given" if copy is not None else "the file that it was imported from"
        yield name, partial(_record_files, context, files)
        if any(file.path.parent.parent.name == "projects" for file in outside):
            moved = {_with_folder(file, outside): state for file, state in files.items()}
            yield name, partial(_record_files, context, moved)
    for link in links:
        names = [state.id for state in states]
        yield f"the remote {link.remote.name}", partial(remotes.fetch_branches, link=link, sessions=names)


def _with_folder(file: TranscriptFile, outside: Collection[TranscriptFile]) -> TranscriptFile:
    """Return the file with the client folder that it lies in, if that is another one than the user's."""
    is_other = file in outside and file.path.parent.parent.name == "projects"
    return TranscriptFile(file.path, file.agent_id, file.size, file.root, file.path.parents[2] if is_other else None)


def _family(context: Context, session: str) -> list[Session]:
    """Return the states of the sessions that begin with the same prompt, that of `session` last; for an unreadable one,
    a state with its id alone. Which turns they share can only be told from the files of all of them."""
    index, root = context.index, _root(context, session)
    cursors = (path.stem for path in context.store.paths.state.glob("*.json") if ids.is_branch(path.stem))
    names = {layout.session_of(row.branch) for row in index.with_prompt(root)} if root else set()
    names |= {name for name in cursors if root and not index.turns(name, 1, 1) and _root(context, name) == root}
    return [_state(context, name) for name in (*sorted(names - {session}), session)]


def _root(context: Context, session: str) -> str:
    """Return the uuid of the session's first prompt, ``""`` if it is unknown."""
    for row in context.index.turns(session, 1, 1):
        return row.prompt
    file = _transcript(context, _state(context, session), None)
    return file.root if file else ""


def _state(context: Context, session: str) -> Session:
    """Return the state of a session as of its tip, or of the latest readable commit; if there is none, a state with its
    id alone."""
    tips = [tip for tip, _ in refs.branches(context.store.path, session).values()]
    for commit in (*tips, *known_commits(context, session)):
        with suppress(SessgitError):
            return context.store.state(commit)
    return Session(session, session)


def _transcript(context: Context, state: Session, copy: Path | None) -> TranscriptFile | None:
    """Return the file of a session, `copy` if that is given; None if it is gone."""
    path = copy or find_transcript(context, state)
    if path is None:
        return None
    root = ""
    with suppress(SessgitError, OSError):
        root = fork_detection.first_prompt(path)
    is_named = state.agent_id == state.id and ids.session_id(path.stem) == state.id
    return TranscriptFile(path, path.stem if is_named else state.agent_id, 0, root, agent=agents.of_file(path).name)


def _record_files(context: Context, files: Mapping[TranscriptFile, Session], scratch: Path) -> None:
    """Record files into a scratch store, as an import does: parents before their forks."""
    stores.create_store(scratch)
    store, failures = Store(scratch), list[ImportFailure]()
    for name in ("key", "forbidden"):
        with suppress(OSError):
            shutil.copyfile(getattr(context.store.paths, name), getattr(store.paths, name))
    rules = context.privacy.rules
    with closing(Index(scratch, lambda: store)) as index:
        for members in import_files.group_by_prompt(list(files)):
            for file in import_files.sort_parents_first(members, failures):
                redact = bool(files[file].rules.get("redact", rules.redact))
                with suppress(SessgitError):
                    privacy = Privacy(replace(rules, redact=redact))
                    record(Context(index, privacy=privacy), file.source(context.homes, ()))
