"""All transcripts of an import, one family after the other: new ones gathered by many, others recorded one by one.

What comes out is what recording them one after the other gives, whoever does it and in whatever pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sessgit import agents
from sessgit.errors import SessgitError, StoreError, UnreadableError
from sessgit.model.progress import Progress
from sessgit.record.bulk import discovery, families, workers
from sessgit.record.bulk.families import ImportFailure, TranscriptFile
from sessgit.record.bulk.gathering import RecordedTask, RecordTask
from sessgit.record.bulk.takeover import take_over
from sessgit.record.bulk.word_list import WordLists
from sessgit.record.recording import SetAside, record
from sessgit.record.source import RecordRules
from sessgit.store import layout, locks, maintenance, refs
from sessgit.store.index import Index
from sessgit.store.packing import quarantine
from sessgit.store.store import Store

CHUNK_SIZE = 6 << 20
"""So many bytes of transcripts are gathered in one pack: an interruption loses some of them at most."""
_MOST_FAMILIES = 50
"""So many transcripts are, however small they are."""
_SINGLE_PROCESS_SIZE = 12 << 20
"""So much this process brings in itself: others must start first. More would leave it large."""
_LOCK_WAIT = 30.0
_MOST_LOOSE_REFS = 2_000
"""So many sessions after which refs are packed: each is a file of its own before, and reading them takes its time."""

Families = list[list[TranscriptFile]]


@dataclass
class ImportRun:
    """An import under way, and what it did so far.

    `seen` are the sessions that were read, `grown` those that got turns, `turns` how many turns in all; `aside` are
    those of which nothing is recorded, and why; `packs` names those that came in as they were gathered. `chunk` bytes
    of transcripts are gathered in one pack, by so many `processes`, where 0 is this one itself, and None leaves that to
    their size. `progress` is told of bytes.
    """

    store: Store
    index: Index
    config: Path
    rules: RecordRules
    progress: Progress
    errors: list[ImportFailure]
    chunk: int = CHUNK_SIZE
    processes: int | None = None
    seen: set[str] = field(default_factory=set)
    grown: set[str] = field(default_factory=set)
    turns: int = 0
    aside: dict[str, SetAside] = field(default_factory=dict)
    packs: list[str] = field(default_factory=list)
    _done: int = 0
    _total: int = 0
    _moved: int = 0

    def run(self, files: Sequence[TranscriptFile]) -> None:
        """Records all files; raises StoreError where the store cannot be written, with what came in until then."""
        with self.recorded(files):
            pass

    @contextmanager
    def recorded(self, files: Sequence[TranscriptFile]) -> Iterator[WordLists]:
        """Records all files as `run` does; as long as the context lasts, the words of what came in are at hand, and
        others are kept from pruning."""
        self._total = sum(file.size for file in files)
        folders = {self.config, *(file.folder for file in files if file.folder)}
        self._live = frozenset[str]().union(*(agents.at(folder).home.open_sessions(folder) for folder in folders))
        self.progress(0, self._total)
        self.index.sync()
        steps = list(self._steps(files))
        with quarantine.quarantine_folder(self.store.beside) as folder:
            tasks = [
                RecordTask(
                    self.store.path.absolute(), folder.absolute() / str(number), step[1], self.config, self.rules
                )
                for number, step in enumerate(steps)
                if step[0]
            ]
            held, spoken = locks.hold_off_prune(self.store.beside), WordLists()
            try:
                gathered = workers.run_tasks(tasks, self._processes(tasks), self._told)
                for is_new, members in steps:
                    if is_new:
                        self._bring(next(gathered), members, spoken)
                    else:
                        self._record(members)
                gathered.close()
                self.progress(self._total, self._total)
                yield spoken
            finally:
                locks.release(held)

    def _processes(self, tasks: Sequence[RecordTask]) -> int:
        size = sum(file.size for task in tasks for members in task.families for file in members)
        if self.processes is not None:
            return self.processes
        return workers.useful_workers() if size > _SINGLE_PROCESS_SIZE else 0

    def _steps(self, files: Sequence[TranscriptFile]) -> Iterator[tuple[bool, Families]]:
        """The families in their order, new ones in pieces of some size, others each alone."""
        held = {layout.session_of(name) for space in layout.REF_SPACES for name in self._names(space)}
        piece: Families = []
        size = count = 0
        for members in families.group_by_prompt(files):
            known = any(file.session in held or file.agent_id in self._live for file in members)
            is_new = not known and not (members[0].root and self.index.with_prompt(members[0].root))
            if piece and (not is_new or size >= self.chunk or count >= _MOST_FAMILIES):
                yield True, piece
                piece, size, count = [], 0, 0
            if is_new:
                piece.append(members)
                size += sum(file.size for file in members)
                count += len(members)
            else:
                yield False, [members]
        if piece:
            yield True, piece

    def _names(self, space: str) -> Iterator[str]:
        return (ref.removeprefix(space) for ref in refs.read_all(self.store.path, space))

    def _told(self, size: int) -> None:
        self._done += size
        self.progress(self._done, self._total)

    def _bring(self, found: RecordedTask, members: Families, spoken: WordLists) -> None:
        spoken.take(found.words, found.spoken)
        if not take_over(self.store, self.index, found):
            self._done -= sum(file.size for one in members for file in one)
            self._record(members)
            return
        self.packs.append(f"pack-{found.pack}")
        self.errors += found.errors
        for outcome in found.outcomes:
            self._note(outcome.file.session, outcome.turns, changed=outcome.changed)

    def _record(self, every: Families) -> None:
        """Records the files of families one by one, each under its session's lock."""
        for members in every:
            for file in families.sort_parents_first(members, self.errors):
                self._record_one(file)
                self._told(file.size)

    def _record_one(self, file: TranscriptFile) -> None:
        source = file.source(self.config, self._live)
        try:
            with locks.session_lock(self.store.beside, source.session, _LOCK_WAIT) as is_held:
                if not is_held:
                    self.errors.append(ImportFailure(file.path, "a recorder has been writing it for half a minute"))
                    return
                result = record(self.store, self.index, source, self.rules)
        except UnreadableError as error:
            mend = f"`sessgit repair {source.session}` restores what can be found"
            self.errors.append(ImportFailure(file.path, f"{error}. {mend}"))
            return
        except StoreError:
            raise  # it is not the file's fault, and the next one would fare no better
        except SessgitError as error:
            self.errors.append(ImportFailure(file.path, str(error)))
            return
        self._note(result.session, len(result.turns), changed=result.changed)
        if result.aside == "deleted" or (
            result.aside and discovery.has_unrecorded(self.index, source.session, file.path)
        ):
            self.aside[result.session] = result.aside

    def _note(self, session: str, turns: int, *, changed: bool) -> None:
        self.seen.add(session)
        self.turns += turns
        if turns:
            self.grown.add(session)
        self._moved += changed
        if changed and self._moved % _MOST_LOOSE_REFS == 0:
            with suppress(StoreError), locks.maintenance_lock(self.store.beside) as held:
                if held:
                    maintenance.pack_refs(self.store.path, held)
