"""Imports of conversations that no recorder recorded while the client wrote them."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.values import PLAIN
from sessgit.errors import (
    ROOM,
    AmbiguousError,
    MovedError,
    NotFoundError,
    SessgitError,
    StoreError,
    UnreadableError,
    UsageError,
)
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.record import import_files
from sessgit.record import privacy as private
from sessgit.record.file_pass import RecordingResult, SkipReason
from sessgit.record.import_files import ImportFailure, SkippedFiles, TranscriptFile
from sessgit.record.recording import record
from sessgit.store import layout, locks, maintenance, operations, refs, tempdirs
from sessgit.store import store as stores
from sessgit.store.backend import PackedRepository
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move
from sessgit.store.pack_file import Pack, is_whole_index, pack_matches_index
from sessgit.store.settings import Privacy
from sessgit.store.store import Store

_LOCK_WAIT = 30.0


@frozen
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
    unpacked: str
    excluded: int
    archived: int
    deleted: tuple[str, ...]
    passed_over: SkippedFiles


@frozen
class ImportProgress:
    """What is called with the progress of an import: `reading` in bytes of transcripts, then `packing` in objects."""

    reading: Progress = no_progress
    packing: Progress = no_progress


@frozen
class _ImportPlan:
    """The transcripts to record, and what cannot be."""

    files: list[TranscriptFile] = field(default_factory=list)
    errors: list[ImportFailure] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    """Those that were searched."""
    is_own: bool = False
    """Whether they are the client's own, in which every file is where the client wants it."""


def run_import(context: Context, paths: Sequence[Path], watch: ImportProgress) -> ImportResult:
    """Import the transcripts at `paths` (files, or folders with all below), or all of the client's.

    Parents come before their forks. The result names the files that cannot be read. Raises UsageError if the
    environment says that nothing is recorded.
    """
    private.check_on(context.privacy)
    seen = _ImportPlan(is_own=not paths)
    found = list(_find_transcripts(paths, context.homes, seen.folders))
    with closing(Workers()) as workers:
        if context.privacy.is_everything and _unknown_size(context.store, found) > _SINGLE_PROCESS_SIZE:
            workers.start(useful_workers())
        seen.files.extend(_examine_files(found, seen.errors))
        return _record_files(context, seen, watch, workers)


def import_one(
    context: Context,
    session: str,
    paths: Sequence[Path],
    watch: ImportProgress,
) -> ImportResult:
    """Import the one transcript whose session's id begins with `session`, even if that session was deleted here.

    Raises NotFoundError if there is none at `paths`, AmbiguousError if there are several.
    """
    private.check_on(context.privacy)
    every = _examine_files(_find_transcripts(paths, context.homes, []), [])
    files = [file for file in every if file.session.startswith(session)]
    sessions = sorted({file.session for file in files})
    if len(sessions) > 1:
        raise AmbiguousError(f"“{session}” matches {', '.join(sessions)}", "Type more of the id.")
    if not files:
        raise NotFoundError(
            f"there is no transcript of a conversation “{session}”", "Name its file: `sessgit import --id ID PATH`"
        )
    if _without_excluded(context, files):
        operations.drop_tombstone(context.store, sessions[0], context.now())
    return _record_files(context, _ImportPlan(files), watch, Workers())


def _import_client_folders(name: str, context: Context, paths: Sequence[Path], watch: ImportProgress) -> ImportResult:
    """Import copies of an agent's folder from anywhere, with plan, todos and tasks as of the last turn of each.

    Nothing outside of a folder is read, and no link in it is followed. Only the folder of the client that works here
    counts as the place of a transcript. Raises UsageError as `run_import` does.
    """
    agent = agents.named(name)
    own = context.homes.folders[agent.name]
    private.check_on(context.privacy)
    if not paths:
        raise UsageError(f"--from {name} needs the folder to import", f"`sessgit import --from {name} DIR`")
    seen = _ImportPlan()
    for path in paths:
        if not agent.home.is_home(path):
            raise NotFoundError(
                f"{path} is not a folder of {agent.title}",
                "Name a copy of the folder in which it keeps its conversations.",
            )
        folder = own if path.resolve() == own.resolve() else path.absolute()
        seen.folders.extend(agent.home.transcript_folders(folder))
        for file in _examine_files(agent.home.transcripts(folder), seen.errors):
            if _is_self_contained(agent, folder, file, seen.errors):
                seen.files.append(replace(file, folder=folder))
    result = _record_files(context, seen, watch, Workers())
    plans = tuple(
        name for folder in paths for name in agent.sidecars.unnamed_plans(folder, agent.home.transcripts(folder))
    )
    return replace(result, passed_over=replace(result.passed_over, plans=plans))


_Importer = Callable[[Context, Sequence[Path], ImportProgress], ImportResult]

SOURCES: dict[str, _Importer] = {name: partial(_import_client_folders, name) for name in agents.PACKAGES}
"""By the name of a system what imports its files."""


def _is_self_contained(agent: Agent, folder: Path, file: TranscriptFile, errors: list[ImportFailure]) -> bool:
    """Return whether all that a recording of the file reads is in the folder itself; add an error if not."""
    if not PLAIN.fullmatch(file.agent_id):
        errors.append(ImportFailure(file.path, "the session id in it cannot be a file name"))
        return False
    link = next(agent.sidecars.links(folder, file.path, file.agent_id), None)
    if link is not None:
        errors.append(ImportFailure(file.path, f"{link} is a link; links are not followed"))
    return link is None


def _record_files(context: Context, plan: _ImportPlan, watch: ImportProgress, workers: Workers) -> ImportResult:
    store = context.store
    files = _without_excluded(context, plan.files)
    excluded = len(plan.files) - len(files)
    context.index.sync()
    before = refs.read_all(store.path, layout.HEADS)
    run = ImportRun(context, watch.reading, plan.errors, workers=workers)
    run.run(import_files.distinct_files(files, context.index, plan.errors))
    moved = {ref for ref, _ in before.items() ^ refs.read_all(store.path, layout.HEADS).items()}
    # Two files of one session may have moved a branch there and back.
    seen = {result.session for result in run.results}
    grown = {result.session for result in run.results if result.turns}
    changed = {layout.session_of_ref(ref) for ref in moved} & seen
    is_due = changed or maintenance.is_packing_due(store.path)
    unpacked = pack_import(store, run.packs, watch.packing, run.likeness) if is_due else ""
    deleted = tuple(sorted(session for session, why in run.skipped.items() if why == "deleted"))
    imported = {session for session in changed if session in grown or layout.head_ref(session) not in before}
    return ImportResult(
        len(imported),
        sum(len(result.turns) for result in run.results),
        len(seen - imported) - len(deleted),
        tuple(plan.errors),
        unpacked,
        excluded,
        list(run.skipped.values()).count("archived"),
        deleted,
        import_files.skipped_files(plan.folders, None if plan.is_own else plan.files),
    )


def pack_import(
    store: Store,
    packs: Collection[str] = (),
    progress: Progress = no_progress,
    likeness: Mapping[str, int] = maintenance.NO_LIKENESS,
) -> str:
    """Pack loose objects and the packs of these names, given the likeness of texts in them; return why that failed, or
    ``""``."""
    try:
        with locks.maintenance_lock(store.paths, _LOCK_WAIT) as lock:
            if lock:
                maintenance.pack_arrived(store.path, packs, lock, progress, likeness)
    except StoreError as error:
        return f"{error}. {error.hint}".strip()
    return ""


def _find_transcripts(paths: Sequence[Path], homes: Homes, folders: list[Path]) -> Iterator[Path]:
    """Yield the transcripts at `paths`; add the folders that are searched to `folders`."""
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


def _known_sessions(store: Store) -> set[str]:
    return {layout.session_of_ref(ref) for ref in refs.read_all(store.path) if ref.startswith(layout.REF_SPACES)}


def _unknown_size(store: Store, paths: Iterable[Path]) -> int:
    """Return the bytes of the files whose names are of no session in the store."""
    known, size = _known_sessions(store), 0
    for path in paths:
        if ids.session_id(agents.of_file(path).home.agent_id(path)) not in known:
            with suppress(OSError):  # it is reported when it is read
                size += path.stat().st_size
    return size


def _examine_files(paths: Iterable[Path], errors: list[ImportFailure]) -> Iterator[TranscriptFile]:
    for path in dict.fromkeys(path.absolute() for path in paths):
        try:
            yield import_files.examine(path)
        except SessgitError as error:
            errors.append(ImportFailure(path, str(error)))


def _without_excluded(context: Context, files: list[TranscriptFile]) -> list[TranscriptFile]:
    """Return the files whose projects are recorded."""
    if context.privacy.is_everything:
        return files
    is_recorded = private.recorded_filter(
        context.privacy, {one.name: one.project for one in context.index.branch_outlines()}
    )
    return [file for file in files if is_recorded(file.path, ids.session_id(file.agent_id))]


# New sessions recorded into a store of their own, by this process or by several, for an import to take over.
#
# The objects of such a store are one pack. A bare interpreter loads the program and forks the workers, which get tasks
# over sockets. They do not get signals of the keyboard, and end at once with the process that started them.

_PACK_NAME = "gathered.pack"
"""The pack in a task's folder, next to its index, before it has its name."""
_BOOT_CODE = (
    "import sys; fds = map(int, sys.argv[1].split(',')); sys.path[:] = sys.argv[2:];"
    "from sessgit.record.imports import serve; serve(*fds)"
)
_MOST_AHEAD = 3
"""The number of tasks beyond one per worker that start before the first result is taken: each may hold some MB."""
_GC_THRESHOLD = 50_000
"""The number of new Python objects between searches for cycles: nearly none of a parsed line is in one."""

_ReportBytes = Callable[[int], None]
"""Called with the size of a file that is recorded."""


@frozen
class RecordTask:
    """Families of transcripts of which the store has nothing; they are recorded into a new store in `folder`."""

    store: Path
    folder: Path
    families: Sequence[Sequence[TranscriptFile]]
    homes: Homes
    privacy: Privacy

    @property
    def size(self) -> int:
        """The bytes of all transcripts."""
        return sum(file.size for members in self.families for file in members)


@frozen
class RecordedTask:
    """What was recorded into a task's store: the name of its pack, or empty, the likeness of texts in it, and the refs.

    `asked` are the prompts for which the recorder looked up other sessions: it only saw those of this store.
    """

    task: RecordTask
    pack: str
    likeness: dict[str, int]
    refs: dict[str, str]
    asked: frozenset[str]
    results: tuple[RecordingResult, ...]
    errors: tuple[ImportFailure, ...]


def record_families(task: RecordTask, report: _ReportBytes) -> RecordedTask:
    """Record the families one after the other; raises StoreError if nothing can be written."""
    pack = _create_store(task)
    store = Store(task.folder, PackedRepository(task.folder, pack))
    index = Index(task.folder, lambda: store)
    errors, results = list[ImportFailure](), list[RecordingResult]()
    try:
        for members in task.families:
            for file in import_files.sort_parents_first(members, errors):
                try:
                    results.append(record(Context(index, privacy=task.privacy), file.source(task.homes, ())))
                except StoreError:
                    raise  # the next file would fail as well
                except SessgitError as error:
                    errors.append(ImportFailure(file.path, str(error)))
                report(file.size)
        index.sync()
        first = {row.prompt for branch in index.branches() for row in index.turns(branch.name, 1, 1)}
        asked = first | {file.root for members in task.families for file in members}
        tips = refs.read_all(task.folder, layout.HEADS)
        return RecordedTask(
            task, pack.finish(), pack.likeness, tips, frozenset(asked - {""}), tuple(results), tuple(errors)
        )
    finally:
        pack.close()
        index.close()


def _create_store(task: RecordTask) -> Pack:
    """Create a store with the key and the purged values of the task's store; return the pack for its objects."""
    own, other = StorePaths(task.folder), StorePaths(task.store)
    try:
        stores.create_store(task.folder)
        own.key.unlink()
        for path, copy in ((other.key, own.key), (other.forbidden, own.forbidden)):
            with suppress(FileNotFoundError):  # a missing key is an error only where it is needed
                shutil.copyfile(path, copy)
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
    return Pack(task.folder / _PACK_NAME)


def useful_workers() -> int:
    """Return how many workers are useful on this machine."""
    with suppress(AttributeError, OSError):  # not on every system
        return min(8, len(os.sched_getaffinity(0)))
    return min(8, os.cpu_count() or 1)


def _run_tasks(tasks: Sequence[RecordTask], workers: Workers, report: _ReportBytes) -> Generator[RecordedTask]:
    """Yield the results of the tasks in their order, made by the workers, or by this process if none were started.

    Raises what a worker raised, and StoreError if one was killed.
    """
    if not workers.connections:
        yield from (record_families(task, report) for task in tasks)
        return
    idle, busy = list(workers.connections), dict[Connection, int]()
    """The numbers of the tasks that are under way."""
    waiting, results = deque(enumerate(tasks)), dict[int, RecordedTask]()
    for number in range(len(tasks)):
        limit = number + len(workers.connections) + _MOST_AHEAD
        while True:
            while idle and waiting and waiting[0][0] < limit:
                connection = idle.pop()
                busy[connection], task = waiting.popleft()
                with _killed_is_error():
                    connection.send(task)
            if number in results:
                break
            for connection in [one for one in wait(list(busy)) if isinstance(one, Connection)]:
                with _killed_is_error():
                    answer: int | RecordedTask | Exception = connection.recv()
                if isinstance(answer, Exception):
                    raise answer
                if isinstance(answer, int):
                    report(answer)
                else:
                    results[busy.pop(connection)] = answer
                    idle.append(connection)
        yield results.pop(number)


@contextmanager
def _killed_is_error() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        hint = "Imported conversations stay. Run import again to continue."
        raise StoreError("a process of the import was killed", hint) from error


class Workers:
    """The workers of an import, none until they are started. They take a while to load the program, so an import of
    much starts them before it looks at what there is."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, count: int) -> None:
        """Start as many workers, unless they are started already. Raises StoreError."""
        if self._process is not None or not count:
            return
        pairs = [socket.socketpair() for _ in range(count)]
        life, self._life = os.pipe()
        handles = [life, *(theirs.fileno() for _, theirs in pairs)]
        command = [sys.executable, "-I", "-c", _BOOT_CODE, ",".join(map(str, handles)), *(p for p in sys.path if p)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                pass_fds=handles, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise StoreError(f"cannot start a process: {error.strerror or error}") from error
        finally:
            os.close(life)
            for _, theirs in pairs:
                theirs.close()
        self.connections = [Connection(ours.detach()) for ours, _ in pairs]

    def close(self) -> None:
        """End the workers; none of them writes any more then."""
        if self._process is None:
            return
        os.close(self._life)
        for connection in self.connections:
            with connection, suppress(EOFError, OSError):
                while True:  # what it sent before its end is dropped
                    connection.recv_bytes()
        self._process.wait()
        self.connections, self._process = [], None


def serve(life: int, *handles: int) -> None:
    """Fork a worker for each of these sockets, and wait until all have ended. `life` is the end of a pipe whose other
    end is closed when they are to end."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    for handle in handles:
        if not os.fork():
            os.setsid()  # or systems that schedule by sessions would give all workers the time of one
            threading.Thread(target=_end_with, args=(life,), daemon=True).start()
            for other in set(handles) - {handle}:
                os.close(other)
            _serve_one(handle)
            return
    for handle in handles:
        os.close(handle)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _end_with(life: int) -> None:
    """Kill this process once the other end of a pipe is closed."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _serve_one(handle: int) -> None:
    """Run the tasks that come over a socket, until its other end is closed."""
    with Connection(handle) as connection, suppress(EOFError, OSError):
        while True:
            task: RecordTask = connection.recv()
            connection.send(_run_task(task, connection.send))


def _run_task(task: RecordTask, report: _ReportBytes) -> RecordedTask | Exception:
    try:
        return record_families(task, report)
    except OSError:
        raise  # the other end is closed
    except SessgitError as error:
        return error
    except Exception:
        return RuntimeError(traceback.format_exc())


# One family after the other: new ones recorded in batches, others one by one. The result is the same as that of
# recording all of them one by one.

_BATCH_SIZE = 6 << 20
"""The bytes of transcripts that become one pack: an interruption loses at most some of these."""
_BATCH_FILES = 50
"""The number of transcripts that become one pack, however small they are."""
_SINGLE_PROCESS_SIZE = 12 << 20
"""The bytes that this process records itself: workers take time to start. More would leave it large."""
_MOST_LOOSE_REFS = 2_000
"""The number of sessions after which refs are packed: each ref is a file before, and slow to read."""
_FEW_REFS = 4
"""The number of refs that are moved one by one: starting git would take longer."""

_Families = list[list[TranscriptFile]]


@dataclass
class ImportRun:
    """An import and what it did so far.

    `results` are those of the files that were read; `skipped` are the sessions that are archived or deleted; `packs`
    are the names of the packs that it added, `likeness` is that of texts in them. `batch` is the size of a batch in
    bytes, `processes` the number of workers, 0 for this process alone, None to go by the size; `workers` may be started
    already.
    """

    context: Context
    progress: Progress
    """Called with bytes of transcripts."""
    errors: list[ImportFailure]
    batch: int = _BATCH_SIZE
    processes: int | None = None
    workers: Workers = field(default_factory=Workers)
    results: list[RecordingResult] = field(default_factory=list)
    skipped: dict[str, SkipReason] = field(default_factory=dict)
    packs: list[str] = field(default_factory=list)
    likeness: dict[str, int] = field(default_factory=dict)
    _done: int = 0
    _total: int = 0
    _moved: int = 0

    def run(self, files: Sequence[TranscriptFile]) -> None:
        """Record all files; raises StoreError if the store cannot be written, and keeps what was recorded by then."""
        store, homes = self.context.store, self.context.homes
        self._total = sum(file.size for file in files)
        elsewhere = {(file.agent, file.folder) for file in files if file.folder}
        self._live = agents.open_sessions(homes).union(
            *(agents.open_sessions(homes.at(agent, folder)) for agent, folder in elsewhere)
        )
        self.progress(0, self._total)
        self.context.index.sync()
        steps = list(self._steps(files))
        with tempdirs.make_folder("importing-", store.paths.state) as folder:
            place = folder.absolute()
            tasks = [
                RecordTask(store.path.absolute(), place / str(number), families, homes, self.context.privacy)
                for number, (is_new, families) in enumerate(steps)
                if is_new
            ]
            lock = locks.hold_off_prune(store.paths)
            try:
                self.workers.start(min(len(tasks), self._processes(tasks)))
                recorded = _run_tasks(tasks, self.workers, self._report)
                for is_new, families in steps:
                    if not is_new or not self._take_over(next(recorded)):
                        self._record(families)
            finally:
                self.workers.close()
                locks.release(lock)
        self.progress(self._total, self._total)

    def _processes(self, tasks: Sequence[RecordTask]) -> int:
        if self.processes is not None:
            return self.processes
        is_large = sum(task.size for task in tasks) > _SINGLE_PROCESS_SIZE
        return useful_workers() if is_large else 0

    def _steps(self, files: Sequence[TranscriptFile]) -> Iterator[tuple[bool, _Families]]:
        """Yield the families in their order, new ones in batches, others one by one, and whether they are new."""
        known = _known_sessions(self.context.store)
        batch: _Families = []
        size = count = 0
        for members in import_files.group_by_prompt(files):
            family = {file.agent_id for file in members}
            is_new = not any(file.session in known or file.agent_id in self._live for file in members)
            is_new = is_new and {file.base for file in members} <= {"", *family}
            is_new = is_new and not any(map(self.context.index.with_prompt, {file.root for file in members} - {""}))
            if batch and (not is_new or size >= self.batch or count >= _BATCH_FILES):
                yield True, batch
                batch, size, count = [], 0, 0
            if is_new:
                batch.append(members)
                size += sum(file.size for file in members)
                count += len(members)
            else:
                yield False, [members]
        if batch:
            yield True, batch

    def _report(self, size: int) -> None:
        self._done += size
        self.progress(self._done, self._total)

    def _take_over(self, recorded: RecordedTask) -> bool:
        if not take_over(self.context, recorded):
            self._done -= recorded.task.size
            return False
        self.packs.append(f"pack-{recorded.pack}")
        self.likeness |= recorded.likeness
        self.errors += recorded.errors
        for result in recorded.results:
            self._note(result)
        return True

    def _record(self, families: _Families) -> None:
        """Record the files of families one by one, each under its session's lock."""
        for members in families:
            for file in import_files.sort_parents_first(members, self.errors):
                self._record_one(file)
                self._report(file.size)

    def _record_one(self, file: TranscriptFile) -> None:
        source = file.source(self.context.homes, self._live)
        try:
            with locks.session_lock(self.context.store.paths, source.session, _LOCK_WAIT) as is_locked:
                if not is_locked:
                    self.errors.append(ImportFailure(file.path, "a recorder has been writing it for half a minute"))
                    return
                result = record(self.context, source)
        except UnreadableError as error:
            hint = f"`sessgit repair {source.session}` restores what can be found"
            self.errors.append(ImportFailure(file.path, f"{error}. {hint}"))
            return
        except StoreError:
            raise  # the next file would fail as well
        except SessgitError as error:
            self.errors.append(ImportFailure(file.path, str(error)))
            return
        self._note(result)
        if result.skipped == "deleted" or (
            result.skipped and import_files.has_unrecorded(self.context.index, source.session, file.path)
        ):
            self.skipped[result.session] = result.skipped

    def _note(self, result: RecordingResult) -> None:
        self.results.append(result)
        self._moved += result.changed
        paths = self.context.store.paths
        if result.changed and self._moved % _MOST_LOOSE_REFS == 0:
            with suppress(StoreError), locks.maintenance_lock(paths) as lock:
                if lock:
                    operations.pack_refs(self.context.store.path, lock)


def take_over(context: Context, recorded: RecordedTask) -> bool:
    """Move what was recorded apart into the store: the pack first, then all refs or none; return whether it is there.

    It is not if the store has another session by now that may be of the same family, or if another process has just
    recorded one of the sessions. The caller keeps others from pruning.
    """
    store = context.store
    if any(context.index.with_prompt(prompt) for prompt in recorded.asked):
        return False
    if recorded.pack:
        _install_pack(store, recorded)
    try:
        _create_refs(store, recorded.refs)
    except MovedError:
        return False
    for path in StorePaths(recorded.task.folder).state.glob("*.json"):
        with suppress(OSError):  # without its cursor a file is read from its beginning
            path.replace(store.paths.state / path.name)
    context.index.add_rows(recorded.task.folder)
    return True


def _install_pack(store: Store, recorded: RecordedTask) -> None:
    """Put the pack where git finds it; git looks for the index, so that comes last."""
    packs = store.path / "objects" / "pack"
    index = packs / f"pack-{recorded.pack}.idx"
    try:
        packs.mkdir(mode=0o700, exist_ok=True)
        was_there = index.exists()
        if was_there and _is_whole_pack(index):
            return  # an interrupted import put it there
        for suffix in (".pack", ".idx"):
            (recorded.task.folder / _PACK_NAME).with_suffix(suffix).replace(index.with_suffix(suffix))
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
    if was_there:
        store.repo.refresh_packs()  # it may have read the broken pack


def _is_whole_pack(index: Path) -> bool:
    try:
        listed = index.read_bytes()
        return is_whole_index(listed) and pack_matches_index(index.with_suffix(".pack"), listed)
    except OSError:
        return False


def _create_refs(store: Store, tips: Mapping[str, str]) -> None:
    """Create all refs or none; one by one if they are few, a session's side branches before its head."""
    moves = [Move(ref, None, tip) for ref, tip in tips.items()]
    moves.sort(key=lambda move: (not layout.is_side_branch(move.ref.removeprefix(layout.HEADS)), move.ref))
    try:
        if len(moves) > _FEW_REFS:
            operations.move_refs(store.path, moves, durable=False)
            return
    except StoreError as error:
        if isinstance(error, MovedError) or shutil.which("git"):
            raise
    for move in moves:
        store.repo.move(*move)
