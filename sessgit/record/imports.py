"""Bringing in conversations that nobody recorded while they were held."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents.reader import opened
from sessgit.agents.values import PLAIN
from sessgit.errors import AmbiguousError, NotFoundError, SessgitError, StoreError, UsageError
from sessgit.history import search
from sessgit.model import ids
from sessgit.model.progress import Progress, unseen
from sessgit.record import fork_detection
from sessgit.record import privacy as private
from sessgit.record.bulk import discovery
from sessgit.record.bulk.discovery import PassedOver
from sessgit.record.bulk.families import Failure, File
from sessgit.record.bulk.schedule import Work
from sessgit.record.bulk.word_list import Spoken
from sessgit.record.privacy import Privacy
from sessgit.record.source import Rules
from sessgit.store import layout, locks, maintenance, operations, refs
from sessgit.store.index import Index
from sessgit.store.packing import schedule
from sessgit.store.store import Store

_LOCK_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class Imported:
    """How many sessions were brought in or grew, how many turns were recorded, how many sessions were level.

    `unpacked` says why the store could not be packed, which leaves it larger and slower but whole; `excluded` counts
    the files of projects that are off, which were left out. `archived` counts the sessions that have gone on since
    they were archived, and were left as they are; `deleted` are those that were deleted here, and were left out.
    `passed_over` is what lies in the folders and was not looked at.
    """

    sessions: int
    turns: int
    unchanged: int
    errors: tuple[Failure, ...]
    unpacked: str = ""
    excluded: int = 0
    archived: int = 0
    deleted: tuple[str, ...] = ()
    passed_over: PassedOver = field(default_factory=PassedOver)


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told how far an import is: `reading` in bytes of transcripts, and then `packing` in objects."""

    reading: Progress = unseen
    packing: Progress = unseen


@dataclass(frozen=True, slots=True)
class _Seen:
    """The transcripts to record, and what cannot be."""

    files: list[File] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    """Those that were looked through."""
    is_own: bool = False
    """Whether they are the client's own, in which every file lies where the client wants it."""


def run(store: Store, index: Index, paths: Sequence[Path], config: Path, privacy: Privacy, watch: Watch) -> Imported:
    """Imports the transcripts at `paths` (files, or folders with all below), or all of the client's.

    Parents come before their forks. A file that cannot be read is named in the result and the others go on. Raises
    UsageError where nothing may be recorded because a command asks.
    """
    private.check_on(off=privacy.off)
    seen = _Seen(is_own=not paths)
    seen.files.extend(_examined(_found(paths, config, seen.folders), seen.errors))
    return _record(store, index, seen, config, privacy, watch)


def run_one(  # noqa: PLR0913, PLR0917 - what `run` takes, and which one
    store: Store,
    index: Index,
    session: str,
    paths: Sequence[Path],
    config: Path,
    privacy: Privacy,
    watch: Watch,
    now: float,
) -> Imported:
    """Imports the one transcript whose session's id begins so, even if that session was deleted here.

    Raises NotFoundError where there is none at `paths`, AmbiguousError where there are several.
    """
    private.check_on(off=privacy.off)
    seen = _Seen()
    near = (path for path in _found(paths, config, []) if path.stem.startswith(session) or not discovery.is_named(path))
    seen.files.extend(f for f in _examined(near, seen.errors) if ids.session_id(f.agent_id).startswith(session))
    found = sorted({ids.session_id(file.agent_id) for file in seen.files})
    if len(found) > 1:
        raise AmbiguousError(f"“{session}” matches {', '.join(found)}", "Type more of the id.")
    if not found:
        raise NotFoundError(
            f"there is no transcript of a conversation “{session}”", "Name its file: `sessgit import --id ID PATH`"
        )
    if _recorded(index, seen.files, privacy):
        operations.drop_tombstone(store, found[0], now)
    return _record(store, index, _Seen(seen.files), config, privacy, watch)


def from_claude(
    store: Store, index: Index, paths: Sequence[Path], config: Path, privacy: Privacy, watch: Watch
) -> Imported:
    """Imports folders of the client as they lie somewhere, with plan, todos and tasks as of the last turn of each.

    Nothing outside of a folder is read, and no link in it is followed. `config` is the folder of the client that
    works here: no other one counts as the place of a transcript. Raises UsageError as `run` does.
    """
    private.check_on(off=privacy.off)
    if not paths:
        raise UsageError("--from claude needs the folder to import", "`sessgit import --from claude DIR`")
    seen = _Seen()
    for path in paths:
        if not (path / "projects").is_dir():
            raise NotFoundError(
                f"{path} has no subfolder “projects”", "A folder of the client, such as ~/.claude, has one."
            )
        folder = config if path.resolve() == config.resolve() else path.absolute()
        seen.folders.extend(discovery.of_client(folder))
        for file in _examined(agents.at(config).home.transcripts(folder), seen.errors):
            if _is_sound(folder, file, seen.errors):
                seen.files.append(replace(file, folder=folder))
    return _record(store, index, seen, config, privacy, watch)


Importer = Callable[[Store, Index, Sequence[Path], Path, Privacy, Watch], Imported]

SOURCES: dict[str, Importer] = {"claude": from_claude}
"""By the name of a system what imports its files."""


def _is_sound(folder: Path, file: File, errors: list[Failure]) -> bool:
    """Whether all that a recording of the file reads lies in the folder itself."""
    if not PLAIN.fullmatch(file.agent_id):
        errors.append(Failure(file.path, "the session id in it cannot be a file name"))
        return False
    found = next(agents.at(folder).sidecars.links(folder, file.path, file.agent_id), None)
    if found is not None:
        errors.append(Failure(file.path, f"{found} is a link; links are not followed"))
    return found is None


def _record(store: Store, index: Index, found: _Seen, config: Path, privacy: Privacy, watch: Watch) -> Imported:
    wanted = _recorded(index, found.files, privacy)
    index.sync()
    files = discovery.distinct(wanted, index, found.errors)
    before = refs.read_all(store.path, layout.HEADS)
    rules = Rules(privacy.rules.granularity, privacy.rules.redact)
    work = Work(store, index, config, rules, watch.reading, found.errors)
    with work.recorded(files) as spoken:
        changed = _changed(before, refs.read_all(store.path, layout.HEADS)) & work.seen
        unpacked = (
            _packed(store, index, watch.packing, work.packs, spoken) if changed or schedule.is_due(store.path) else ""
        )
    archived = list(work.aside.values()).count("archived")
    deleted = tuple(sorted(session for session, why in work.aside.items() if why == "deleted"))
    brought = changed & {
        session for session in work.seen if session in work.grown or layout.head(session) not in before
    }
    return Imported(
        len(brought),
        work.turns,
        len(work.seen - brought) - len(deleted),
        tuple(found.errors),
        unpacked,
        len(found.files) - len(wanted),
        archived,
        deleted,
        discovery.passed_over(found.folders, None if found.is_own else found.files),
    )


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The sessions of which a branch moved: two files of one session may have moved it there and back."""
    moved = {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}
    return {layout.session_of(ref.removeprefix(layout.HEADS)) for ref in moved}


def _packed(store: Store, index: Index, progress: Progress, packs: Collection[str], spoken: Spoken) -> str:
    """Packs the store as `pack` does, and meanwhile brings the text index level: git leaves much of a second core.

    Where the index cannot be followed, whoever searches next tries again and hears why.
    """
    is_over = threading.Event()

    def check(_done: int, _all: int) -> None:
        if is_over.is_set():
            raise _OverError

    def follow() -> None:
        with suppress(Exception):
            search.follow(index, check, spoken.at)

    beside = threading.Thread(target=follow, daemon=True)
    beside.start()
    try:
        return pack(store, packs, progress)
    except BaseException:
        is_over.set()
        raise
    finally:
        beside.join()


class _OverError(Exception):
    """Nobody waits for what is still to be done."""


def pack(store: Store, packs: Collection[str] = (), progress: Progress = unseen) -> str:
    """Packs what is loose, and what came in as packs of these names; why that could not be done, or ``""``."""
    try:
        with locks.maintenance(store.beside, _LOCK_WAIT) as held:
            if held:
                maintenance.pack_arrived(store.path, packs, held, progress)
    except StoreError as error:
        return f"{error}. {error.hint}".strip()
    return ""


def _found(paths: Sequence[Path], config: Path, folders: list[Path]) -> Iterator[Path]:
    """The transcripts at `paths`; the folders that are looked through go into `folders`."""
    if not paths:
        folders.extend(discovery.of_client(config))
        yield from agents.at(config).home.transcripts(config)
    for path in paths:
        if path.is_dir():
            inner = discovery.below(path)
            folders.extend(inner)
            for folder in inner:
                yield from agents.at(config).home.transcripts_in(folder)
        else:
            yield path


def _examined(paths: Iterable[Path], errors: list[Failure]) -> Iterator[File]:
    for path in dict.fromkeys(path.absolute() for path in paths):
        try:
            with opened(path) as source:
                size = source.size
            root = fork_detection.first_prompt(path)
            if not root and not discovery.has_lines(path):
                errors.append(Failure(path, "it has no transcript lines"))
                continue
            agent_id, by_name = discovery.agent_id(path)
            yield File(path, agent_id, size, root, by_name=by_name)
        except SessgitError as error:
            errors.append(Failure(path, str(error)))


def _recorded(index: Index, files: list[File], privacy: Privacy) -> list[File]:
    """Those whose projects are recorded."""
    if privacy.is_everything:
        return files
    is_recorded = private.filtered(privacy, {name: project for name, *_, project in index.names()})
    return [file for file in files if is_recorded(file.path, ids.session_id(file.agent_id))]
