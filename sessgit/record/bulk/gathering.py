"""New sessions recorded into a store of their own, whose objects are one pack that another store takes over."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sessgit import agents
from sessgit.errors import ROOM, SessgitError, StoreError
from sessgit.record.bulk import families
from sessgit.record.bulk.families import ImportFailure, TranscriptFile
from sessgit.record.bulk.word_list import WordOffsets, WordWriter
from sessgit.record.recording import SetAside, record
from sessgit.record.source import RecordRules
from sessgit.store import layout, refs
from sessgit.store import store as stores
from sessgit.store.backend import Repository
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.packing.pack_file import Pack
from sessgit.store.store import Store

PACK_NAME = "gathered.pack"
"""The pack in a task's folder, beside its index, before it has its name."""
_WORDS_NAME = "words"

ReportBytes = Callable[[int], None]
"""Called with the bytes of a file that is done."""


@dataclass(frozen=True, slots=True)
class RecordTask:
    """Families of transcripts of which the store has nothing, and how to record them; `folder` becomes the store that
    they are recorded into."""

    store: Path
    folder: Path
    families: Sequence[Sequence[TranscriptFile]]
    config: Path
    rules: RecordRules


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of a file: the numbers of how many turns were recorded, whether a ref moved, and why nothing was
    recorded."""

    file: TranscriptFile
    turns: int
    changed: bool
    aside: SetAside = ""


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """What was recorded into the store in `folder`, ready to be brought in.

    `pack` is the name of its pack or empty, `refs` are its refs. `asked` are the prompts of which the recorder asked
    whether other sessions begin with them: it was told of those in here alone. `spoken` says where in `words` the words
    of each turn lie.
    """

    folder: Path
    pack: str
    refs: dict[str, str]
    asked: frozenset[str]
    outcomes: tuple[FileOutcome, ...]
    errors: tuple[ImportFailure, ...]
    spoken: WordOffsets

    @property
    def words(self) -> Path:
        """The file of what was said."""
        return self.folder / _WORDS_NAME


def record_families(task: RecordTask, told: ReportBytes) -> RecordedTask:
    """Records the families one after the other; raises StoreError where nothing can be written."""
    pack = _create_store(task)
    store = Store(task.folder, Repository(task.folder, pack=pack))
    index = Index(task.folder, lambda: store)
    spoken = WordWriter(task.folder / _WORDS_NAME)
    errors, outcomes = list[ImportFailure](), list[FileOutcome]()
    try:
        for members in task.families:
            for file in families.sort_parents_first(members, errors):
                try:
                    done = record(
                        store,
                        index,
                        file.source(task.config, ()),
                        task.rules,
                        partial(spoken.put, agents.of_file(file.path)),
                    )
                except StoreError:
                    raise  # it is not the file's fault, and the next one would fare no better
                except SessgitError as error:
                    errors.append(ImportFailure(file.path, str(error)))
                else:
                    outcomes.append(FileOutcome(file, len(done.turns), done.changed, done.aside))
                told(file.size)
        index.sync()
        first = {row.prompt for branch in index.branches() for row in index.turns(branch.name, 1, 1)}
        asked = first | {file.root for members in task.families for file in members}
        spoken.close()
        return RecordedTask(
            task.folder, pack.finish(), refs.read_all(task.folder, layout.HEADS), frozenset(asked - {""}),
            tuple(outcomes), tuple(errors), spoken.places,
        )  # fmt: skip
    finally:
        pack.close()
        spoken.close()
        index.close()


def _create_store(task: RecordTask) -> Pack:
    """Makes a store in the task's folder that keeps out the same values as the task's store does; returns the pack that
    its objects go into."""
    own, other = StorePaths(task.folder), StorePaths(task.store)
    try:
        stores.create_store(task.folder)
        own.key.unlink()
        for path, copy in ((other.key, own.key), (other.forbidden, own.forbidden)):
            with suppress(FileNotFoundError):  # without the key it is said where it is needed
                shutil.copyfile(path, copy)
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
    return Pack(task.folder / PACK_NAME)
