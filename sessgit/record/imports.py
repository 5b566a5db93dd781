"""Imports of conversations that no recorder recorded while the client wrote them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.reader import opened
from sessgit.agents.values import PLAIN
from sessgit.errors import AmbiguousError, NotFoundError, SessgitError, StoreError, UsageError
from sessgit.model import ids
from sessgit.model.config import Privacy
from sessgit.model.homes import Homes
from sessgit.model.progress import Progress, no_progress
from sessgit.record import fork_detection, import_files
from sessgit.record import privacy as private
from sessgit.record.import_files import ImportFailure, SkippedFiles, TranscriptFile
from sessgit.record.import_run import ImportRun
from sessgit.store import layout, locks, maintenance, operations, refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

_LOCK_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many sessions are new or grew, how many turns were recorded, how many sessions were up to date.

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
    """What is called with the progress of an import: `reading` in bytes of transcripts, then `packing` in objects."""

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


def run_import(context: Context, paths: Sequence[Path], watch: ImportProgress) -> ImportResult:
    """Imports the transcripts at `paths` (files, or folders with all below), or all of the client's.

    Parents come before their forks. A file that cannot be read is named in the result and the others go on. Raises
    UsageError where nothing may be recorded because a command asks.
    """
    private.check_on(off=context.privacy.off)
    seen = _ImportPlan(is_own=not paths)
    seen.files.extend(_examine_files(_find_transcripts(paths, context.homes, seen.folders), seen.errors))
    return _record_files(context, seen, watch)


def import_one(
    context: Context,
    session: str,
    paths: Sequence[Path],
    watch: ImportProgress,
) -> ImportResult:
    """Imports the one transcript whose session's id begins so, even if that session was deleted here.

    Raises NotFoundError where there is none at `paths`, AmbiguousError where there are several.
    """
    private.check_on(off=context.privacy.off)
    seen = _ImportPlan()
    near = (
        path
        for path in _find_transcripts(paths, context.homes, [])
        if import_files.agent_id(path)[0].startswith(session)
    )
    seen.files.extend(f for f in _examine_files(near, seen.errors) if ids.session_id(f.agent_id).startswith(session))
    found = sorted({ids.session_id(file.agent_id) for file in seen.files})
    if len(found) > 1:
        raise AmbiguousError(f"“{session}” matches {', '.join(found)}", "Type more of the id.")
    if not found:
        raise NotFoundError(
            f"there is no transcript of a conversation “{session}”", "Name its file: `sessgit import --id ID PATH`"
        )
    if _without_excluded(context.index, seen.files, context.privacy):
        operations.drop_tombstone(context.store, found[0], context.now())
    return _record_files(context, _ImportPlan(seen.files), watch)


def import_claude_folders(context: Context, paths: Sequence[Path], watch: ImportProgress) -> ImportResult:
    """Imports folders of the client as they lie somewhere, with plan, todos and tasks as of the last turn of each.

    Nothing outside of a folder is read, and no link in it is followed. Only the folder of the client that works here
    counts as the place of a transcript. Raises UsageError as `run_import` does.
    """
    agent = agents.named("claude")
    own = context.homes.folders[agent.name]
    private.check_on(off=context.privacy.off)
    if not paths:
        raise UsageError("--from claude needs the folder to import", "`sessgit import --from claude DIR`")
    seen = _ImportPlan()
    for path in paths:
        if not agent.home.is_home(path):
            raise NotFoundError(
                f"{path} has no subfolder “projects”", "A folder of the client, such as ~/.claude, has one."
            )
        folder = own if path.resolve() == own.resolve() else path.absolute()
        seen.folders.extend(agent.home.transcript_folders(folder))
        for file in _examine_files(agent.home.transcripts(folder), seen.errors):
            if _is_self_contained(agent, folder, file, seen.errors):
                seen.files.append(replace(file, folder=folder))
    result = _record_files(context, seen, watch)
    plans = tuple(
        name for folder in paths for name in agent.sidecars.unnamed_plans(folder, agent.home.transcripts(folder))
    )
    return replace(result, passed_over=replace(result.passed_over, plans=plans))


Importer = Callable[[Context, Sequence[Path], ImportProgress], ImportResult]

SOURCES: dict[str, Importer] = {"claude": import_claude_folders}
"""By the name of a system what imports its files."""


def _is_self_contained(agent: Agent, folder: Path, file: TranscriptFile, errors: list[ImportFailure]) -> bool:
    """Whether all that a recording of the file reads lies in the folder itself."""
    if not PLAIN.fullmatch(file.agent_id):
        errors.append(ImportFailure(file.path, "the session id in it cannot be a file name"))
        return False
    found = next(agent.sidecars.links(folder, file.path, file.agent_id), None)
    if found is not None:
        errors.append(ImportFailure(file.path, f"{found} is a link; links are not followed"))
    return found is None


def _record_files(context: Context, plan: _ImportPlan, watch: ImportProgress) -> ImportResult:
    store = context.store
    files = _without_excluded(context.index, plan.files, context.privacy)
    excluded = len(plan.files) - len(files)
    context.index.sync()
    before = refs.read_all(store.path, layout.HEADS)
    run = ImportRun(context, watch.reading, plan.errors)
    run.run(import_files.distinct_files(files, context.index, plan.errors))
    moved = {ref for ref, _ in before.items() ^ refs.read_all(store.path, layout.HEADS).items()}
    # Two files of one session may have moved a branch there and back.
    changed = {layout.session_of_ref(ref) for ref in moved} & run.seen
    unpacked = pack_import(store, run.packs, watch.packing) if changed or maintenance.is_packing_due(store.path) else ""
    deleted = tuple(sorted(session for session, why in run.skipped.items() if why == "deleted"))
    imported = {session for session in changed if session in run.grown or layout.head_ref(session) not in before}
    return ImportResult(
        len(imported),
        run.turns,
        len(run.seen - imported) - len(deleted),
        tuple(plan.errors),
        unpacked,
        excluded,
        list(run.skipped.values()).count("archived"),
        deleted,
        import_files.skipped_files(plan.folders, None if plan.is_own else plan.files),
    )


def pack_import(store: Store, packs: Collection[str] = (), progress: Progress = no_progress) -> str:
    """Pack loose objects and the packs of these names; return why that failed, or ``""``."""
    try:
        with locks.maintenance_lock(store.paths, _LOCK_WAIT) as lock:
            if lock:
                maintenance.pack_arrived(store.path, packs, lock, progress)
    except StoreError as error:
        return f"{error}. {error.hint}".strip()
    return ""


def _find_transcripts(paths: Sequence[Path], homes: Homes, folders: list[Path]) -> Iterator[Path]:
    """The transcripts at `paths`; the folders that are looked through go into `folders`."""
    if not paths:
        for agent, own in agents.clients(homes):
            folders.extend(agent.home.transcript_folders(own))
        yield from (file.path for file in agents.transcripts(homes))
    for path in paths:
        if path.is_dir():
            inner = import_files.folders_below(path)
            folders.extend(inner)
            for folder in inner:
                for agent in agents.every():
                    yield from (file for file in agent.home.transcripts_in(folder) if agents.of_file(file) is agent)
        else:
            yield path


def _examine_files(paths: Iterable[Path], errors: list[ImportFailure]) -> Iterator[TranscriptFile]:
    for path in dict.fromkeys(path.absolute() for path in paths):
        try:
            with opened(path) as source:
                size = source.size
            root = fork_detection.first_prompt(path)
            if not root and not import_files.has_lines(path):
                errors.append(ImportFailure(path, "it has no transcript lines" if size else "it is empty"))
                continue
            agent_id, by_name = import_files.agent_id(path)
            yield TranscriptFile(path, agent_id, size, root, agent=agents.of_file(path).name, by_name=by_name)
        except SessgitError as error:
            errors.append(ImportFailure(path, str(error)))


def _without_excluded(index: Index, files: list[TranscriptFile], privacy: Privacy) -> list[TranscriptFile]:
    """Those whose projects are recorded."""
    if privacy.is_everything:
        return files
    is_recorded = private.recorded_filter(privacy, {one.name: one.project for one in index.branch_outlines()})
    return [file for file in files if is_recorded(file.path, ids.session_id(file.agent_id))]
