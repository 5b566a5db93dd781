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
from sessgit.model.progress import Progress, no_progress
from sessgit.record import fork_detection
from sessgit.record import privacy as private
from sessgit.record.bulk import discovery
from sessgit.record.bulk.discovery import SkippedFiles
from sessgit.record.bulk.families import ImportFailure, TranscriptFile
from sessgit.record.bulk.schedule import ImportRun
from sessgit.record.bulk.word_list import WordLists
from sessgit.record.privacy import Privacy
from sessgit.record.source import RecordRules
from sessgit.store import layout, locks, maintenance, operations, refs
from sessgit.store.index import Index
from sessgit.store.packing import schedule
from sessgit.store.store import Store

_LOCK_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many sessions were brought in or grew, how many turns were recorded, how many sessions were level.

    `unpacked` says why the store could not be packed, which leaves it larger and slower but whole; `excluded` counts
    the files of projects that are off, which were left out. `archived` counts the sessions that have gone on since
    they were archived, and were left as they are; `deleted` are those that were deleted here, and were left out.
    `passed_over` is what lies in the folders and was not looked at.
    """

    sessions: int
    turns: int
    unchanged: int
    errors: tuple[ImportFailure, ...]
    unpacked: str = ""
    excluded: int = 0
    archived: int = 0
    deleted: tuple[str, ...] = ()
    passed_over: SkippedFiles = field(default_factory=SkippedFiles)


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """Who is told how far an import is: `reading` in bytes of transcripts, and then `packing` in objects."""

    reading: Progress = no_progress
    packing: Progress = no_progress


@dataclass(frozen=True, slots=True)
class _ImportPlan:
    """The transcripts to record, and what cannot be."""

    files: list[TranscriptFile] = field(default_factory=list)
    errors: list[ImportFailure] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    """Those that were looked through."""
    is_own: bool = False
    """Whether they are the client's own, in which every file lies where the client wants it."""


def run_import(
    store: Store, index: Index, paths: Sequence[Path], config: Path, privacy: Privacy, watch: ImportProgress
) -> ImportResult:
    """Imports the transcripts at `paths` (files, or folders with all below), or all of the client's.

    Parents come before their forks. A file that cannot be read is named in the result and the others go on. Raises
    UsageError where nothing may be recorded because a command asks.
    """
    private.check_on(off=privacy.off)
    seen = _ImportPlan(is_own=not paths)
    seen.files.extend(_examine_files(_find_transcripts(paths, config, seen.folders), seen.errors))
    return _record_files(store, index, seen, config, privacy, watch)


def import_one(  # noqa: PLR0913, PLR0917 - what `run_import` takes, and which one
    store: Store,
    index: Index,
    session: str,
    paths: Sequence[Path],
    config: Path,
    privacy: Privacy,
    watch: ImportProgress,
    now: float,
) -> ImportResult:
    """Imports the one transcript whose session's id begins so, even if that session was deleted here.

    Raises NotFoundError where there is none at `paths`, AmbiguousError where there are several.
    """
    private.check_on(off=privacy.off)
    seen = _ImportPlan()
    near = (
        path
        for path in _find_transcripts(paths, config, [])
        if path.stem.startswith(session) or not discovery.is_named_by_id(path)
    )
    seen.files.extend(f for f in _examine_files(near, seen.errors) if ids.session_id(f.agent_id).startswith(session))
    found = sorted({ids.session_id(file.agent_id) for file in seen.files})
    if len(found) > 1:
        raise AmbiguousError(f"“{session}” matches {', '.join(found)}", "Type more of the id.")
    if not found:
        raise NotFoundError(
            f"there is no transcript of a conversation “{session}”", "Name its file: `sessgit import --id ID PATH`"
        )
    if _without_excluded(index, seen.files, privacy):
        operations.drop_tombstone(store, found[0], now)
    return _record_files(store, index, _ImportPlan(seen.files), config, privacy, watch)


def import_claude_folders(
    store: Store, index: Index, paths: Sequence[Path], config: Path, privacy: Privacy, watch: ImportProgress
) -> ImportResult:
    """Imports folders of the client as they lie somewhere, with plan, todos and tasks as of the last turn of each.

    Nothing outside of a folder is read, and no link in it is followed. `config` is the folder of the client that
    works here: no other one counts as the place of a transcript. Raises UsageError as `run_import` does.
    """
    private.check_on(off=privacy.off)
    if not paths:
        raise UsageError("--from claude needs the folder to import", "`sessgit import --from claude DIR`")
    seen = _ImportPlan()
    for path in paths:
        if not (path / "projects").is_dir():
            raise NotFoundError(
                f"{path} has no subfolder “projects”", "A folder of the client, such as ~/.claude, has one."
            )
        folder = config if path.resolve() == config.resolve() else path.absolute()
        seen.folders.extend(discovery.client_folders(folder))
        for file in _examine_files(agents.at(config).home.transcripts(folder), seen.errors):
            if _is_self_contained(folder, file, seen.errors):
                seen.files.append(replace(file, folder=folder))
    return _record_files(store, index, seen, config, privacy, watch)


Importer = Callable[[Store, Index, Sequence[Path], Path, Privacy, ImportProgress], ImportResult]

SOURCES: dict[str, Importer] = {"claude": import_claude_folders}
"""By the name of a system what imports its files."""


def _is_self_contained(folder: Path, file: TranscriptFile, errors: list[ImportFailure]) -> bool:
    """Whether all that a recording of the file reads lies in the folder itself."""
    if not PLAIN.fullmatch(file.agent_id):
        errors.append(ImportFailure(file.path, "the session id in it cannot be a file name"))
        return False
    found = next(agents.at(folder).sidecars.links(folder, file.path, file.agent_id), None)
    if found is not None:
        errors.append(ImportFailure(file.path, f"{found} is a link; links are not followed"))
    return found is None


def _record_files(
    store: Store, index: Index, found: _ImportPlan, config: Path, privacy: Privacy, watch: ImportProgress
) -> ImportResult:
    wanted = _without_excluded(index, found.files, privacy)
    index.sync()
    files = discovery.distinct_files(wanted, index, found.errors)
    before = refs.read_all(store.path, layout.HEADS)
    rules = RecordRules(privacy.rules.granularity, privacy.rules.redact)
    work = ImportRun(store, index, config, rules, watch.reading, found.errors)
    with work.recorded(files) as spoken:
        changed = _changed_sessions(before, refs.read_all(store.path, layout.HEADS)) & work.seen
        unpacked = (
            _pack_and_index(store, index, watch.packing, work.packs, spoken)
            if changed or schedule.is_due(store.path)
            else ""
        )
    archived = list(work.aside.values()).count("archived")
    deleted = tuple(sorted(session for session, why in work.aside.items() if why == "deleted"))
    brought = changed & {
        session for session in work.seen if session in work.grown or layout.head_ref(session) not in before
    }
    return ImportResult(
        len(brought),
        work.turns,
        len(work.seen - brought) - len(deleted),
        tuple(found.errors),
        unpacked,
        len(found.files) - len(wanted),
        archived,
        deleted,
        discovery.skipped_files(found.folders, None if found.is_own else found.files),
    )


def _changed_sessions(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The sessions of which a branch moved: two files of one session may have moved it there and back."""
    moved = {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}
    return {layout.session_of(ref.removeprefix(layout.HEADS)) for ref in moved}


def _pack_and_index(store: Store, index: Index, progress: Progress, packs: Collection[str], spoken: WordLists) -> str:
    """Packs the store as `pack_import` does, and meanwhile brings the text index level: git leaves much of a second
    core.

    Where the index cannot be followed, whoever searches next tries again and hears why.
    """
    is_over = threading.Event()

    def check(_done: int, _all: int) -> None:
        if is_over.is_set():
            raise _ImportDoneError

    def follow() -> None:
        with suppress(Exception):
            search.update_fulltext(index, check, spoken.at)

    beside = threading.Thread(target=follow, daemon=True)
    beside.start()
    try:
        return pack_import(store, packs, progress)
    except BaseException:
        is_over.set()
        raise
    finally:
        beside.join()


class _ImportDoneError(Exception):
    """Nobody waits for what is still to be done."""


def pack_import(store: Store, packs: Collection[str] = (), progress: Progress = no_progress) -> str:
    """Packs what is loose, and what came in as packs of these names; why that could not be done, or ``""``."""
    try:
        with locks.maintenance_lock(store.beside, _LOCK_WAIT) as held:
            if held:
                maintenance.pack_arrived(store.path, packs, held, progress)
    except StoreError as error:
        return f"{error}. {error.hint}".strip()
    return ""


def _find_transcripts(paths: Sequence[Path], config: Path, folders: list[Path]) -> Iterator[Path]:
    """The transcripts at `paths`; the folders that are looked through go into `folders`."""
    if not paths:
        folders.extend(discovery.client_folders(config))
        yield from agents.at(config).home.transcripts(config)
    for path in paths:
        if path.is_dir():
            inner = discovery.folders_below(path)
            folders.extend(inner)
            for folder in inner:
                yield from agents.at(config).home.transcripts_in(folder)
        else:
            yield path


def _examine_files(paths: Iterable[Path], errors: list[ImportFailure]) -> Iterator[TranscriptFile]:
    for path in dict.fromkeys(path.absolute() for path in paths):
        try:
            with opened(path) as source:
                size = source.size
            root = fork_detection.first_prompt(path)
            if not root and not discovery.has_lines(path):
                errors.append(ImportFailure(path, "it has no transcript lines"))
                continue
            agent_id, by_name = discovery.agent_id(path)
            yield TranscriptFile(path, agent_id, size, root, by_name=by_name)
        except SessgitError as error:
            errors.append(ImportFailure(path, str(error)))


def _without_excluded(index: Index, files: list[TranscriptFile], privacy: Privacy) -> list[TranscriptFile]:
    """Those whose projects are recorded."""
    if privacy.is_everything:
        return files
    is_recorded = private.recorded_filter(privacy, {name: project for name, *_, project in index.names()})
    return [file for file in files if is_recorded(file.path, ids.session_id(file.agent_id))]
