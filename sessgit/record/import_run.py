"""All transcripts of an import, one family after the other: new ones recorded in batches, others one by one.

The result is the same as that of recording all of them one by one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sessgit import agents
from sessgit.errors import ROOM, MovedError, SessgitError, StoreError, UnreadableError
from sessgit.model.progress import Progress
from sessgit.record import import_files, import_workers
from sessgit.record.file_pass import RecordingResult, SkipReason
from sessgit.record.import_files import ImportFailure, TranscriptFile
from sessgit.record.import_workers import PACK_NAME, RecordedTask, RecordTask
from sessgit.record.recording import record
from sessgit.record.source import rules_from_settings
from sessgit.store import layout, locks, maintenance, refs, tempdirs, transaction
from sessgit.store.context import Context
from sessgit.store.layout import StorePaths
from sessgit.store.pack_file import is_whole_index, pack_matches_index
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_BATCH_SIZE = 6 << 20
"""The bytes of transcripts that become one pack: an interruption loses at most some of these."""
_BATCH_FILES = 50
"""The number of transcripts that become one pack, however small they are."""
_SINGLE_PROCESS_SIZE = 12 << 20
"""The bytes that this process records itself: workers take time to start. More would leave it large."""
_LOCK_WAIT = 30.0
_MOST_LOOSE_REFS = 2_000
"""The number of sessions after which refs are packed: each ref is a file before, and slow to read."""
_FEW_REFS = 4
"""The number of refs that are moved one by one: starting git would take longer."""

Families = list[list[TranscriptFile]]


@dataclass
class ImportRun:
    """An import and what it did so far.

    `seen` are the sessions that were read, `grown` those that got turns, `turns` the number of turns; `skipped` are
    those that are archived or deleted; `packs` are the names of the packs that it added. `batch` is the size of a
    batch in bytes, `processes` the number of workers, 0 for this process alone, None to go by the size.
    """

    context: Context
    progress: Progress
    """Called with bytes of transcripts."""
    errors: list[ImportFailure]
    batch: int = _BATCH_SIZE
    processes: int | None = None
    seen: set[str] = field(default_factory=set)
    grown: set[str] = field(default_factory=set)
    turns: int = 0
    skipped: dict[str, SkipReason] = field(default_factory=dict)
    packs: list[str] = field(default_factory=list)
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
            rules, place = rules_from_settings(self.context.privacy.rules), folder.absolute()
            tasks = [
                RecordTask(store.path.absolute(), place / str(number), families, homes, rules)
                for number, (is_new, families) in enumerate(steps)
                if is_new
            ]
            lock = locks.hold_off_prune(store.paths)
            try:
                recorded = import_workers.run_tasks(tasks, self._processes(tasks), self._report)
                for is_new, families in steps:
                    if not is_new or not self._take_over(next(recorded)):
                        self._record(families)
                recorded.close()
            finally:
                locks.release(lock)
        self.progress(self._total, self._total)

    def _processes(self, tasks: Sequence[RecordTask]) -> int:
        if self.processes is not None:
            return self.processes
        is_large = sum(task.size for task in tasks) > _SINGLE_PROCESS_SIZE
        return import_workers.useful_workers() if is_large else 0

    def _steps(self, files: Sequence[TranscriptFile]) -> Iterator[tuple[bool, Families]]:
        """Yield the families in their order, new ones in batches, others one by one, and whether they are new."""
        every = refs.read_all(self.context.store.path)
        known = {layout.session_of_ref(ref) for ref in every if ref.startswith(layout.REF_SPACES)}
        batch: Families = []
        size = count = 0
        for members in import_files.group_by_prompt(files):
            is_new = not any(file.session in known or file.agent_id in self._live for file in members)
            is_new = is_new and not (members[0].root and self.context.index.with_prompt(members[0].root))
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
        self.errors += recorded.errors
        for result in recorded.results:
            self._note(result)
        return True

    def _record(self, families: Families) -> None:
        """Record the files of families one by one, each under its session's lock."""
        for members in families:
            for file in import_files.sort_parents_first(members, self.errors):
                self._record_one(file)
                self._report(file.size)

    def _record_one(self, file: TranscriptFile) -> None:
        source = file.source(self.context.homes, self._live)
        try:
            with locks.session_lock(self.context.store.paths, source.session, _LOCK_WAIT) as is_held:
                if not is_held:
                    self.errors.append(ImportFailure(file.path, "a recorder has been writing it for half a minute"))
                    return
                result = record(self.context, source, rules_from_settings(self.context.privacy.rules))
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
        self.seen.add(result.session)
        self.turns += len(result.turns)
        if result.turns:
            self.grown.add(result.session)
        self._moved += result.changed
        paths = self.context.store.paths
        if result.changed and self._moved % _MOST_LOOSE_REFS == 0:
            with suppress(StoreError), locks.maintenance_lock(paths) as lock:
                if lock:
                    maintenance.pack_refs(self.context.store.path, lock)


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
            (recorded.task.folder / PACK_NAME).with_suffix(suffix).replace(index.with_suffix(suffix))
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
            transaction.move_all(store.path, moves, durable=False)
            return
    except StoreError as error:
        if isinstance(error, MovedError) or shutil.which("git"):
            raise
    for move in moves:
        store.repo.move(*move)
